package machinepool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/machinepool"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/remote"
)

var (
	start    = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	key      = types.NamespacedName{Namespace: "ns", Name: "c-p"}
	machines = "openshift-machine-api"
)

// cluster is one that is installed, runs and answers.
func cluster(p hivev1.Platform, edits ...func(*hivev1.ClusterDeployment)) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Finalizers: []string{hivev1.FinalizerDeprovision}}}
	cd.Spec.Platform, cd.Spec.Installed = p, true
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: "c-x", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "admin"}}
	cd.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterUnreachable, Status: corev1.ConditionFalse}}
	for _, e := range edits {
		e(cd)
	}
	return cd
}

var (
	local = hivev1.Platform{Local: &hivev1.LocalPlatform{}}
	aws   = hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1"}`)}}
)

func pool(replicas int64, edits ...func(*hivev1.MachinePool)) *hivev1.MachinePool {
	mp := &hivev1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, CreationTimestamp: metav1.NewTime(start)}}
	mp.Spec.ClusterDeploymentRef.Name, mp.Spec.Name, mp.Spec.Replicas = "c", "p", ptr.To(replicas)
	for _, e := range edits {
		e(mp)
	}
	return mp
}

// rig is a hub with one cluster, and the controller.
type rig struct {
	*testing.T
	hub, spoke client.Client
	// cluster is the spoke as the cluster itself writes it.
	cluster client.Client
	workers *workers
	clock   *clocktesting.FakePassiveClock
	r       *machinepool.Reconciler
	// trouble says why the cluster does not answer.
	trouble string
	// log has the writes in the cluster and at the platform. Once fuse is 0 none
	// succeeds, nor one on the hub.
	log  []string
	fuse int
	// hook is called before each write.
	hook func(what string)
}

var errFuse = errors.New("power cut")

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	g := &rig{T: t, clock: clocktesting.NewFakePassiveClock(start.Add(time.Hour)), fuse: 1 << 30}
	hub := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(hub), hivev1.AddToScheme(hub)); err != nil {
		t.Fatal(err)
	}
	g.hub = g.fused(fake.NewClientBuilder().WithScheme(hub).WithObjects(objects...).WithStatusSubresource(&hivev1.MachinePool{}, &hivev1.ClusterDeployment{}).Build(), false)
	spoke := runtime.NewScheme()
	if err := corev1.AddToScheme(spoke); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []schema.GroupVersionKind{remote.Machine, remote.MachineSet, remote.MachineAutoscaler, remote.ClusterAutoscaler} {
		spoke.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		spoke.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	inside := fake.NewClientBuilder().WithScheme(spoke).Build()
	g.cluster, g.spoke = inside, g.fused(inside, true)
	g.workers = &workers{g: g}
	g.r = &machinepool.Reconciler{
		Client: g.hub, Spokes: g, Workers: map[string]install.Workers{"local": g.workers},
		Clock: g.clock, Events: events.NewFakeRecorder(1000),
	}
	return g
}

func (g *rig) Client(_ context.Context, secret types.NamespacedName) (client.Client, string, error) {
	if want := (types.NamespacedName{Namespace: "ns", Name: "admin"}); secret != want {
		g.Errorf("the Secret is %s", secret)
	}
	return g.spoke, g.trouble, nil
}

// write counts a write, and refuses it after the power cut.
func (g *rig) write(what string) error {
	if g.fuse--; g.fuse < 0 {
		return errFuse
	}
	if what != "" {
		if g.hook != nil {
			g.hook(what)
		}
		g.log = append(g.log, what)
	}
	return nil
}

