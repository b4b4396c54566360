package crd

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// A step puts what it refers to into clusters, so that only users who may read Secrets may write a step that refers to
// one. The test knows every reference that a step can have from its type.
func TestWhoMayWriteStepsThatReferToSecrets(t *testing.T) {
	p := policyNamed(t, "ClusterBootstrap", "clusterbootstrap-reach.hotspare.io")
	paths := listSources(reflect.TypeFor[v1alpha1.BootstrapStep](), nil)
	if len(paths) < 4 {
		t.Fatalf("the references of a step are %v: the test does not see them all", paths)
	}
	for _, path := range paths {
		for kind, secret := range map[string]bool{"secretRef": true, "configMapRef": false} {
			step := nest(path, map[string]any{kind: map[string]any{"name": "x"}}).(map[string]any)
			step["name"] = "a"
			object := map[string]any{
				"metadata": map[string]any{"namespace": "somewhere", "name": "b"}, "spec": map[string]any{"steps": []any{step}},
			}
			said := strings.Join(p.judge(t, object, nil), "\n")
			if refused := strings.Contains(said, "ask somebody who may read the Secrets there"); refused != secret {
				t.Errorf("a user without rights writes %s of %v: refused because of the Secret: %t", kind, path, refused)
			}
		}
	}
}

const eachItem = "[]"

// listSources returns the paths of the fields of type ManifestSource in a type. An element of a list is eachItem.
func listSources(t reflect.Type, at []string) [][]string {
	switch {
	case t == reflect.TypeFor[v1alpha1.ManifestSource]():
		return [][]string{at}
	case t.Kind() == reflect.Pointer:
		return listSources(t.Elem(), at)
	case t.Kind() == reflect.Slice:
		return listSources(t.Elem(), append(slices.Clip(at), eachItem))
	case t.Kind() != reflect.Struct || !strings.HasSuffix(t.PkgPath(), "/v1alpha1"):
		return nil
	}
	var out [][]string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		out = append(out, listSources(field.Type, append(slices.Clip(at), name))...)
	}
	return out
}

// nest returns an object with a value at a path.
func nest(path []string, value any) any {
	for _, name := range slices.Backward(path) {
		if name == eachItem {
			value = []any{value}
			continue
		}
		value = map[string]any{name: value}
	}
	return value
}

func TestWhoMayNameAClusterBootstrap(t *testing.T) {
	const (
		none    = `{mode: Recommend}`
		bound   = `{mode: Recommend, bootstrapRef: {name: b}}`
		other   = `{mode: Recommend, bootstrapRef: {name: o}}`
		changed = `{mode: Recommend, bootstrapRef: {name: b}, size: {max: 3}}`

		get, patch = "get secrets somewhere/*", "patch clusterpools.hive.openshift.io somewhere/x"

		askSecrets = `the steps of ClusterBootstrap "b" may put Secrets of namespace "somewhere" into the clusters of ClusterPool "x": ask somebody who may read the Secrets there`
		askPatch   = `ask somebody who may patch the pool`
	)
	checkReach(t, readPolicy(t, "bootstraps.yaml", "poolpolicy-bootstrap.hotspare.io"), map[string]reachCase{
		"a bootstrap, without the pool":          {"", bound, []string{get}, patch, askPatch},
		"a bootstrap, without the Secrets":       {"", bound, []string{patch}, get, askSecrets},
		"a bootstrap later":                      {none, bound, []string{patch}, get, askSecrets},
		"another bootstrap":                      {other, bound, []string{patch}, get, askSecrets},
		"no bootstrap any more needs no Secrets": {bound, none, nil, patch, askPatch},
		"another field beside a bootstrap":       {bound, changed, nil, "", ""},
		"no bootstrap, as it never had one":      {"", none, nil, "", ""},
	})
}
