package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/manifest"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/pool/forecast"
	"hotspare.io/hotspare/internal/prose"
	"hotspare.io/hotspare/internal/standing"
)

// prediction is what the controller would do with a pool of manifests.
type prediction struct {
	forecast.Preview
	// assumed are things that the pool refers to and that are not among the
	// manifests: "Secret default/pull".
	assumed []string
}

// busy reports whether the plan changes anything but the positions of claims.
func (f prediction) busy() bool { return len(f.Plan.Steps) > f.Plan.CountSteps(pool.SetPosition) }

// answer plans all pools of a set, in the order of their names.
func (q *question) answer(set *manifest.Set) ([]prediction, error) {
	var out []prediction
	var errs []error
	for _, key := range sortedKeys(set.Pools) {
		f, err := q.plan(set, key)
		if err != nil {
			errs = append(errs, fmt.Errorf("planning pool %s: %w", key, err))
			continue
		}
		out = append(out, f)
	}
	return out, errors.Join(errs...)
}

func sortedKeys[T any](m map[types.NamespacedName]T) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(m), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}

func (q *question) plan(set *manifest.Set, key types.NamespacedName) (prediction, error) {
	f := prediction{Preview: forecast.Preview{Objects: facts.Objects{
		Pool:     set.Pools[key],
		Clusters: map[string]*hivev1.ClusterDeployment{}, Claims: map[string]*hivev1.ClusterClaim{},
	}}}
	for at, cd := range set.Clusters {
		if poolKey(cd) != key {
			continue
		}
		if other := f.Clusters[cd.Name]; other != nil {
			return f, fmt.Errorf("two of its clusters are named %s, in the namespaces %s and %s: a pool tells its clusters apart by name, so rename one",
				at.Name, min(other.Namespace, at.Namespace), max(other.Namespace, at.Namespace))
		}
		f.Clusters[cd.Name] = cd
	}
	for _, c := range set.Claims {
		if c.Namespace == key.Namespace && c.Spec.ClusterPoolName == key.Name {
			f.Claims[c.Name] = c
		}
	}
	var err error
	if f.Missing, err = facts.MissingDependencies(f.Pool, q.platforms, func(n facts.Dependency) (string, error) { return q.look(set, &f, n), nil }); err != nil {
		return f, err
	}
	q.stock(set, &f)
	return f, f.Decide(q.now)
}

// stock finds the pool's customizations among the manifests. One that is not there is
// taken to be fine, and free but for what the pool's own status says, unless the
// manifests are all there is. Whether they apply is known if the template is there, too.
func (q *question) stock(set *manifest.Set, f *prediction) {
	f.Customizations, f.Faults, f.Assumed = map[string]*hivev1.ClusterDeploymentCustomization{}, map[string]string{}, map[string]bool{}
	template, known := q.template(set, f.Pool)
	for _, name := range f.CustomizationNames() {
		key := types.NamespacedName{Namespace: f.Pool.Namespace, Name: name}
		c := set.Customizations[key]
		switch {
		case c != nil:
			f.Customizations[name] = c
			if known {
				f.Faults[name] = facts.CustomizationError(template, f.Pool, c)
			}
		case !q.complete:
			f.assumed = append(f.assumed, "ClusterDeploymentCustomization "+key.String())
			f.Customizations[name], f.Assumed[name] = facts.AssumedCustomization(f.Pool, name), true
		}
	}
}

// template is the pool's, if it is known: one that has none has the default.
func (q *question) template(set *manifest.Set, p *hivev1.ClusterPool) ([]byte, bool) {
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

// poolKey names the pool of a cluster; empty when it has none.
func poolKey(cd *hivev1.ClusterDeployment) types.NamespacedName {
	ref := standing.PoolOf(cd)
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}
}

// look finds what the pool needs among the manifests. What is not there is taken
// to exist elsewhere, unless the manifests are all there is.
func (q *question) look(set *manifest.Set, f *prediction, n facts.Dependency) string {
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
	case q.complete:
		return n.NotFoundMessage()
	}
	f.assumed = append(f.assumed, fmt.Sprintf("%s %s", n.Kind, strings.TrimPrefix(key.String(), "/")))
	return ""
}

// remarks say which objects had no part in a plan, or had one that may surprise.
func remarks(set *manifest.Set, all []prediction) []string {
	var lost, strays, unclaimed, free []string
	for _, key := range sortedKeys(set.Claims) {
		c := set.Claims[key]
		if set.Pools[types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}] == nil {
			lost = append(lost, fmt.Sprintf("%s (pool %s)", key, c.Spec.ClusterPoolName))
		}
	}
	for _, key := range sortedKeys(set.Clusters) {
		switch of := poolKey(set.Clusters[key]); {
		case of.Name == "":
			free = append(free, key.String())
		case set.Pools[of] == nil:
			strays = append(strays, fmt.Sprintf("%s (pool %s)", key, of))
		}
	}
	for _, f := range all {
		for _, name := range slices.Sorted(maps.Keys(f.Clusters)) {
			if by := standing.PoolOf(f.Clusters[name]).ClaimName; by != "" && f.Claims[by] == nil {
				unclaimed = append(unclaimed, fmt.Sprintf("%s (claim %s/%s)", name, f.Pool.Namespace, by))
			}
		}
	}
	var out []string
	for _, r := range []struct {
		of    []string
		words string
	}{
		{lost, "claims on pools that are not in the files, left out: "},
		{strays, "clusters of pools that are not in the files, left out: "},
		{free, "clusters that belong to no pool, left out: "},
		{unclaimed, "clusters whose claims are not in the files, planned as if those were gone: "},
	} {
		if len(r.of) > 0 {
			out = append(out, r.words+prose.Few(r.of))
		}
	}
	return out
}
