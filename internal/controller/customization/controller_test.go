package customization

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// settle does some passes over the customization slot. It returns the customization, and
// what the last pass wants.
func settle(t *testing.T, c client.Client) (*hivev1.ClusterDeploymentCustomization, ctrl.Result) {
	t.Helper()
	r := &Reconciler{Client: c, Live: c, Clock: clocktesting.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(100)}
	var result ctrl.Result
	for range 3 {
		var err error
		if result, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: slot}); err != nil {
			t.Fatal(err)
		}
	}
	got := newSlot(slot.Name)
	if err := c.Get(t.Context(), slot, got); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return got, result
}

func TestALeaseOfAClusterToBeMadeIsKept(t *testing.T) {
	p := newPool("p", 1)
	p.Status.Pending = []string{"x"}
	got, result := settle(t, newReader(t, p, leased(slot.Name, "x")))
	if _, ok := lease.Holder(got); !ok || result.RequeueAfter != recheck {
		t.Errorf("it is %+v, and looked at again after %s", got.Status, result.RequeueAfter)
	}
}

func TestALeaseOfAPoolThatCannotBeReadIsKept(t *testing.T) {
	c := newReader(t, newPool("p", 1), leased(slot.Name, "x"))
	r := &Reconciler{Client: c, Live: blind{c}, Clock: clocktesting.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(100)}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: slot})
	got := newSlot(slot.Name)
	if err := c.Get(t.Context(), slot, got); err != nil {
		t.Fatal(err)
	}
	if _, ok := lease.Holder(got); !ok || err != nil || result.RequeueAfter != recheck {
		t.Errorf("it is %+v, and looked at again after %s: %v", got.Status, result.RequeueAfter, err)
	}
}

// blind cannot read pools.
type blind struct{ client.Client }

func (b blind) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := b.Client.Get(ctx, key, into, opts...)
	if p, ok := into.(*hivev1.ClusterPool); ok {
		p.Unreadable = "it is broken"
	}
	return err
}

func TestANewCustomizationIsAvailable(t *testing.T) {
	counted := &counter{Client: newReader(t, newPool("p", 1), newSlot(slot.Name))}
	got, _ := settle(t, counted)
	if c := lease.FindCondition(got, hivev1.CustomizationAvailable); c == nil || c.Status != metav1.ConditionTrue || counted.writes != 1 {
		t.Errorf("after %d writes it is %+v", counted.writes, got.Status)
	}
}

func TestALeaseThatLeaksIsReleased(t *testing.T) {
	got, _ := settle(t, newReader(t, newPool("p", 1), leased(slot.Name, "x")))
	if _, ok := lease.Holder(got); ok || lease.FindCondition(got, hivev1.CustomizationAvailable).Status != metav1.ConditionTrue {
		t.Errorf("it is %+v", got.Status)
	}
}

func TestALeaseThatHiveWroteIsLeftAsItIs(t *testing.T) {
	c := newSlot(slot.Name)
	c.Finalizers = []string{hivev1.FinalizerLease}
	c.Status = hivev1.ClusterDeploymentCustomizationStatus{
		ClusterDeploymentRef: &corev1.ObjectReference{Name: "x"},
		ClusterPoolRef:       &corev1.ObjectReference{Name: "p"},
		Conditions: []metav1.Condition{
			{Type: "ApplySucceeded", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "Patches applied and cluster installed successfully"},
			{Type: "Available", Status: metav1.ConditionFalse, Reason: "Reserved", Message: "reserved"},
		},
	}
	cd := newCluster("x", "p", slot.Name)
	cd.Spec.Installed = true
	got, _ := settle(t, newReader(t, newPool("p", 1), c, cd))
	if diff := cmp.Diff(c.Status, got.Status); diff != "" {
		t.Error(diff)
	}
}

// B5: a lease that is lost while the cluster installs is acquired again in one write, and no writes
// follow.
func TestALeaseIsTakenAgainInOneWrite(t *testing.T) {
	old := newSlot(slot.Name)
	old.Finalizers = []string{hivev1.FinalizerLease}
	lease.SetApplySucceeded(old, hivev1.ReasonInstallationPending, lease.MessageInstalling, noon)
	counted := &counter{Client: newReader(t, newPool("p", 1), old, newCluster("x", "p", slot.Name))}
	got, _ := settle(t, counted)
	if holder, _ := lease.Holder(got); holder.Name != "x" || lease.HolderPool(got).Name != "p" || counted.writes != 1 {
		t.Errorf("after %d writes it is %+v", counted.writes, got.Status)
	}
}

// counter counts writes.
type counter struct {
	client.Client
	writes int
}

func (c *counter) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	c.writes++
	return c.Client.Patch(ctx, o, p, opts...)
}

func (c *counter) Status() client.SubResourceWriter { return counterStatus{c.Client.Status(), c} }

type counterStatus struct {
	client.SubResourceWriter
	c *counter
}

func (s counterStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	s.c.writes++
	return s.SubResourceWriter.Patch(ctx, o, p, opts...)
}
