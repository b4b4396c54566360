package clusterinstall

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

var (
	noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	kind = schema.GroupVersionKind{Group: "extensions.hive.openshift.io", Version: "v1beta1", Kind: "AgentClusterInstall"}
)

// rig is a reconciler with a cluster that an AgentClusterInstall makes.
type rig struct {
	*testing.T
	Reconciler
	writes, dieAfter int
	seen             []schema.GroupVersionKind
}

var errDied = errors.New("the process died")

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	r := &rig{T: t}
	scheme := runtime.NewScheme()
	if err := hivev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	wrote := func(err error) error {
		if r.writes++; err == nil && r.writes == r.dieAfter {
			return errDied
		}
		return err
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&hivev1.ClusterDeployment{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return wrote(c.Patch(ctx, o, p, opts...))
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				return wrote(c.SubResource(sub).Patch(ctx, o, p, opts...))
			},
		}).Build()
	r.Reconciler.Client, r.Live = c, c
	r.Clock, r.Events = clocktesting.NewFakePassiveClock(noon), events.NewFakeRecorder(10)
	r.watch = func(k schema.GroupVersionKind) error { r.seen = append(r.seen, k); return nil }
	return r
}

func cluster() *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "c", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Spec: hivev1.ClusterDeploymentSpec{ClusterInstallRef: &hivev1.ClusterInstallReference{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Name: "aci",
		}},
	}
}

// aci is the AgentClusterInstall; conditions are pairs of type and status.
func aci(metadata map[string]any, conditions ...string) *unstructured.Unstructured {
	var list []any
	for i := 0; i < len(conditions); i += 2 {
		list = append(list, map[string]any{"type": conditions[i], "status": conditions[i+1], "reason": "R", "message": "m", "lastProbeTime": "2026-11-22T11:00:00Z"})
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "c", "name": "aci"},
		"spec":     map[string]any{}, "status": map[string]any{"conditions": list},
	}}
	if metadata != nil {
		u.Object["spec"] = map[string]any{"clusterMetadata": metadata}
	}
	u.SetGroupVersionKind(kind)
	return u
}

var made = map[string]any{
	"clusterID": "id", "infraID": "c-1", "adminKubeconfigSecretRef": map[string]any{"name": "c-admin-kubeconfig"},
	"adminPasswordSecretRef": map[string]any{"name": "c-admin-password"},
}

func (r *rig) pass() time.Duration {
	r.Helper()
	res, err := r.Reconcile(r.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "c", Name: "c"}})
	if err != nil && !errors.Is(err, errDied) {
		r.Fatal(err)
	}
	return res.RequeueAfter
}

func (r *rig) get() *hivev1.ClusterDeployment {
	r.Helper()
	var cd hivev1.ClusterDeployment
	if err := r.Client.Get(r.Context(), client.ObjectKey{Namespace: "c", Name: "c"}, &cd); err != nil {
		r.Fatal(err)
	}
	return &cd
}

func TestAnInstallIsFollowed(t *testing.T) {
	r := newRig(t, cluster(), aci(nil, "RequirementsMet", "True", "Completed", "False"))
	if next := r.pass(); next != recheckInterval {
		t.Errorf("looks again after %s", next)
	}
	cd := r.get()
	if cd.Spec.Installed || cd.Spec.ClusterMetadata != nil || !condition.IsTrue(cd.Status.Conditions, hivev1.ClusterInstallRequirementsMet) {
		t.Errorf("%+v", cd.Status.Conditions)
	}
	done := aci(made, "Completed", "True")
	done.SetResourceVersion("999")
	if err := r.Client.Update(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	r.pass()
	cd = r.get()
	if !cd.Spec.Installed || cd.Spec.ClusterMetadata.InfraID != "c-1" || !cd.Status.InstalledTimestamp.Time.Equal(noon) {
		t.Errorf("installed %v at %v as %+v", cd.Spec.Installed, cd.Status.InstalledTimestamp, cd.Spec.ClusterMetadata)
	}
	if len(r.seen) != 1 || r.seen[0] != kind {
		t.Errorf("watches %v, want the kind once", r.seen)
	}
	writes := r.writes
	if next := r.pass(); next != 0 || r.writes != writes {
		t.Errorf("an installed cluster is looked at after %s, with %d writes", next, r.writes-writes)
	}
}

// Whatever write a crash follows, the cluster ends up the same, and is called
// installed last.
func TestACrashLosesNothing(t *testing.T) {
	for die := 1; die <= 3; die++ {
		r := newRig(t, cluster(), aci(made, "Completed", "True"))
		r.dieAfter = die
		r.pass()
		if cd := r.get(); cd.Spec.Installed && (cd.Spec.ClusterMetadata == nil || cd.Status.InstalledTimestamp == nil) {
			t.Errorf("killed after write %d: it is called installed and does not say what it is", die)
		}
		r.pass()
		r.pass()
		if cd := r.get(); !cd.Spec.Installed || !condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisioned) {
			t.Errorf("killed after write %d: never installed", die)
		}
	}
}

func TestWhatCannotBeFollowedIsToldWithARemedy(t *testing.T) {
	broken := aci(nil)
	broken.Object["status"] = map[string]any{"conditions": "none"}
	secret := cluster()
	secret.Spec.ClusterInstallRef.Group, secret.Spec.ClusterInstallRef.Version, secret.Spec.ClusterInstallRef.Kind = "", "v1", "Secret"
	for want, objects := range map[string][]client.Object{
		`spec.clusterInstallRef names kind Secret of group "": hotspare reads only kinds of group extensions.hive.openshift.io`: {secret},
		"spec.clusterInstallRef names AgentClusterInstall aci, which does not exist in namespace c: create it.":                 {cluster()},
		"AgentClusterInstall aci does not follow the ClusterInstall contract":                                                   {cluster(), broken},
	} {
		r := newRig(t, objects...)
		if next := r.pass(); next != recheckInterval {
			t.Errorf("looks again after %s", next)
		}
		c := condition.Find(r.get().Status.Conditions, hivev1.ClusterRequirementsMet)
		if c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, want) {
			t.Errorf("says %s %q, want %q", c.Status, c.Message, want)
		}
	}
}

// A cluster that was adopted as installed is as old as its object, and its installer may be gone.
func TestAnAdoptedClusterIsInstalled(t *testing.T) {
	cd := cluster()
	cd.Spec.Installed = true
	r := newRig(t, cd)
	r.pass()
	got := r.get()
	if !condition.IsTrue(got.Status.Conditions, hivev1.ClusterProvisioned) || !got.Status.InstalledTimestamp.Equal(&got.CreationTimestamp) {
		t.Errorf("%+v", got.Status)
	}
}

func TestOthersAreLeftAlone(t *testing.T) {
	for name, change := range map[string]func(*hivev1.ClusterDeployment){
		"one of our own installs": func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterInstallRef = nil },
		"a paused one": func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
		},
		"one that goes": func(cd *hivev1.ClusterDeployment) {
			at := metav1.NewTime(noon)
			cd.DeletionTimestamp, cd.Finalizers = &at, []string{"x/y"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cd := cluster()
			change(cd)
			r := newRig(t, cd, aci(made, "Completed", "True"))
			if r.pass(); r.writes > 0 {
				t.Errorf("%d writes", r.writes)
			}
		})
	}
}
