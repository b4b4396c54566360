// Package capi creates and destroys clusters with the Cluster API that is installed on the hub.
//
// An attempt is one Cluster, whose name is the attempt's infraID, in the namespace of the
// ClusterDeployment; with a template, it is all objects of the template. The attempt has succeeded
// when the Cluster is Available and its kubeconfig exists. Everything is named before it is created,
// each object records the ClusterDeployment that it was created for, and creating or deleting an
// object again changes nothing: every call may be the last one before a crash.
package capi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

// Options configures an Executor.
type Options struct {
	// InstallLimit is the time after the creation of the Cluster at which an attempt fails; 0 means one
	// hour.
	InstallLimit time.Duration
	// DestroyLimit is the time after the deletion of the Cluster from which a destruction that is not
	// complete is reported as failed; it continues. 0 means 30 minutes.
	DestroyLimit time.Duration
	// Clock is the clock; nil means the computer's.
	Clock clock.PassiveClock
}

const (
	defaultInstallLimit = time.Hour
	defaultDestroyLimit = 30 * time.Minute

	// pollInterval is how often a Cluster is checked: nothing reports its changes.
	pollInterval = 5 * time.Second
)

// Executor creates and destroys clusters with Cluster API.
type Executor struct {
	Options
	hub dynamic.Interface
}

var _ install.Executor = (*Executor)(nil)

// New returns an executor for the hub that c reads and writes.
func New(c dynamic.Interface, o Options) *Executor {
	if o.InstallLimit == 0 {
		o.InstallLimit = defaultInstallLimit
	}
	if o.DestroyLimit == 0 {
		o.DestroyLimit = defaultDestroyLimit
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Executor{Options: o, hub: c}
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusterclasses,verbs=get
// Templates also need get, create and delete of the kinds that they contain: docs/capi.md has a role.
// +kubebuilder:rbac:groups="",resources=configmaps;secrets,verbs=get

// metadata is metadata.json.
type metadata struct {
	ClusterName string       `json:"clusterName"`
	ClusterID   string       `json:"clusterID"`
	InfraID     string       `json:"infraID"`
	CAPI        capiMetadata `json:"capi"`
}

// capiMetadata is the part of metadata.json that only this package reads.
type capiMetadata struct {
	// Objects are all objects of the attempt, all in the namespace of the ClusterDeployment.
	Objects []objectRef `json:"objects"`
}

// objectRef identifies an object.
type objectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// String returns the kind and the name of the object.
func (r objectRef) String() string { return r.Kind + " " + r.Name }

// Limits of an infraID, as openshift-install sets them: it is part of the names of machines.
const (
	infraIDPrefix = 21
	infraIDDigits = 5
)

// attemptNames returns the infraID and the cluster ID of an attempt. They follow from the
// ClusterDeployment and the attempt, so that repeated calls return the same.
func attemptNames(req install.Request) (infraID, clusterID string) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s#%d", req.UID, req.Attempt))
	digits := hex.EncodeToString(sum[:])
	prefix := req.Cluster.Name[:min(len(req.Cluster.Name), infraIDPrefix)]
	infraID = strings.Trim(strings.ReplaceAll(prefix, ".", "-"), "-") + "-" + digits[:infraIDDigits]
	d := digits[infraIDDigits:]
	return infraID, fmt.Sprintf("%s-%s-%s-%s-%s", d[:8], d[8:12], d[12:16], d[16:20], d[20:32])
}

// Prepare validates what the platform's settings name, and names what Install will create. It
// creates nothing.
func (e *Executor) Prepare(ctx context.Context, req install.Request) (install.Metadata, error) {
	infraID, clusterID := attemptNames(req)
	if _, err := e.getCluster(ctx, req.ClusterTarget, infraID); err != nil && !isGone(err) {
		return install.Metadata{}, err
	}
	objects, err := e.buildObjects(ctx, req, infraID)
	if err != nil {
		return install.Metadata{}, err
	}
	md := metadata{ClusterName: req.Cluster.Name, ClusterID: clusterID, InfraID: infraID}
	for _, o := range objects {
		md.CAPI.Objects = append(md.CAPI.Objects, refOf(o))
	}
	raw, err := json.Marshal(md)
	if err != nil {
		return install.Metadata{}, fmt.Errorf("encoding the metadata of %s: %w", req.Cluster, err)
	}
	return install.Metadata{ClusterID: clusterID, InfraID: infraID, Raw: raw}, nil
}

func refOf(o *unstructured.Unstructured) objectRef {
	return objectRef{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName()}
}

// listObjects returns the objects that metadata.json records; without one, the Cluster alone.
func listObjects(md install.Metadata) ([]objectRef, error) {
	var parsed metadata
	if len(md.Raw) > 0 {
		if err := json.Unmarshal(md.Raw, &parsed); err != nil {
			return nil, fault.NewDenied("the metadata.json of %s cannot be parsed: %w: correct it in the Secret that spec.clusterMetadata.metadataJSONSecretRef names", md.InfraID, err)
		}
	}
	if len(parsed.CAPI.Objects) == 0 {
		return []objectRef{{APIVersion: clusterapi.Group + "/" + clusterapi.Version, Kind: "Cluster", Name: md.InfraID}}, nil
	}
	return parsed.CAPI.Objects, nil
}

// getCluster returns the Cluster of an attempt. The error is fault.Denied if the hub does not serve
// Cluster API.
func (e *Executor) getCluster(ctx context.Context, at install.ClusterTarget, infraID string) (*unstructured.Unstructured, error) {
	c, err := e.hub.Resource(clusterapi.Clusters).Namespace(at.Cluster.Namespace).Get(ctx, infraID, metav1.GetOptions{})
	if clusterapi.IsKindMissing(err) {
		return nil, clusterapi.NotInstalledError(clusterapi.Clusters)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Cluster %s in namespace %s: %w", infraID, at.Cluster.Namespace, err)
	}
	return c, nil
}

// isGone reports whether err says that an object does not exist, while its kind does.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !clusterapi.IsKindMissing(err) }

// isOwnedBy reports whether the executor created an object for a ClusterDeployment.
func isOwnedBy(o *unstructured.Unstructured, at install.ClusterTarget) bool {
	return at.UID != "" && o.GetAnnotations()[clusterapi.AnnotationOwner] == string(at.UID)
}
