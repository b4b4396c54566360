package serviceinstance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// newInstance returns an instance with the finalizer and without a data plane.
func newInstance(edit ...func(*v1alpha1.ServiceInstance)) *v1alpha1.ServiceInstance {
	i := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "k", UID: "u", Generation: 3, Finalizers: []string{v1alpha1.FinalizerServiceInstance},
	}}
	i.Spec = v1alpha1.ServiceInstanceSpec{Type: "standard", Size: "x1", Provider: "aws", Region: "us-east-1"}
	for _, e := range edit {
		e(i)
	}
	return i
}

// on places an instance on a data plane, in a phase.
func on(plane string, phase v1alpha1.InstancePhase) func(*v1alpha1.ServiceInstance) {
	return func(i *v1alpha1.ServiceInstance) {
		i.Status.DataPlaneName, i.Status.Phase, i.Status.Placements, i.Status.Units = plane, phase, 1, 1
	}
}

// free removes the finalizer of an instance, doomed marks the instance as deleted.
func free(i *v1alpha1.ServiceInstance) { i.Finalizers = nil }

func doomed(i *v1alpha1.ServiceInstance) { i.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), v1alpha1.AddToScheme(s))
}

// indexer adds indexes to a fake client.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

func newHub(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&v1alpha1.ServiceInstance{})
	if err := AddIndexes(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

func newRegion(namespace string, age time.Duration) *v1alpha1.FleetRegion {
	return &v1alpha1.FleetRegion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "use1", CreationTimestamp: metav1.NewTime(noon.Add(-age))},
		Spec:       v1alpha1.FleetRegionSpec{Provider: "aws", Region: "us-east-1"},
	}
}

func newPlane(namespace, name string, edit ...func(*v1alpha1.DataPlane)) *v1alpha1.DataPlane {
	dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name)}}
	dp.Spec = v1alpha1.DataPlaneSpec{Provider: "aws", Region: "us-east-1", InstanceTypes: []string{"standard"}}
	dp.Status.Phase = v1alpha1.PhaseReady
	for _, e := range edit {
		e(dp)
	}
	return dp
}

// newAgent returns the agent of a data plane, with its reports.
func newAgent(namespace, name string, reports ...v1alpha1.InstanceReport) *v1alpha1.DataPlaneAgent {
	uid := namespace + "-" + name
	return &v1alpha1.DataPlaneAgent{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.DataPlaneAgentSpec{DataPlaneUID: uid},
		Status:     v1alpha1.DataPlaneAgentStatus{Report: &v1alpha1.DataPlaneReport{DataPlaneUID: uid, Ready: true, Instances: reports}},
	}
}

func report(placement string, phase v1alpha1.AgentPhase) v1alpha1.InstanceReport {
	return v1alpha1.InstanceReport{UID: "u", PlacementID: placement, Phase: phase}
}

// rig is the controller on its own hub.
type rig struct {
	*Reconciler
	told *events.FakeRecorder
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	return rigOn(newHub(t, objects...))
}

func rigOn(hub client.Client) *rig {
	told := events.NewFakeRecorder(100)
	return &rig{&Reconciler{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(noon), Events: told}, told}
}

var key = types.NamespacedName{Namespace: "team", Name: "k"}

// settle runs some passes, and returns the instance; nil if it is deleted.
func (r *rig) settle(t *testing.T) *v1alpha1.ServiceInstance {
	t.Helper()
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	var i v1alpha1.ServiceInstance
	switch err := r.Client.Get(t.Context(), key, &i); {
	case client.IgnoreNotFound(err) != nil:
		t.Fatal(err)
	case err != nil:
		return nil
	}
	return &i
}

// how returns a short form of an instance: its phase, Ready and Placed, its data plane and the data
// planes that have refused it.
func how(i *v1alpha1.ServiceInstance) string {
	if i == nil {
		return "gone"
	}
	out := string(i.Status.Phase)
	for _, typ := range []string{v1alpha1.InstanceIsReady, v1alpha1.InstancePlaced} {
		if c := meta.FindStatusCondition(i.Status.Conditions, typ); c != nil {
			out += fmt.Sprintf(" %s=%s/%s", typ, c.Status, c.Reason)
		}
	}
	if i.Status.DataPlaneName != "" {
		out += " on " + i.Status.DataPlaneName
	}
	for _, r := range i.Status.Refusals {
		out += " not " + r.DataPlaneName
	}
	return out
}
