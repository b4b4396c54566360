package provision

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// made returns a world with an installed cluster that is being deleted.
func made(t *testing.T, edits ...func(*hivev1.ClusterDeployment)) *world {
	t.Helper()
	w := newWorld(t, request()...)
	w.drive("installed", w.installed)
	w.edit(func(cd *hivev1.ClusterDeployment) {
		for _, edit := range edits {
			edit(cd)
		}
	})
	w.delete()
	w.writes, w.lab.destroys = nil, nil
	w.told()
	return w
}

func (w *world) deprovision() hivev1.ClusterDeprovision {
	w.t.Helper()
	var found hivev1.ClusterDeprovision
	if err := w.live.Get(w.t.Context(), key, &found); err != nil {
		w.t.Fatal(err)
	}
	return found
}

func TestADeletedClusterIsDestroyed(t *testing.T) {
	w := made(t)
	w.lab.polls = 1
	wantEqual(t, 10*time.Second, w.mustPass().RequeueAfter)
	wantEqual(t, "False/Deprovisioning: Destroying c1-0-1.", w.says(hivev1.ClusterProvisioned))

	w.mustPass()
	wantEqual(t, []string{
		"create Deprovision c1",
		"report Deployment c1",
		"report Deprovision c1", // how far it is
		"report Deprovision c1",
		"report Deployment c1",
		"patch Deployment c1",
	}, w.writes)
	wantEqual(t, true, w.gone())
	wantEqual(t, "", w.lab.left())
	record := w.deprovision()
	wantEqual(t, true, record.Status.Completed)
	wantEqual(t, hivev1.ClusterDeprovisionSpec{
		InfraID: "c1-0-1", ClusterID: "id-of-c1-0-1", ClusterName: "c1", BaseDomain: "example.com",
		MetadataJSONSecretRef: &corev1.LocalObjectReference{Name: "c1-metadata-json"},
	}, record.Spec)
	wantEqual(t, []string{"Normal Destroyed Destroyed everything that was recorded of the cluster"}, w.told())
}

func TestDestroyingThatFailsIsReportedAndRepeated(t *testing.T) {
	w := made(t)
	w.lab.undead = 1
	wantEqual(t, 30*time.Second, w.mustPass().RequeueAfter)
	wantEqual(t, "False/DeprovisionFailed: Destroying c1-0-1 fails: a disk is in use", w.says(hivev1.ClusterProvisioned))
	wantEqual(t, "True/DestroyFailed: Destroying c1-0-1 fails: a disk is in use", w.says(hivev1.ClusterDeprovisionLaunchError))
	wantEqual(t, "Destroying c1-0-1 fails: a disk is in use", w.deprovision().Status.Conditions[0].Message)

	w.mustPass()
	if len(w.lab.destroys) != 1 {
		t.Errorf("it was tried again at once: %v", w.lab.destroys)
	}
	w.drive("gone", w.gone)
}

func TestWhatDestroyingReturns(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		next time.Duration
		gone bool
	}{
		"nothing there is destroyed":   {err: fault.New(fault.Gone, errors.New("no such cluster")), gone: true},
		"too busy is asked again":      {err: fault.NewCapacity(time.Minute, "rate limit"), next: time.Minute},
		"a refusal is tried again too": {err: fault.NewDenied("no permission"), next: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := made(t)
			w.lab.destroyErr = tt.err
			wantEqual(t, tt.next, w.mustPass().RequeueAfter)
			wantEqual(t, tt.gone, w.gone())
		})
	}
}

