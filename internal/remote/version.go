package remote

import (
	"context"
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"

	"hotspare.io/hotspare/internal/power"
)

// Where an OpenShift cluster, and any API server, reports its version.
const (
	clusterVersionPath = "/apis/config.openshift.io/v1/clusterversions/version"
	apiVersionPath     = "/version"
)

// What is kept of a report. It comes from a cluster that is somebody else's, and is
// stored on the hub.
const (
	maxUpgrades     = 3
	maxReportLength = 256
)

// clusterVersion is the part of OpenShift's ClusterVersion that is read.
type clusterVersion struct {
	Status struct {
		Desired release `json:"desired"`
		History []struct {
			release
			State          string       `json:"state"`
			StartedTime    metav1.Time  `json:"startedTime"`
			CompletionTime *metav1.Time `json:"completionTime"`
		} `json:"history"`
	} `json:"status"`
}

type release struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

// readVersion asks for the cluster's version. One that cannot be had is zero: it
// decides too little to count as trouble.
func (a *spokeClient) readVersion(ctx context.Context) power.Version {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := a.core.RESTClient().Get().AbsPath(clusterVersionPath).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return a.readAPIVersion(ctx)
	}
	var found clusterVersion
	if err != nil || json.Unmarshal(raw, &found) != nil {
		return power.Version{}
	}
	return toPowerVersion(found)
}

func toPowerVersion(found clusterVersion) power.Version {
	v := power.Version{OpenShift: true, Desired: emptyIfTooLong(found.Status.Desired.Version), Image: emptyIfTooLong(found.Status.Desired.Image)}
	if v.Desired == "" {
		return power.Version{}
	}
	for _, u := range found.Status.History[:min(maxUpgrades, len(found.Status.History))] {
		upgrade := power.Upgrade{State: emptyIfTooLong(u.State), Version: emptyIfTooLong(u.Version), Image: emptyIfTooLong(u.Image), Started: u.StartedTime.Time}
		if u.CompletionTime != nil {
			upgrade.Completed = u.CompletionTime.Time
		}
		v.History = append(v.History, upgrade)
	}
	return v
}

// readAPIVersion is the version of the API server.
func (a *spokeClient) readAPIVersion(ctx context.Context) power.Version {
	raw, err := a.core.RESTClient().Get().AbsPath(apiVersionPath).DoRaw(ctx)
	var found apiversion.Info
	if err != nil || json.Unmarshal(raw, &found) != nil {
		return power.Version{}
	}
	return power.Version{Desired: emptyIfTooLong(found.GitVersion)}
}

// emptyIfTooLong is s unless it is longer than any version or image.
func emptyIfTooLong(s string) string {
	if len(s) > maxReportLength {
		return ""
	}
	return s
}
