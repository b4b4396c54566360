package pool

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/poolplan"
	"hotspare.io/hotspare/internal/manifest"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// manifestPlan is the plan of the controller for a pool that was read from manifests.
type manifestPlan struct {
	poolplan.Evaluation
	// assumedObjects are objects that the pool references and that are not among the
	// manifests, such as "Secret default/pull".
	assumedObjects []string
}

// changesObjects reports whether the plan changes anything but the positions of claims.
func (p manifestPlan) changesObjects() bool {
	return len(p.Plan.Steps) > p.Plan.CountSteps(pool.SetPosition)
}

// planPools plans all pools of a set, in the order of their names.
func (o *planOptions) planPools(set *manifest.Set) ([]manifestPlan, error) {
	var out []manifestPlan
	var errs []error
	for _, key := range base.SortedKeys(set.Pools) {
		f, err := o.planPool(set, key)
		if err != nil {
			errs = append(errs, fmt.Errorf("planning pool %s: %w", key, err))
			continue
		}
		out = append(out, f)
	}
	return out, errors.Join(errs...)
}

func (o *planOptions) planPool(set *manifest.Set, key types.NamespacedName) (manifestPlan, error) {
	f := manifestPlan{Evaluation: poolplan.Evaluation{Objects: facts.Objects{
		Pool: set.Pools[key], SetsUnknown: true,
		Clusters: map[string]*hivev1.ClusterDeployment{}, Claims: map[string]*hivev1.ClusterClaim{},
	}}}
	f.Gates, f.Steps = facts.RecordedRequirements(f.Pool)
	for at, cd := range set.Clusters {
		if clusterPoolKey(cd) != key {
			continue
		}
		if other := f.Clusters[cd.Name]; other != nil {
			return f, fmt.Errorf("two of its clusters are named %s, in the namespaces %s and %s: a pool identifies its clusters by name, so rename one",
				at.Name, min(other.Namespace, at.Namespace), max(other.Namespace, at.Namespace))
		}
		f.Clusters[cd.Name] = cd
	}
	for _, c := range set.Claims {
		if c.Namespace == key.Namespace && c.Spec.ClusterPoolName == key.Name {
			f.Claims[c.Name] = c
		}
	}
	o.checkDependencies(set, &f)
	o.resolveCustomizations(set, &f)
	return f, f.Decide(o.now)
}

// resolveCustomizations finds the pool's customizations among the manifests. A customization that
// is not among them is assumed to be valid, and available unless the pool's status shows its use.
// With --complete it is missing. The patches are checked if the install-config template is known.
func (o *planOptions) resolveCustomizations(set *manifest.Set, f *manifestPlan) {
	f.Customizations, f.Faults, f.Assumed = map[string]*hivev1.ClusterDeploymentCustomization{}, map[string]string{}, map[string]bool{}
	template, known := o.findTemplate(set, f.Pool)
	for _, name := range f.CustomizationNames() {
		key := types.NamespacedName{Namespace: f.Pool.Namespace, Name: name}
		c := set.Customizations[key]
		switch {
		case c != nil:
			f.Customizations[name] = c
			if known {
				f.Faults[name] = facts.CustomizationError(template, f.Pool, c)
			}
		case !o.complete:
			f.assumedObjects = append(f.assumedObjects, "ClusterDeploymentCustomization "+key.String())
			f.Customizations[name], f.Assumed[name] = facts.AssumedCustomization(f.Pool, name), true
		}
	}
}

// findTemplate returns the install-config template of the pool and whether it is known. A pool
// without a template uses the default.
func (o *planOptions) findTemplate(set *manifest.Set, p *hivev1.ClusterPool) ([]byte, bool) {
	ref := p.Spec.InstallConfigSecretTemplateRef
	if ref == nil || ref.Name == "" {
		return nil, true
	}
	s := set.Secrets[types.NamespacedName{Namespace: p.Namespace, Name: ref.Name}]
	if s == nil {
		return nil, false
	}
	return s.Data[hivev1.SecretKeyInstallConfig], true
}

// clusterPoolKey returns the key of a cluster's pool; empty if the cluster has no pool.
func clusterPoolKey(cd *hivev1.ClusterDeployment) types.NamespacedName {
	ref := clusterstate.PoolReference(cd)
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
}

// checkDependencies finds what the pool needs and lacks. A pool that is being deleted needs nothing.
func (o *planOptions) checkDependencies(set *manifest.Set, f *manifestPlan) {
	if f.Pool.DeletionTimestamp != nil {
		return
	}
	f.Missing = facts.InvalidFields(f.Pool, o.platforms)
	for _, n := range facts.ListDependencies(f.Pool) {
		if message := o.checkDependency(set, f, n); message != "" {
			f.Missing = append(f.Missing, message)
		}
	}
}

// checkDependency finds a dependency of the pool among the manifests and returns what is wrong
// with it. A dependency that is not among them is assumed to exist, except with --complete.
func (o *planOptions) checkDependency(set *manifest.Set, f *manifestPlan, n facts.Dependency) string {
	key := types.NamespacedName{Namespace: f.Pool.Namespace, Name: n.Name}
	var found bool
	switch n.Kind {
	case facts.Secret:
		if s := set.Secrets[key]; s != nil {
			return n.InvalidMessage(s)
		}
	case facts.ImageSet:
		key.Namespace = ""
		_, found = set.ImageSets[key]
	case facts.Customization:
		_, found = set.Customizations[key]
	}
	switch {
	case found:
		return ""
	case o.complete:
		return n.NotFoundMessage()
	}
	f.assumedObjects = append(f.assumedObjects, fmt.Sprintf("%s %s", n.Kind, strings.TrimPrefix(key.String(), "/")))
	return ""
}

// describeOmissions lists the objects that the plans ignore, and those that they treat in an
// unexpected way.
func describeOmissions(set *manifest.Set, all []manifestPlan) []string {
	var lost, strays, unclaimed, free []string
	for _, key := range base.SortedKeys(set.Claims) {
		c := set.Claims[key]
		if set.Pools[types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}] == nil {
			lost = append(lost, fmt.Sprintf("%s (pool %s)", key, c.Spec.ClusterPoolName))
		}
	}
	for _, key := range base.SortedKeys(set.Clusters) {
		switch of := clusterPoolKey(set.Clusters[key]); {
		case of.Name == "":
			free = append(free, key.String())
		case set.Pools[of] == nil:
			strays = append(strays, fmt.Sprintf("%s (pool %s)", key, of))
		}
	}
	for _, f := range all {
		for _, name := range slices.Sorted(maps.Keys(f.Clusters)) {
			if by := clusterstate.PoolReference(f.Clusters[name]).ClaimName; by != "" && f.Claims[by] == nil {
				unclaimed = append(unclaimed, fmt.Sprintf("%s (claim %s/%s)", name, f.Pool.Namespace, by))
			}
		}
	}
	var out []string
	for _, r := range []struct {
		of    []string
		words string
	}{
		{lost, "ignored claims on pools that are not in the files: "},
		{strays, "ignored clusters of pools that are not in the files: "},
		{free, "ignored clusters without a pool: "},
		{unclaimed, "clusters whose claims are not in the files, planned as if the claims were deleted: "},
	} {
		if len(r.of) > 0 {
			out = append(out, r.words+humanize.JoinFirstWords(r.of))
		}
	}
	return out
}
