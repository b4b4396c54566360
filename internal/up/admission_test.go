package up

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hotspare.io/hotspare/config"
)

func TestTheProbeAsksForEachKindThatAPolicyChanges(t *testing.T) {
	objects, err := readManifests(config.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range mutatedResources(objects) {
		got = append(got, r.Resource+"."+r.Version+"."+r.Group)
	}
	want := []string{
		"clusterclaims.v1.hive.openshift.io",
		"clusterdeploymentcustomizations.v1.hive.openshift.io",
		"clusterdeployments.v1.hive.openshift.io",
		"clusterdeprovisions.v1.hive.openshift.io",
		"clusterpools.v1.hive.openshift.io",
		"clusterprovisions.v1.hive.openshift.io",
		"machinepools.v1.hive.openshift.io",
		"claimsets.v1alpha1.hotspare.io",
		"poolpolicies.v1alpha1.hotspare.io",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources (-want +got): %s", diff)
	}
	if diff := cmp.Diff([]string{"hive.openshift.io/v1", "hotspare.io/v1alpha1"}, mutatedGroups(objects)); diff != "" {
		t.Errorf("group versions (-want +got): %s", diff)
	}
}

func TestTheAnswerToTheProbe(t *testing.T) {
	if len(validation.IsValidLabelValue(refusedLabel)) == 0 {
		t.Errorf("an object may have label %q: the probe would be accepted", refusedLabel)
	}
	invalid := func(path, value string) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ClusterPool"}, probeName, field.ErrorList{field.Invalid(field.NewPath(path), value, "")})
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"refused for the label that the policy sets, the policy is applied":   {invalid("metadata.labels", refusedLabel), true},
		"refused for what its kind asks for, the policy is not applied yet":   {invalid("spec", "null"), false},
		"accepted, the policy is not applied yet":                             {nil, false},
		"the schema of the kind is not known yet":                             {apierrors.NewServiceUnavailable("Resource kind ClusterPool not found"), false},
		"an error that only quotes the policy is no answer of the API server": {errors.New(refusedLabel), false},
	} {
		t.Run(name, func(t *testing.T) {
			if applied, answer := isPolicyApplied(c.err); applied != c.want || applied != (answer == "") {
				t.Errorf("applied: %t, answer: %q", applied, answer)
			}
		})
	}
}
