package local

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// metadata is metadata.json: everything that is needed to destroy the cluster.
type metadata struct {
	ClusterName string        `json:"clusterName"`
	ClusterID   string        `json:"clusterID"`
	InfraID     string        `json:"infraID"`
	Local       localMetadata `json:"local"`
}

// localMetadata is the platform's section.
type localMetadata struct {
	// Namespace and Name identify the ClusterDeployment, if there is one.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// OpenShiftVersion is the release that the cluster reports; empty for Kubernetes.
	OpenShiftVersion string `json:"openShiftVersion,omitempty"`
}

// newMetadata returns metadata with a new name for a cluster.
func newMetadata(c config) metadata {
	return metadata{ClusterName: c.name, ClusterID: uuid.NewString(), InfraID: newInfraID(c.name)}
}

// parseMetadata reads a metadata.json.
func parseMetadata(raw []byte) (metadata, error) {
	var md metadata
	if err := json.Unmarshal(raw, &md); err != nil {
		return md, fault.NewDenied("metadata.json: %w", err)
	}
	if md.InfraID == "" {
		return md, fault.NewDenied("metadata.json: infraID is missing: it names what belongs to the cluster")
	}
	return md, nil
}

func (md metadata) encodeJSON() ([]byte, error) {
	raw, err := json.Marshal(md)
	if err != nil {
		return nil, fmt.Errorf("encoding metadata.json: %w", err)
	}
	return raw, nil
}

// clusterDeployment returns the ClusterDeployment, or an empty name.
func (md metadata) clusterDeployment() types.NamespacedName {
	return types.NamespacedName{Namespace: md.Local.Namespace, Name: md.Local.Name}
}

// ownerName returns the ClusterDeployment as namespace/name, or "".
func (md metadata) ownerName() string {
	if md.Local.Namespace == "" || md.Local.Name == "" {
		return ""
	}
	return md.clusterDeployment().String()
}

// An infraID has the format of openshift-install (pkg/asset/installconfig/clusterid.go): at most 27
// characters, five of them random.
const (
	maxInfraID = 27
	randomLen  = 5
)

func newInfraID(clusterName string) string {
	base := strings.TrimRight(clusterName[:min(len(clusterName), maxInfraID-randomLen-1)], "-")
	return base + "-" + utilrand.String(randomLen)
}

var (
	// openShiftVersionPattern matches OpenShift's versions. Kubernetes uses 1.x.
	openShiftVersionPattern = regexp.MustCompile(`^[4-9]\.\d+\.\d+(?:[-+].+)?$`)
	// architecturePattern matches the end of the tags of OpenShift's release images.
	architecturePattern = regexp.MustCompile(`-(?:x86_64|aarch64|arm64|ppc64le|s390x|multi)(?:-.*)?$`)
)

// openShiftVersion returns the version of the release if it is an OpenShift release, or "".
func openShiftVersion(req install.Request) string {
	version := req.Version
	if version == "" {
		_, tag, _ := strings.Cut(req.ReleaseImage[strings.LastIndexByte(req.ReleaseImage, '/')+1:], ":")
		version = architecturePattern.ReplaceAllString(tag, "")
	}
	version = strings.TrimPrefix(version, "v")
	if !openShiftVersionPattern.MatchString(version) {
		return ""
	}
	return version
}
