package customization

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
)

// behind reads from a cache that shows something else than the API server has.
type behind struct {
	client.Client
	cache client.Reader
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	return b.cache.Get(ctx, key, into, opts...)
}

func (b behind) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return b.cache.List(ctx, into, opts...)
}

// foreign is a finalizer of somebody else's.
const foreign = "example.com/mine"

// going is a cluster of which nothing is left; somebody else keeps it.
func going(name, slot string) *hivev1.ClusterDeployment {
	cd := newCluster(name, "p", slot)
	now := metav1.NewTime(noon)
	cd.UID, cd.DeletionTimestamp = "1", &now
	cd.Finalizers = append(cd.Finalizers, foreign)
	return cd
}

func living(name, slot string) *hivev1.ClusterDeployment {
	cd := newCluster(name, "p", slot)
	cd.UID = "1"
	return cd
}

func held(c *hivev1.ClusterDeploymentCustomization) *hivev1.ClusterDeploymentCustomization {
	c.Finalizers = []string{hivev1.FinalizerLease}
	return c
}

func recording(name string) *hivev1.ClusterPool {
	p := newPool("p", 1)
	p.Status.Pending = []string{name}
	return p
}

func TestACacheThatIsBehindIsNotBelieved(t *testing.T) {
	type objects = []client.Object
	another := living("x", slot.Name)
	another.UID = "2"
	for name, tc := range map[string]struct {
		cache, live objects
		// want is who has the customization, and the clusters that wait to be let go.
		want string
	}{
		"a cluster that is gone does not take it": {
			objects{held(newSlot("slot")), living("x", "slot")}, objects{held(newSlot("slot"))}, ":",
		},
		"nor does one that is not the one that was seen": {
			objects{held(newSlot("slot")), living("x", "slot")}, objects{held(newSlot("slot")), another}, ": x",
		},
		"nor does one that names another now": {
			objects{held(newSlot("slot")), living("x", "slot")}, objects{held(newSlot("slot")), living("x", "b")}, ": x",
		},
		"one that has it is not let go": {
			objects{held(newSlot("slot")), going("x", "slot")}, objects{held(leased("slot", "x")), going("x", "slot")}, "x: x",
		},
		"a new cluster under the name of an old one keeps it": {
			objects{held(leased("slot", "x")), going("x", "slot")}, objects{held(leased("slot", "x")), another}, "x: x",
		},
		"a cluster that the cache does not show keeps it": {
			objects{held(leased("slot", "x"))}, objects{held(leased("slot", "x")), living("x", "slot")}, "x: x",
		},
		"one that is to be made again keeps it": {
			objects{held(leased("slot", "x")), living("x", "b")}, objects{held(leased("slot", "x")), recording("x")}, "x:",
		},
		"others are let go while one is about to be made": {
			objects{held(leased("slot", "x")), going("y", "slot")}, objects{held(leased("slot", "x")), recording("x"), going("y", "slot")}, "x:",
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := newReader(t, tc.live...)
			r := &Reconciler{
				Client: behind{live, newReader(t, tc.cache...)}, Live: live,
				Clock: clocktesting.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(100),
			}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: slot}); err != nil {
				t.Fatal(err)
			}
			if got := whoHasIt(t, live); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func whoHasIt(t *testing.T, c client.Client) string {
	t.Helper()
	cdc := newSlot(slot.Name)
	var list hivev1.ClusterDeploymentList
	if err := c.Get(t.Context(), slot, cdc); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	holder, _ := lease.Holder(cdc)
	out := []string{holder.Name + ":"}
	for _, cd := range list.Items {
		if slices.Contains(cd.Finalizers, hivev1.FinalizerLease) {
			out = append(out, cd.Name)
		}
	}
	return strings.Join(out, " ")
}

func TestInUseItSaysSo(t *testing.T) {
	c := leased(slot.Name, "x")
	c.Status.Conditions = nil
	got, _ := settle(t, newReader(t, newPool("p", 1), held(c), newCluster("x", "p", slot.Name)))
	inUse := leased(slot.Name, "x")
	kstatus.ReportCustomization(inUse, noon)
	want := inUse.Status.Conditions
	for i, have := range got.Status.Conditions {
		if have.Reason != want[i].Reason || have.Message != want[i].Message || have.Status != want[i].Status {
			t.Errorf("it says %+v, want %+v", have, want[i])
		}
	}
	if len(got.Status.Conditions) != len(want) {
		t.Errorf("it says %+v", got.Status.Conditions)
	}
}

// The watch reports when it becomes readable again: until then the controller does not poll.
func TestALeaseOfAClusterThatCannotBeReadIsKeptInPeace(t *testing.T) {
	cd := newCluster("x", "p", slot.Name)
	cd.Spec.ClusterPoolRef = nil
	got, result := settle(t, spoiled{newReader(t, newPool("p", 1), held(leased(slot.Name, "x")), cd)})
	if holder, _ := lease.Holder(got); holder.Name != "x" || result.RequeueAfter != 0 {
		t.Errorf("%+v has it, and it is looked at again after %s", holder, result.RequeueAfter)
	}
}

// spoiled has clusters that cannot be read.
type spoiled struct{ client.Client }

func (s spoiled) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := s.Client.Get(ctx, key, into, opts...)
	if cd, ok := into.(*hivev1.ClusterDeployment); ok {
		cd.Unreadable = "it is broken"
	}
	return err
}

// moving is an API server on which something happens after the first read.
type moving struct {
	client.Reader
	then func()
}

func (m *moving) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := m.Reader.Get(ctx, key, into, opts...)
	if m.then != nil {
		m.then()
		m.then = nil
	}
	return err
}

// A name leaves its record when the cluster is there. Who looks for the cluster first, and
// then into the record, sees neither.
func TestThePoolIsReadBeforeTheCluster(t *testing.T) {
	c := newReader(t, recording("x"), held(leased(slot.Name, "x")))
	r := &Reconciler{
		Client: c, Clock: clocktesting.NewFakePassiveClock(noon), Events: events.NewFakeRecorder(100),
		Live: &moving{c, func() {
			p := newPool("p", 1)
			err := errors.Join(c.Create(t.Context(), newCluster("x", "p", slot.Name)), c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
			p.Status.Pending = nil
			if err := errors.Join(err, c.Update(t.Context(), p)); err != nil {
				t.Fatal(err)
			}
		}},
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: slot}); err != nil {
		t.Fatal(err)
	}
	if got := whoHasIt(t, c); got != "x: x" {
		t.Errorf("got %q", got)
	}
}
