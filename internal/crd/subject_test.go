package crd

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/config"
)

// readPolicy reads one policy of config/admission.
func readPolicy(t *testing.T, file, name string) policy {
	t.Helper()
	raw, err := config.Manifests.ReadFile("admission/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(raw), "\n---\n") {
		p := policy{action: denied}
		if err := yaml.Unmarshal([]byte(doc), &p.ValidatingAdmissionPolicy); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "ValidatingAdmissionPolicy" && p.Name == name {
			return p
		}
	}
	t.Fatalf("%s has no policy %s", file, name)
	return policy{}
}

// specKeys returns the fields of a ClusterDeployment's spec, by their JSON names.
func specKeys() []string {
	var out []string
	for f := range reflect.TypeFor[hivev1.ClusterDeploymentSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}

// The list contains what subjects may change, so that fields that are added later are denied.
func TestASubjectChangesOnlyTheListedFieldsOfTheCluster(t *testing.T) {
	p := readPolicy(t, "access.yaml", "clusterdeployment-fields.hotspare.io")
	allowed := []string{"powerState", "hibernateAfter", "powerstateTransitionToRunningTimeout", "powerstateTransitionToHibernatingTimeout"}
	cluster := func(spec, metadata map[string]any) map[string]any {
		m := map[string]any{"name": "c", "namespace": "somewhere"}
		maps.Copy(m, metadata)
		return map[string]any{"metadata": m, "spec": spec}
	}
	check := func(what string, object, old map[string]any, refused bool) {
		t.Helper()
		words := p.judge(t, object, old)
		if got := len(words) > 0; got != refused {
			t.Errorf("%s: refused: %t, want %t (%v)", what, got, refused, words)
		}
		if refused && len(words) > 0 && !strings.HasPrefix(words[0], what) {
			t.Errorf("%s: the message names something else: %s", what, words[0])
		}
	}
	for _, key := range append(specKeys(), "aFieldOfTheFuture") {
		want := !slices.Contains(allowed, key)
		with, other, without := cluster(map[string]any{key: "x"}, nil), cluster(map[string]any{key: "y"}, nil), cluster(map[string]any{}, nil)
		check("spec."+key, with, without, want)
		check("spec."+key, without, with, want)
		check("spec."+key, with, other, want)
		check("spec."+key, with, with, false)
	}
	for key, want := range map[string]bool{
		hivev1.AnnotationFake: true, hivev1.AnnotationReconcilePause: true, hivev1.AnnotationProtectedDelete: true,
		hivev1.AnnotationPoolVersion: true, hivev1.AnnotationCustomizationVersion: true, "hotspare.io/of-the-future": true, "sub.hive.openshift.io/x": true,
		hivev1.AnnotationPowerPause: false, hivev1.AnnotationRemove: false, hivev1.AnnotationLeaveRequests: false,
		"example.com/mine": false, "mine": false, "nothotspare.io/x": false,
	} {
		for kind, what := range map[string]string{"annotations": "annotation ", "labels": "label "} {
			with, without := cluster(nil, map[string]any{kind: map[string]any{key: "true"}}), cluster(nil, nil)
			with["spec"], without["spec"] = map[string]any{}, map[string]any{}
			check(what+key, with, without, want)
			check(what+key, without, with, want)
		}
	}
	held := cluster(map[string]any{}, map[string]any{"finalizers": []any{hivev1.FinalizerDeprovision}})
	free := cluster(map[string]any{}, nil)
	check("metadata.finalizers", free, held, true)
	check("metadata.finalizers", held, free, true)
	owned := cluster(map[string]any{}, map[string]any{"ownerReferences": []any{map[string]any{"name": "x"}}})
	check("metadata.ownerReferences", owned, free, true)
}
