// Package infraid lists the infraIDs of clusters that the hub references.
package infraid

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// ListReferenced returns the infraIDs that the hub's objects reference. Each infraID maps to the
// referencing object as namespace/name: a cluster, an attempt to install one, or the destruction of
// one.
func ListReferenced(ctx context.Context, hub client.Reader) (map[string]string, error) {
	known := map[string]string{}
	note := func(infraID string, o client.Object) {
		if known[infraID] == "" {
			known[infraID] = o.GetNamespace() + "/" + o.GetName()
		}
	}
	var clusters hivev1.ClusterDeploymentList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	for i := range clusters.Items {
		if m := clusters.Items[i].Spec.ClusterMetadata; m != nil {
			note(m.InfraID, &clusters.Items[i])
		}
	}
	var attempts hivev1.ClusterProvisionList
	if err := hub.List(ctx, &attempts); err != nil {
		return nil, fmt.Errorf("listing attempts to install: %w", err)
	}
	for i := range attempts.Items {
		for _, infraID := range []*string{attempts.Items[i].Spec.InfraID, attempts.Items[i].Spec.PrevInfraID} {
			if infraID != nil {
				note(*infraID, &attempts.Items[i])
			}
		}
	}
	var ends hivev1.ClusterDeprovisionList
	if err := hub.List(ctx, &ends); err != nil {
		return nil, fmt.Errorf("listing clusters that are being destroyed: %w", err)
	}
	for i := range ends.Items {
		note(ends.Items[i].Spec.InfraID, &ends.Items[i])
	}
	return known, nil
}
