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

// Limits on the stored version report. The report comes from a tenant's cluster and is stored on
// the hub.
const (
	maxUpgrades     = 3
	maxReportLength = 256
)

// clusterVersion contains the fields of OpenShift's ClusterVersion that are read.
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

// readVersion reads the cluster's version. It returns the zero Version if that fails: the version
// is not important enough to make the whole observation fail.
func (sc *spokeClient) readVersion(ctx context.Context) power.Version {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := sc.core.RESTClient().Get().AbsPath(clusterVersionPath).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return sc.readAPIVersion(ctx)
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

// readAPIVersion returns the version of the API server.
func (sc *spokeClient) readAPIVersion(ctx context.Context) power.Version {
	raw, err := sc.core.RESTClient().Get().AbsPath(apiVersionPath).DoRaw(ctx)
	var found apiversion.Info
	if err != nil || json.Unmarshal(raw, &found) != nil {
		return power.Version{}
	}
	return power.Version{Desired: emptyIfTooLong(found.GitVersion)}
}

// emptyIfTooLong returns s, or "" if it is longer than any version or image.
func emptyIfTooLong(s string) string {
	if len(s) > maxReportLength {
		return ""
	}
	return s
}
