package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
)

// Phase is the progress of the creation of a cluster.
type Phase string

// A creation is Creating until it ends. Only Created and Failed are final: the same attempt is not
// created again.
const (
	// Creating: create runs, or must be called again.
	Creating Phase = "Creating"
	// Created: create has succeeded.
	Created Phase = "Created"
	// Failed: create has failed.
	Failed Phase = "Failed"
	// Rejected: create has rejected the request. It is called again when the request changes.
	Rejected Phase = "Rejected"
	// NoRoom: the platform has no capacity. Create is called again at RetryAt.
	NoRoom Phase = "NoRoom"
)

// Record is what hotspare records about the creation of a cluster.
type Record struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	Phase     Phase     `json:"phase"`
	// Recipe is the name of the recipe.
	Recipe string `json:"recipe"`
	// Request is a hash of everything that create depends on: see HashRequest.
	Request string `json:"request"`
	// Started is when create was called for the first time.
	Started time.Time `json:"started"`
	// RetryAt is when create is called again, in phase NoRoom.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Problem says why create did not succeed, without secrets.
	Problem string `json:"problem,omitempty"`
	// Log is the end of the log, without secrets; set in phase Failed.
	Log string `json:"log,omitempty"`
	// Kubeconfig is the admin kubeconfig; set in phase Created.
	Kubeconfig []byte `json:"kubeconfig,omitempty"`
}

// IsOf reports whether the record is that of a ClusterDeployment.
func (r Record) IsOf(cluster types.NamespacedName) bool {
	return r.Namespace == cluster.Namespace && r.Name == cluster.Name
}

// ConfirmOwner returns fault.Denied if the record is that of another cluster.
func (r Record) ConfirmOwner(infraID string, cluster types.NamespacedName) error {
	if r.IsOf(cluster) {
		return nil
	}
	return fault.NewDenied("infraID %s belongs to ClusterDeployment %s/%s, so its resources cannot be changed from %s: make the program prepare of recipe %s "+
		"return another infraID for each cluster, or set spec.preserveOnDelete to delete this ClusterDeployment without destroying them",
		infraID, r.Namespace, r.Name, cluster, r.Recipe)
}

// Metadata is metadata.json of a cluster that a recipe creates: everything that destroy needs.
type Metadata struct {
	ClusterName string       `json:"clusterName"`
	ClusterID   string       `json:"clusterID"`
	InfraID     string       `json:"infraID"`
	Exec        ExecMetadata `json:"exec"`
}

// ExecMetadata is the platform's section of Metadata.
type ExecMetadata struct {
	// Recipe is the name of the recipe, Version its ContentVersion at prepare.
	Recipe  string `json:"recipe"`
	Version string `json:"version,omitempty"`
	// Input is the input of create.
	Input recipe.Input `json:"input"`
	// Definition is the definition of a recipe that is in an image; nil for one in a folder.
	Definition *recipe.Definition `json:"definition,omitempty"`
	// PullSecret is the name of the Secret for pulling its image; empty if there is none.
	PullSecret string `json:"pullSecret,omitempty"`
}

// NewMetadata returns the metadata of a cluster. The cluster ID is derived from the cluster's UID, the
// attempt and the infraID, so that it is the same if prepare is repeated.
func NewMetadata(r *recipe.Recipe, version string, input recipe.Input) Metadata {
	id := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d %s", input.UID, input.Attempt, input.InfraID))
	return Metadata{
		ClusterName: input.Name, ClusterID: id.String(), InfraID: input.InfraID,
		Exec: ExecMetadata{Recipe: r.Name, Version: version, Input: input, Definition: r.Definition},
	}
}

// ParseMetadata parses a metadata.json. The error is fault.Denied if it is not that of a recipe.
func ParseMetadata(raw []byte) (Metadata, error) {
	var md Metadata
	if err := json.Unmarshal(raw, &md); err != nil {
		return md, fault.NewDenied("metadata.json: %w", err)
	}
	if md.InfraID == "" || md.Exec.Recipe == "" {
		return md, fault.NewDenied("metadata.json: infraID is %q and exec.recipe is %q: both identify what belongs to the cluster, so neither may be empty", md.InfraID, md.Exec.Recipe)
	}
	md.Exec.Input.InfraID = md.InfraID
	return md, nil
}

// HashRequest returns a hash of everything that create depends on: the content of the recipe, the
// input and the credentials.
func HashRequest(version string, t Task) (string, error) {
	raw, err := json.Marshal(struct { // keys of maps are sorted
		Version string
		Input   recipe.Input
		Secrets map[string][]byte
	}{version, t.Input, t.Secrets})
	if err != nil {
		return "", fmt.Errorf("hashing the request: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// FallbackInput returns the input of a cluster whose metadata.json is lost, as far as it is known. It
// contains the parameters of the platform, without the recipe's defaults.
func FallbackInput(cluster types.NamespacedName, uid types.UID, infraID string, p *hivev1.ExecPlatform) recipe.Input {
	return recipe.Input{Namespace: cluster.Namespace, Name: cluster.Name, UID: string(uid), InfraID: infraID, With: givenParameters(p)}
}
