package power

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/power"
	"hotspare.io/hotspare/internal/provision"
)

// clusterVersionStatus is the stored version of a cluster. It has the form of OpenShift's
// ClusterVersionStatus, which Hive had in the same field.
type clusterVersionStatus struct {
	Desired release   `json:"desired"`
	History []upgrade `json:"history,omitempty"`
}

type release struct {
	Version string `json:"version"`
	Image   string `json:"image,omitempty"`
}

type upgrade struct {
	State          string       `json:"state"`
	StartedTime    metav1.Time  `json:"startedTime"`
	CompletionTime *metav1.Time `json:"completionTime"`
	Version        string       `json:"version"`
	Image          string       `json:"image"`
}

// setVersionStatus stores the version that the cluster reports. It leaves the status unchanged if
// there is nothing new.
func setVersionStatus(status *hivev1.ClusterDeploymentStatus, v power.Version) {
	if v.Desired == "" {
		return
	}
	out := clusterVersionStatus{Desired: release{v.Desired, v.Image}}
	for _, u := range v.History {
		entry := upgrade{State: u.State, StartedTime: apiTime(u.Started), Version: u.Version, Image: u.Image}
		if !u.Completed.IsZero() {
			at := apiTime(u.Completed)
			entry.CompletionTime = &at
		}
		out.History = append(out.History, entry)
	}
	var have clusterVersionStatus
	if is := status.ClusterVersionStatus; is != nil && json.Unmarshal(is.Raw, &have) == nil && equality.Semantic.DeepEqual(have, out) {
		return // the API server changes the order of fields, so bytes cannot be compared
	}
	if raw, err := json.Marshal(out); err == nil { // strings and times can always be encoded
		status.ClusterVersionStatus = &runtime.RawExtension{Raw: raw}
	}
}

// patchVersionLabels updates the labels with the cluster's version after an upgrade, as Hive
// does.
func (r *Reconciler) patchVersionLabels(ctx context.Context, cd *hivev1.ClusterDeployment, v power.Version) error {
	labels := provision.VersionLabels(v.Desired)
	before := cd.DeepCopy()
	for key, value := range labels {
		metav1.SetMetaDataLabel(&cd.ObjectMeta, key, value)
	}
	if _, err := patch.Object(ctx, r.Client, before, cd); err != nil {
		return fmt.Errorf("labeling %s with its version: %w", client.ObjectKeyFromObject(cd), err)
	}
	return nil
}

// reportedVersion returns the version that the cluster last reported; "" if it never did.
func reportedVersion(status hivev1.ClusterDeploymentStatus) string {
	var said clusterVersionStatus
	if raw := status.ClusterVersionStatus; raw == nil || json.Unmarshal(raw.Raw, &said) != nil {
		return ""
	}
	return said.Desired.Version
}

func apiTime(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
