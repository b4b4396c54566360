package provision

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// TestAClaimDoesNotWakeTheInstallOfItsCluster has the updates of an installed cluster that its controller sees.
func TestAClaimDoesNotWakeTheInstallOfItsCluster(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   bool
	}{
		"a claim": {func(cd *hivev1.ClusterDeployment) {
			cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{ClaimName: "x"}
		}, false},
		"a power state":  {func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }, false},
		"reachability":   {func(cd *hivev1.ClusterDeployment) { setTrue(cd, hivev1.ClusterUnreachable) }, false},
		"its readiness":  {func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = hivev1.StatusHibernating }, false},
		"a resync":       {func(cd *hivev1.ClusterDeployment) { cd.ResourceVersion = "1" }, true},
		"its deletion":   {func(cd *hivev1.ClusterDeployment) { cd.DeletionTimestamp = &metav1.Time{Time: epoch} }, true},
		"a label":        {func(cd *hivev1.ClusterDeployment) { delete(cd.Labels, hivev1.LabelPlatform) }, true},
		"an annotation":  {func(cd *hivev1.ClusterDeployment) { metav1.SetMetaDataAnnotation(&cd.ObjectMeta, "a", "b") }, true},
		"its finalizer":  {func(cd *hivev1.ClusterDeployment) { cd.Finalizers = nil }, true},
		"its owner":      {func(cd *hivev1.ClusterDeployment) { cd.OwnerReferences = []metav1.OwnerReference{{}} }, true},
		"its metadata":   {func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterMetadata = nil }, true},
		"a new install":  {func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }, true},
		"a mark":         {func(cd *hivev1.ClusterDeployment) { setTrue(cd, hivev1.ClusterProvisionStopped) }, true},
		"its attempt":    {func(cd *hivev1.ClusterDeployment) { cd.Status.ProvisionRef = nil }, true},
		"its start":      {func(cd *hivev1.ClusterDeployment) { cd.Status.InstallStartedTimestamp = nil }, true},
		"its end":        {func(cd *hivev1.ClusterDeployment) { cd.Status.InstalledTimestamp = nil }, true},
		"what is broken": {func(cd *hivev1.ClusterDeployment) { cd.Unreadable = "spec" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request()...)
			w.drive("installed", w.installed)
			before := w.cluster()
			after := before.DeepCopy()
			before.ResourceVersion, after.ResourceVersion = "1", "2"
			c.change(after)
			if got := selectInstallChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("selected: %t", got)
			}
		})
	}
}

func setTrue(cd *hivev1.ClusterDeployment, typ string) {
	condition.Set(&cd.Status.Conditions, typ, corev1.ConditionTrue, "Test", "", epoch.Add(time.Hour))
}

// TestAWrittenClusterIsNotReadFromAStaleCache makes a pass right after another one, on the cache that the other one saw.
func TestAWrittenClusterIsNotReadFromAStaleCache(t *testing.T) {
	w := newWorld(t, request(fakeCluster)...)
	stale := w.cluster()
	funcs := w.funcs()
	get := funcs.Get
	funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if cd, is := obj.(*hivev1.ClusterDeployment); is && stale != nil {
			stale.DeepCopyInto(cd)
			return nil
		}
		return get(ctx, c, key, obj, opts...)
	}
	r := w.reconciler()
	r.Client = interceptor.NewClient(w.live, funcs)
	pass := func() {
		t.Helper()
		w.catchUp()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	w.writes = nil
	pass()
	if len(w.writes) > 0 {
		t.Errorf("the pass on the stale cache wrote %q", w.writes)
	}
	old := stale
	stale = nil
	w.delete()
	for range 5 {
		pass()
	}
	if got := r.clusters.NewestVersion(old); !w.gone() || got != old {
		t.Errorf("a cluster that is gone is remembered: %v", got)
	}
}
