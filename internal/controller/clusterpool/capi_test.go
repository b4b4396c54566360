package clusterpool_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// capiHub is a hub with one ClusterClass and one ConfigMap.
type capiHub struct {
	client.Reader
	class    *unstructured.Unstructured
	template *corev1.ConfigMap
}

func (h *capiHub) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		h.class.DeepCopyInto(o)
	case *corev1.ConfigMap:
		h.template.DeepCopyInto(o)
	default:
		return h.Reader.Get(ctx, key, o, opts...)
	}
	return nil
}

// TestAPoolFollowsWhatClusterAPICreatesClustersFrom: a change of the ClusterClass or of the template
// replaces installed spares, without another event, and other changes of these objects do not.
func TestAPoolFollowsWhatClusterAPICreatesClustersFrom(t *testing.T) {
	class := hivev1.CAPIPlatform{ClassRef: &hivev1.CAPIClassReference{Name: "class", Namespace: "classes"}}
	template := hivev1.CAPIPlatform{TemplateRef: &corev1.LocalObjectReference{Name: "template"}}
	for name, c := range map[string]struct {
		platform hivev1.CAPIPlatform
		change   func(*capiHub)
		replaced bool
	}{
		"spec of the ClusterClass":   {class, func(h *capiHub) { h.class.SetGeneration(2) }, true},
		"status of the ClusterClass": {class, func(h *capiHub) { h.class.SetResourceVersion("2") }, false},
		"data of the template":       {template, func(h *capiHub) { h.template.Data["a"] = "2" }, true},
		"label of the template":      {template, func(h *capiHub) { h.template.Labels = map[string]string{"a": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			hub := &capiHub{
				Reader: l.pools.Live, class: &unstructured.Unstructured{Object: map[string]any{}},
				template: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "template"}, Data: map[string]string{"a": "1"}},
			}
			hub.class.SetUID("class")
			hub.class.SetGeneration(1)
			l.pools.Live = hub
			l.edit(func(p *hivev1.ClusterPoolSpec) { p.Platform = hivev1.Platform{CAPI: &c.platform} })
			l.settle()
			before := l.installSpare()
			l.settle()
			if same := l.spare(); same.Name != before.Name {
				t.Fatalf("spare %s became %s without a change", before.Name, same.Name)
			}
			result, err := l.pools.Reconcile(t.Context(), l.request())
			if err != nil || result.RequeueAfter == 0 || result.RequeueAfter > time.Minute {
				t.Errorf("the next pass is after %s, %v; nothing else starts one when a ClusterClass changes", result.RequeueAfter, err)
			}
			c.change(hub)
			l.settle()
			after := l.spare()
			if (after.Name != before.Name) != c.replaced {
				t.Errorf("replaced %t, want %t", after.Name != before.Name, c.replaced)
			}
			if v := after.Annotations[hivev1.AnnotationRecipeVersion]; v == "" || v != l.stored().Status.RecipeVersion {
				t.Errorf("the spare records version %q, the pool %q", v, l.stored().Status.RecipeVersion)
			}
		})
	}
}

// settle makes passes, one minute apart, in which the pool observes all writes.
func (l *lab) settle() {
	l.t.Helper()
	for range 6 {
		l.clock.SetTime(l.clock.Now().Add(time.Minute))
		l.view.ShowAllWrites()
		l.pass()
	}
}

// spare returns the only cluster.
func (l *lab) spare() *hivev1.ClusterDeployment {
	l.t.Helper()
	all := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})
	if len(all) != 1 {
		l.t.Fatalf("%d clusters, want one", len(all))
	}
	return all[0].(*hivev1.ClusterDeployment).DeepCopy()
}

// installSpare makes the only cluster an installed one that hibernates, and returns it.
func (l *lab) installSpare() *hivev1.ClusterDeployment {
	l.t.Helper()
	cd := l.spare()
	old := client.MergeFrom(cd.DeepCopy())
	cd.Spec.Installed = true
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: cd.Name}
	cd.Spec.PowerState = hivev1.PowerHibernating
	if err := l.store.NewClient().Patch(l.t.Context(), cd, old); err != nil {
		l.t.Fatal(err)
	}
	return cd
}
