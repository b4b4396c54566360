package clusterpool

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/pool/facts"
)

// classDependency returns the dependency of a pool on ClusterClass quick-start in namespace classes.
func classDependency(t *testing.T) facts.Dependency {
	t.Helper()
	for _, d := range facts.ListDependencies(&hivev1.ClusterPool{Spec: hivev1.ClusterPoolSpec{Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
		ClassRef: &hivev1.CAPIClassReference{Name: "quick-start", Namespace: "classes"},
	}}}}) {
		if d.Kind == facts.ClusterClass {
			return d
		}
	}
	t.Fatal("the pool does not depend on its ClusterClass")
	return facts.Dependency{}
}

// newClass returns a ClusterClass of a generation; its resource version is that of another change of
// the status.
func newClass(generation int64, resourceVersion string) *unstructured.Unstructured {
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(clusterapi.ClusterClasses.GroupVersion().WithKind("ClusterClass"))
	class.SetNamespace("classes")
	class.SetName("quick-start")
	class.SetUID("uid")
	class.SetGeneration(generation)
	class.SetResourceVersion(resourceVersion)
	return class
}

func TestTheVersionOfAClusterClassFollowsItsSpec(t *testing.T) {
	version := func(class *unstructured.Unstructured) string {
		r := &Reconciler{Live: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(class).Build()}
		words, version, err := r.checkDependency(t.Context(), "pools", classDependency(t))
		if err != nil || words != "" {
			t.Fatalf("%s, %v", words, err)
		}
		return version
	}
	first := version(newClass(1, "1"))
	if first == "" || version(newClass(1, "2")) != first {
		t.Error("a change of the status counts")
	}
	if version(newClass(2, "3")) == first {
		t.Error("a change of the spec does not count")
	}
}

func TestAClusterClassThatCannotBeReadIsReported(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: clusterapi.Group, Kind: "ClusterClass"}, SearchedVersions: []string{clusterapi.Version}}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"it does not exist": {nil, `cluster class: ClusterClass "quick-start" does not exist in namespace "classes": create it, or change spec.platform.capi.classRef`},
		"Cluster API is not installed, or too old": {noMatch, "cluster class: the hub does not serve ClusterClass of cluster.x-k8s.io/v1beta2: " +
			"install Cluster API 1.11 or later and its providers on the hub, or upgrade it"},
	} {
		t.Run(name, func(t *testing.T) {
			get := func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if c.err != nil {
					return c.err
				}
				return w.Get(ctx, key, o, opts...)
			}
			r := &Reconciler{Live: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithInterceptorFuncs(interceptor.Funcs{Get: get}).Build()}
			words, _, err := r.checkDependency(t.Context(), "pools", classDependency(t))
			if err != nil || strings.TrimSpace(words) != c.want {
				t.Errorf("got %q, %v", words, err)
			}
		})
	}
}