// fused counts the writes of a client, and notes them if it is the cluster's.
func (g *rig) fused(c client.WithWatch, noted bool) client.Client {
	what := func(verb string, o client.Object) string {
		if !noted {
			return ""
		}
		gvk, err := c.GroupVersionKindFor(o)
		if err != nil {
			g.Error(err)
		}
		return fmt.Sprintf("%s %s %s", verb, gvk.Kind, o.GetName())
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := g.write(what("create", o)); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := g.write(what("patch", o)); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := g.write(what("delete", o)); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := g.write(""); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
}

// workers is a platform that makes workers.
type workers struct {
	g    *rig
	list []install.Worker
	// full is whether there is room for no other.
	full bool
}

func (w *workers) List(t install.Target) ([]install.Worker, error) {
	if t.InfraID != "c-x" || t.Cluster.Name == "" {
		w.g.Errorf("asked for %v", t)
	}
	return slices.Clone(w.list), nil
}

func (w *workers) Add(_ install.Target, n install.Worker) error {
	if w.full {
		return fault.NewCapacity(time.Minute, "not enough room for cluster c-x on this computer: buy memory")
	}
	if err := w.g.write("make " + n.Name); err != nil {
		return err
	}
	n.Created = w.g.clock.Now()
	w.list = append(w.list, n)
	slices.SortFunc(w.list, func(a, b install.Worker) int { return a.Created.Compare(b.Created) })
	return nil
}

func (w *workers) Remove(_ context.Context, _ install.Target, name string) error {
	if err := w.g.write("stop " + name); err != nil {
		return err
	}
	w.list = slices.DeleteFunc(w.list, func(w install.Worker) bool { return w.Name == name })
	return nil
}

// join makes nodes and Machines of the workers, as the cluster does.
func (w *workers) join() {
	for _, one := range w.list {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: one.Name}, Spec: corev1.NodeSpec{Taints: one.Taints}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		m := &unstructured.Unstructured{}
		m.SetGroupVersionKind(remote.Machine)
		m.SetNamespace(machines)
		m.SetName(one.Name)
		for _, o := range []client.Object{n, m} {
			if err := w.g.cluster.Create(w.g.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
				w.g.Fatal(err)
			}
		}
	}
}

// pass does a pass and returns the MachinePool as it is afterwards, nil if it was deleted.
func (g *rig) pass() (*hivev1.MachinePool, ctrl.Result, error) {
	g.Helper()
	result, err := g.r.Reconcile(g.Context(), ctrl.Request{NamespacedName: key})
	g.clock.SetTime(g.clock.Now().Add(time.Second))
	var mp hivev1.MachinePool
	switch gone := g.hub.Get(g.Context(), key, &mp); {
	case apierrors.IsNotFound(gone):
		return nil, result, err
	case gone != nil:
		g.Fatal(gone)
	}
	return &mp, result, err
}

// settle does passes, with workers joining, until all is as it should be.
func (g *rig) settle() *hivev1.MachinePool {
	g.Helper()
	var mp *hivev1.MachinePool
	for range 20 {
		var err error
		if mp, _, err = g.pass(); err != nil {
			g.Fatal(err)
		}
		if mp == nil || condition.IsTrue(mp.Status.Conditions, hivev1.MachinePoolSynced) {
			return mp
		}
		g.workers.join()
	}
	g.Fatalf("it does not settle: %+v", mp.Status)
	return nil
}

func (g *rig) edit(edit func(*hivev1.MachinePool)) {
	g.Helper()
	var mp hivev1.MachinePool
	if err := g.hub.Get(g.Context(), key, &mp); err != nil {
		g.Fatal(err)
	}
	before := mp.DeepCopy()
	edit(&mp)
	if err := g.hub.Patch(g.Context(), &mp, client.MergeFrom(before)); err != nil {
		g.Fatal(err)
	}
	g.log = nil
}

func (g *rig) delete() {
	g.Helper()
	if err := g.hub.Delete(g.Context(), pool(0)); err != nil {
		g.Fatal(err)
	}
	g.log = nil
}

func (g *rig) nodes() []corev1.Node {
	g.Helper()
	var list corev1.NodeList
	if err := g.spoke.List(g.Context(), &list); err != nil {
		g.Fatal(err)
	}
	return list.Items
}

// synced is what condition Synced says.
func synced(mp *hivev1.MachinePool) hivev1.Condition {
	if c := condition.Find(mp.Status.Conditions, hivev1.MachinePoolSynced); c != nil {
		return *c
	}
	return hivev1.Condition{}
}