func TestDeletionWithoutDestruction(t *testing.T) {
	unknownPlatform := func(cd *hivev1.ClusterDeployment) {
		cd.Spec.Platform = hivev1.Platform{GCP: &runtime.RawExtension{Raw: []byte("{}")}}
	}
	t.Run("a preserved cluster stays", func(t *testing.T) {
		w := made(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.PreserveOnDelete = true })
		w.mustPass()
		wantEqual(t, []string{"patch Deployment c1"}, w.writes)
		wantEqual(t, "c1-0-1", w.lab.left())
	})
	t.Run("a protected cluster keeps its object too", func(t *testing.T) {
		w := made(t, func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationProtectedDelete: "true"}
		})
		w.mustPass()
		wantEqual(t, "True/ProtectedDelete: Annotation hive.openshift.io/protected-delete is true, so the cluster is not destroyed: remove the annotation to have it destroyed.",
			w.says(hivev1.ClusterDeprovisionLaunchError))
		wantEqual(t, "c1-0-1", w.lab.left())
		w.edit(func(cd *hivev1.ClusterDeployment) { cd.Annotations = nil })
		w.drive("gone", w.gone)
	})
	t.Run("a cluster that nobody can destroy waits, and says how to let it go", func(t *testing.T) {
		w := made(t, unknownPlatform)
		w.mustPass()
		wantEqual(t, "True/UnsupportedPlatform: c1-0-1 is recorded, and this hub has no installer for platform gcp to destroy it: set one up, or set spec.preserveOnDelete to delete the ClusterDeployment without destroying it.",
			w.says(hivev1.ClusterDeprovisionLaunchError))
		w.edit(func(cd *hivev1.ClusterDeployment) { cd.Spec.PreserveOnDelete = true })
		w.drive("gone", w.gone)
	})
	t.Run("of a cluster that was never begun nothing has to go", func(t *testing.T) {
		w := newWorld(t, request(unknownPlatform)...)
		w.mustPass()
		wantEqual(t, "False/UnsupportedPlatform: spec.platform is gcp, and this hub has no installer for it, only for: aws. Use such a platform, give hotspare up an installer (--installer), or set the annotation hive.openshift.io/fake-cluster for a cluster without a platform.",
			w.says(hivev1.ClusterRequirementsMet))
		w.delete()
		w.mustPass()
		wantEqual(t, true, w.gone())
	})
}

func TestMetadataThatIsLeft(t *testing.T) {
	remove := func(w *world, obj client.Object) {
		t.Helper()
		if err := w.live.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	forget := func(w *world) {
		cp := w.attempts()[0]
		remove(w, &cp)
	}
	t.Run("is read from the Secret when the attempt's object is gone", func(t *testing.T) {
		w := made(t)
		forget(w)
		w.drive("gone", w.gone)
		wantEqual(t, `id-of-c1-0-1 {"infraID":"c1-0-1"}`, w.lab.destroys[0].ClusterID+" "+string(w.lab.destroys[0].Raw))
	})
	t.Run("is no more than the names when the Secret is another's", func(t *testing.T) {
		w := made(t)
		forget(w)
		remove(w, secret("c1-metadata-json", "", ""))
		if err := w.live.Create(t.Context(), secret("c1-metadata-json", "metadata.json", `{"infraID":"other"}`)); err != nil {
			t.Fatal(err)
		}
		w.drive("gone", w.gone)
		wantEqual(t, "id-of-c1-0-1 ", w.lab.destroys[0].ClusterID+" "+string(w.lab.destroys[0].Raw))
	})
	t.Run("is no more than the names when both are gone", func(t *testing.T) {
		w := made(t)
		forget(w)
		remove(w, secret("c1-metadata-json", "", ""))
		w.drive("gone", w.gone)
		wantEqual(t, "", w.lab.left())
	})
}

func TestANamespaceThatGoesRefusesTheRecord(t *testing.T) {
	w := made(t)
	w.catchUp()
	r := w.reconciler()
	funcs := w.funcs()
	funcs.Create = func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		err := apierrors.NewForbidden(schema.GroupResource{}, "c1", errors.New("the namespace is being deleted"))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
		return err
	}
	r.Client = interceptor.NewClient(w.live, funcs)
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, true, w.gone())
	wantEqual(t, "", w.lab.left())
}

func TestAnEarlierClusterOfTheNameLeftItsRecord(t *testing.T) {
	w := made(t)
	old := &hivev1.ClusterDeprovision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1"},
		Status:     hivev1.ClusterDeprovisionStatus{Completed: true},
	}
	if err := w.live.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.drive("gone", w.gone)
	wantEqual(t, "", w.lab.left())
}

// newManager is a manager that never starts.
func newManager(t *testing.T, w *world) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme:  w.live.Scheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}
