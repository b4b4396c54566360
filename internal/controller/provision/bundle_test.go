package provision

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/diagnostics/failure"
)

// released returns a world with a cluster that is being deleted, and whose claim requests a bundle.
func released(t *testing.T, storesBundles bool) *world {
	t.Helper()
	w := newWorld(t, request()...)
	w.storesBundles = storesBundles
	w.drive("installed", w.installed)
	w.edit(func(cd *hivev1.ClusterDeployment) {
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p", ClaimName: "x"}
	})
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "x", Annotations: map[string]string{hivev1.AnnotationDiagnoseAtRelease: "true"},
	}}
	if err := w.live.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	w.delete()
	deleted := w.cluster().DeletionTimestamp.Time
	w.clock.SetTime(deleted)
	w.writes = nil
	w.told()
	return w
}

// claimKey is the claim of a released cluster.
var claimKey = types.NamespacedName{Namespace: "n", Name: "x"}

func (w *world) deleteClaim() {
	w.t.Helper()
	if err := w.live.Delete(w.t.Context(), &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}}); err != nil {
		w.t.Fatal(err)
	}
}

// report sets condition Diagnosed about the bundle of the release.
func (w *world) report(status corev1.ConditionStatus, reason string) {
	w.t.Helper()
	cd := w.cluster()
	f := failure.Failure{Kind: failure.Release, Since: cd.DeletionTimestamp.Time}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterDiagnosed, status, reason, "Bundle "+failure.BundleName(cd, f)+" is.", w.clock.Now())
	if err := w.live.Status().Update(w.t.Context(), cd); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) claimEdit(edit func(*hivev1.ClusterClaim)) {
	w.t.Helper()
	var claim hivev1.ClusterClaim
	if err := w.live.Get(w.t.Context(), claimKey, &claim); err != nil {
		w.t.Fatal(err)
	}
	edit(&claim)
	if err := w.live.Update(w.t.Context(), &claim); err != nil {
		w.t.Fatal(err)
	}
}

func TestAReleasedClusterIsDestroyedWhenItsBundleIsSettled(t *testing.T) {
	const waits = "False/AwaitingBundle: Annotation hotspare.io/diagnose-at-release of its claim requests a bundle of diagnostics: the cluster is destroyed when the bundle is stored, or 2m0s after its deletion."
	for name, c := range map[string]struct {
		happens func(*world)
		waits   bool
	}{
		"nothing has happened":              {func(*world) {}, true},
		"the store fails, for now":          {func(w *world) { w.report(corev1.ConditionFalse, hivev1.ReasonBundleDelayed) }, true},
		"the bundle is stored":              {func(w *world) { w.report(corev1.ConditionTrue, hivev1.ReasonBundleWritten) }, false},
		"the bundle is given up":            {func(w *world) { w.report(corev1.ConditionFalse, hivev1.ReasonBundleNotWritten) }, false},
		"two minutes have passed":           {func(w *world) { w.clock.Step(2 * time.Minute) }, false},
		"the request is withdrawn":          {func(w *world) { w.claimEdit(func(c *hivev1.ClusterClaim) { c.Annotations = nil }) }, false},
		"the claim was deleted by force":    {func(w *world) { w.deleteClaim() }, false},
		"the claim of another has the name": {func(w *world) { w.edit(func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef.ClaimName = "y" }) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := released(t, true)
			wantEqual(t, 2*time.Minute, w.mustPass().RequeueAfter)
			wantEqual(t, waits, w.says(hivev1.ClusterProvisioned))
			c.happens(w)
			w.mustPass()
			wantEqual(t, !c.waits, len(w.lab.destroys) > 0)
			w.drive("gone", w.gone)
		})
	}
}

func TestAHubWithoutAStoreDestroysAtOnceAndSaysSo(t *testing.T) {
	w := released(t, false)
	w.mustPass()
	wantEqual(t, true, w.gone())
	told := w.told()
	wantEqual(t, 3, len(told)) // for the cluster, for its claim, and of the destruction
	for _, e := range told[:2] {
		if !strings.HasPrefix(e, "Warning BundleNotWritten no bundle of diagnostics is written: this hub stores none") {
			t.Errorf("it says %q", e)
		}
	}
}

// A process that is killed after any write neither forgets the deletion nor waits longer.
func TestACrashWhileABundleIsAwaited(t *testing.T) {
	for at := 1; at < 9; at++ {
		w := released(t, true)
		begin := w.clock.Now()
		w.crashAt = at
		w.drive("gone", w.gone)
		if took := w.clock.Now().Sub(begin); took > 3*time.Minute {
			t.Errorf("crash after write %d: it took %s", at, took)
		}
	}
}
