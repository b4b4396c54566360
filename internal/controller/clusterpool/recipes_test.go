package clusterpool_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// recipes is a catalog with one recipe.
type recipes struct {
	missing []string
	version string
}

func (r *recipes) CheckPool(context.Context, *hivev1.ClusterPool, string) ([]string, string) {
	return r.missing, r.version
}

func TestAPoolFollowsItsRecipe(t *testing.T) {
	l := newLab(t)
	known := &recipes{version: "1-a"}
	l.pools.Recipes = known
	names := func() map[string]string {
		out := map[string]string{}
		for _, o := range l.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
			out[o.GetName()] = o.GetAnnotations()[hivev1.AnnotationRecipeVersion]
		}
		return out
	}
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 2 })
	l.settle()
	before := names()
	versions := map[string]int{}
	for _, v := range before {
		versions[v]++
	}
	if len(before) != 2 || versions["1-a"] != 1 || versions[""] != 1 {
		t.Fatalf("the clusters have the versions %v, want one of before and one with 1-a", before)
	}

	known.missing, known.version = []string{"spec.platform.exec.recipe: \"k3x\" is not a recipe"}, ""
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 3 })
	l.settle()
	p := l.stored()
	c := condition.Find(p.Status.Conditions, hivev1.PoolMissingDependencies)
	if c == nil || c.Status != corev1.ConditionTrue || !strings.Contains(c.Message, "k3x") || len(names()) != 2 {
		t.Errorf("with a recipe that is missing, the condition is %+v, and there are %d clusters", c, len(names()))
	}
}
