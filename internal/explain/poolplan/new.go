package poolplan

import (
	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool/facts"
)

// New returns a Evaluation of a pool's objects on a hub, before Decide: its claims, its clusters, and
// the customizations of its namespace. It takes the facts that only the controller can see from the
// pool's last written status: whether the pool's dependencies exist and are valid, what new clusters
// are created with, which steps and gates its spares need, and whether the platform has room.
func New(p *hivev1.ClusterPool, claims []hivev1.ClusterClaim, clusters []hivev1.ClusterDeployment, customizations []hivev1.ClusterDeploymentCustomization) Evaluation {
	f := Evaluation{Objects: facts.Objects{
		Pool: p, Recipe: p.Status.RecipeVersion, Clusters: map[string]*hivev1.ClusterDeployment{}, Claims: map[string]*hivev1.ClusterClaim{},
		PoliciesUnknown: true, SetsUnknown: true,
		Customizations: map[string]*hivev1.ClusterDeploymentCustomization{}, Faults: map[string]string{},
	}}
	f.Gates, f.Steps = facts.RecordedRequirements(p)
	for i := range clusters {
		f.Clusters[clusters[i].Name] = &clusters[i]
	}
	for i := range claims {
		f.Claims[claims[i].Name] = &claims[i]
	}
	for i := range customizations {
		f.Customizations[customizations[i].Name] = &customizations[i]
	}
	for name, e := range p.Status.Inventory {
		if e.Status == hivev1.InventoryBrokenByConfiguration {
			f.Faults[name] = e.Message
		}
	}
	if c := condition.Find(p.Status.Conditions, hivev1.PoolMissingDependencies); c != nil && c.Status == corev1.ConditionTrue {
		f.Missing = []string{c.Message}
	}
	if c := condition.Find(p.Status.Conditions, hivev1.PoolCapacityAvailable); c != nil && c.Status == corev1.ConditionFalse && c.Reason == hivev1.ReasonNoRoom {
		f.Full = c.Message
	}
	return f
}
