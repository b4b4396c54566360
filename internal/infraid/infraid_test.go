package infraid_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/infraid"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func hub(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := hivev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).WithObjects(objects...).Build()
}

func TestEveryReferenceToAnInfraIDIsListed(t *testing.T) {
	current, previous := "in-attempt", "of-the-attempt-before"
	api := hub(
		t, interceptor.Funcs{},
		&hivev1.ClusterDeployment{ObjectMeta: meta("a", "installed"), Spec: hivev1.ClusterDeploymentSpec{ClusterMetadata: &hivev1.ClusterMetadata{InfraID: "installed-1"}}},
		&hivev1.ClusterDeployment{ObjectMeta: meta("a", "without-metadata")},
		&hivev1.ClusterProvision{ObjectMeta: meta("b", "attempt-1"), Spec: hivev1.ClusterProvisionSpec{InfraID: &current, PrevInfraID: &previous}},
		&hivev1.ClusterProvision{ObjectMeta: meta("b", "attempt-0")},
		&hivev1.ClusterDeprovision{ObjectMeta: meta("c", "destroyed"), Spec: hivev1.ClusterDeprovisionSpec{InfraID: "destroyed-1"}},
		// The cluster is what people look for, so it wins over its own deprovision.
		&hivev1.ClusterDeprovision{ObjectMeta: meta("a", "installed-deprovision"), Spec: hivev1.ClusterDeprovisionSpec{InfraID: "installed-1"}},
	)
	got, err := infraid.ListReferenced(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"installed-1": "a/installed", "in-attempt": "b/attempt-1", "of-the-attempt-before": "b/attempt-1", "destroyed-1": "c/destroyed",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// An incomplete list would make the machines of the clusters that are missing in it look like leftovers.
func TestNoPartialListIsReturned(t *testing.T) {
	for _, failing := range []client.ObjectList{&hivev1.ClusterDeploymentList{}, &hivev1.ClusterProvisionList{}, &hivev1.ClusterDeprovisionList{}} {
		unavailable := errors.New("the hub is unavailable")
		api := hub(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if reflect.TypeOf(list) == reflect.TypeOf(failing) {
				return unavailable
			}
			return c.List(ctx, list, opts...)
		}})
		got, err := infraid.ListReferenced(t.Context(), api)
		if !errors.Is(err, unavailable) || got != nil {
			t.Errorf("listing %T fails: got %v, %v", failing, got, err)
		}
	}
}
