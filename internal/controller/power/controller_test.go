package power

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/power"
)

func TestCycle(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	if got := h.reason(hivev1.ClusterUnreachable); got != "True Hibernating" {
		t.Errorf("asleep, Unreachable is %s", got)
	}
	looked := h.looked
	h.pass()
	if h.looked != looked {
		t.Error("a sleeping cluster's API was asked")
	}
	h.edit(wants(hivev1.PowerRunning))
	h.until("Running")
	if got := h.reason(hivev1.ClusterUnreachable); got != "False ClusterReachable" {
		t.Errorf("awake, Unreachable is %s", got)
	}
	t.Run("each step has one event", func(t *testing.T) {
		var steps []string
		for len(h.events.Events) > 0 {
			steps = append(steps, strings.Join(strings.Fields(<-h.events.Events)[:2], " "))
		}
		want := []string{"Normal Running", "Normal Stopping", "Normal Hibernating", "Normal Resuming", "Normal Running"}
		if diff := cmp.Diff(want, steps); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a pass that changes nothing writes nothing", func(t *testing.T) {
		writes := h.writes
		h.pass()
		if h.writes != writes {
			t.Error("wrote")
		}
	})
}

// A process that dies right after a write, or right after it started or stopped machines,
// is followed by one that knows only what was stored.
func TestDeath(t *testing.T) {
	for n := 1; n <= 8; n++ {
		t.Run(fmt.Sprintf("after write %d all goes on", n), func(t *testing.T) {
			h := newHub(t)
			h.dieAfter = n
			cycle(h)
		})
	}
	t.Run("after telling the machines, before the status, all goes on", func(t *testing.T) {
		h := newHub(t)
		h.until("Running")
		h.edit(wants(hivev1.PowerHibernating))
		h.sim.die = func() { panic(errDied) }
		for range 2 {
			func() {
				defer func() { _ = recover() }() // the death that was ordered above
				h.pass()
			}()
		}
		h.sim.die = func() {}
		h.until("Hibernating")
	})
}

func cycle(h *hub) {
	h.Helper()
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.edit(wants(hivev1.PowerRunning))
	h.until("Running")
}

func TestFlip(t *testing.T) {
	t.Run("D1: a flip to Running in mid-stop starts the machines again", func(t *testing.T) {
		h := newHub(t)
		h.until("Running")
		h.edit(wants(hivev1.PowerHibernating))
		h.until("WaitingForMachinesToStop")
		h.edit(wants(hivev1.PowerRunning))
		h.until("Running")
		if h.started == 0 {
			t.Error("nothing was started")
		}
	})
	t.Run("a decision on a stale object does not reach the machines", func(t *testing.T) {
		h := newHub(t)
		h.until("Running")
		stale := h.get()
		stale.Spec.PowerState = hivev1.PowerHibernating
		h.edit(func(cd *hivev1.ClusterDeployment) { cd.Labels = map[string]string{"newer": "yes"} })
		seen, err := h.observeCluster(t.Context(), stale)
		if err != nil {
			t.Fatal(err)
		}
		d := h.applyPower(t.Context(), stale, seen, power.Decide(seen, h.sim.clock.Now()))
		if _, err := h.patchPowerStatus(t.Context(), stale, d); err == nil {
			t.Error("the report of a stale decision was taken")
		}
		if h.stopped != 0 {
			t.Error("the machines were stopped")
		}
	})
}

func TestFake(t *testing.T) {
	h := newHub(t, annotate(hivev1.AnnotationFake), wants(hivev1.PowerHibernating))
	h.Actuators = nil
	for i, word := range []string{"Hibernating", "Running", "Hibernating"} {
		h.edit(wants(hivev1.PowerState(word)))
		for range 3 {
			h.pass()
		}
		if got := h.get().Status.PowerState; got != word {
			t.Errorf("powerState %s, want %s", got, word)
		}
		if h.writes != i+1 {
			t.Errorf("%d writes after %d changes", h.writes, i+1)
		}
	}
	if h.observed+h.looked != 0 {
		t.Error("a cloud or a spoke was asked about a fake cluster")
	}
}

func TestHibernateAfter(t *testing.T) {
	after := func(span hivev1.Duration) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) { cd.Spec.HibernateAfter = &span }
	}
	t.Run("it asks in the specification, then the cluster sleeps", func(t *testing.T) {
		h := newHub(t, after("8h"))
		h.until("Hibernating")
		if h.get().Spec.PowerState != hivev1.PowerHibernating {
			t.Error("spec.powerState was not set")
		}
	})
	t.Run("D5: a pause keeps the clock", func(t *testing.T) {
		h := newHub(t, after("8h"))
		h.sim.clock.Step(7 * time.Hour)
		h.until("Running")
		h.edit(annotate(hivev1.AnnotationPowerPause))
		h.until("Unknown")
		h.edit(func(cd *hivev1.ClusterDeployment) { delete(cd.Annotations, hivev1.AnnotationPowerPause) })
		h.until("Running")
		h.sim.clock.Step(2 * time.Hour)
		h.pass()
		if got := h.get().Spec.PowerState; got != "" {
			t.Errorf("powerState was set to %s after 2 of 8 hours", got)
		}
	})
	t.Run("a span that cannot be read is told and ignored", func(t *testing.T) {
		h := newHub(t, after("1w"))
		h.until("Running")
		c := condition.Find(h.get().Status.Conditions, hivev1.ClusterHibernating)
		if !strings.Contains(c.Message, `"1w" is not a duration`) {
			t.Errorf("message %q", c.Message)
		}
	})
}

func TestTimeout(t *testing.T) {
	h := newHub(t, func(cd *hivev1.ClusterDeployment) {
		span := hivev1.Duration("20m")
		cd.Spec.PowerstateTransitionToRunningTimeout = &span
	})
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.until("Hibernating")
	h.apiDown = true
	h.edit(wants(hivev1.PowerRunning))
	began := h.sim.clock.Now()
	h.until("FailedToStart")
	if took := h.sim.clock.Since(began).Round(time.Second); took != 20*time.Minute {
		t.Errorf("failed after %s: the deadline did not wake the controller", took)
	}
	h.apiDown = false
	h.until("Running")
}

func TestRefusal(t *testing.T) {
	h := newHub(t)
	h.until("Running")
	h.edit(wants(hivev1.PowerHibernating))
	h.pass()
	h.refuse = errors.New("throttled")
	h.until("FailedToStop")
	h.refuse = nil
	h.until("Hibernating")
}

func TestUntouched(t *testing.T) {
	for name, change := range map[string]func(*hivev1.ClusterDeployment){
		"a cluster being installed": func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false },
		"a paused cluster":          annotate(hivev1.AnnotationPowerPause),
		"a cluster being deleted": func(cd *hivev1.ClusterDeployment) {
			cd.DeletionTimestamp, cd.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x/y"}
		},
		"a cluster of another platform": func(cd *hivev1.ClusterDeployment) {
			cd.Spec.Platform = hivev1.Platform{None: &runtime.RawExtension{Raw: []byte("{}")}}
		},
	} {
		t.Run(name+" has its machines left alone", func(t *testing.T) {
			h := newHub(t, change, wants(hivev1.PowerHibernating))
			for range 5 {
				h.pass()
			}
			if h.observed+h.started+h.stopped != 0 {
				t.Error("the cloud was called")
			}
			if h.writes != 1 {
				t.Errorf("%d status writes, want 1", h.writes)
			}
			if got := h.reason(hivev1.ClusterUnreachable); got == "absent" {
				t.Error("condition Unreachable is absent")
			}
		})
	}
	t.Run("a cluster with reconcile-pause is not even written to", func(t *testing.T) {
		h := newHub(t, annotate(hivev1.AnnotationReconcilePause), wants(hivev1.PowerHibernating))
		h.pass()
		if h.writes+h.observed != 0 {
			t.Error("it was touched")
		}
	})
	t.Run("nor is one that could not be read whole", func(t *testing.T) {
		h := newHub(t, wants(hivev1.PowerHibernating))
		h.Client = blurred{h.Client}
		h.pass()
		if h.writes+h.observed != 0 {
			t.Error("it was touched")
		}
	})
	t.Run("a cluster that is gone is no error", func(t *testing.T) {
		h := newHub(t)
		if err := h.Client.Delete(t.Context(), h.get()); err != nil {
			t.Fatal(err)
		}
		if _, err := h.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a deleted cluster's client is forgotten", func(t *testing.T) {
		h := newHub(t, func(cd *hivev1.ClusterDeployment) {
			cd.DeletionTimestamp, cd.Finalizers = &metav1.Time{Time: time.Now()}, []string{"x/y"}
		})
		h.pass()
		if !h.forgotten {
			t.Error("it is kept")
		}
	})
}

func TestTheTimeOfTheClaimIsMirroredInTheStatus(t *testing.T) {
	ref := hivev1.ClusterPoolReference{Namespace: "p", PoolName: "p"}
	h := newHub(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.ClusterPoolRef = &ref })
	h.until("Running")
	at := metav1.NewTime(h.sim.clock.Now().Truncate(time.Second))
	claim := func(cd *hivev1.ClusterDeployment) {
		cd.Spec.ClusterPoolRef.ClaimName, cd.Spec.ClusterPoolRef.ClaimedTimestamp = "x", &at
	}
	h.edit(claim)
	delay := h.pass()
	if got := h.get().Status.ClaimedTimestamp; got != nil || delay <= 0 || delay > 3*time.Second {
		t.Errorf("just after the claim, status.claimedTimestamp is %s, and the next pass is due after %s", got, delay)
	}
	h.sim.clock.Step(delay)
	h.pass()
	if got := h.get().Status.ClaimedTimestamp; !got.Equal(&at) {
		t.Errorf("status.claimedTimestamp is %s", got)
	}
}

func TestAClaimAndAnotherChangeAreReportedAtOnce(t *testing.T) {
	h := newHub(t, func(cd *hivev1.ClusterDeployment) {
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "p", PoolName: "p"}
	})
	h.until("Running")
	at := metav1.NewTime(h.sim.clock.Now().Truncate(time.Second))
	h.edit(func(cd *hivev1.ClusterDeployment) {
		cd.Spec.ClusterPoolRef.ClaimName, cd.Spec.ClusterPoolRef.ClaimedTimestamp = "x", &at
		cd.Spec.PowerState = hivev1.PowerHibernating
	})
	h.pass()
	if st := h.get().Status; !st.ClaimedTimestamp.Equal(&at) || st.PowerState == "Running" {
		t.Errorf("the power state is %s, status.claimedTimestamp is %s", st.PowerState, st.ClaimedTimestamp)
	}
}

func TestTheFirstReportOnANewClusterIsPostponed(t *testing.T) {
	var created time.Time
	h := newHub(t, func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false })
	h.edit(func(cd *hivev1.ClusterDeployment) {
		created = h.sim.clock.Now().Truncate(time.Second)
		cd.CreationTimestamp = metav1.NewTime(created)
	})
	delay := h.pass()
	if got := h.get().Status; len(got.Conditions) > 0 || delay <= 0 || delay > 3*time.Second {
		t.Errorf("just after the creation, the conditions are %v, and the next pass is due after %s", got.Conditions, delay)
	}
	h.sim.clock.Step(delay)
	h.pass()
	if c := condition.Find(h.get().Status.Conditions, hivev1.ClusterHibernating); c == nil || c.Reason != hivev1.ReasonInitialized {
		t.Errorf("%s after the creation, condition Hibernating is %v", delay, c)
	}
}

func TestDrift(t *testing.T) {
	t.Run("a machine that stopped behind our back is started", func(t *testing.T) {
		h := newHub(t)
		h.until("Running")
		h.vms[1].State = cloud.Stopped
		h.until("StartingMachines")
		h.until("Running")
		if n := h.told("Warning MachinesStopped machines were stopped outside hotspare: w0;"); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	})
	t.Run("what was asked for is no drift", func(t *testing.T) {
		h := newHub(t)
		h.until("Running")
		h.edit(wants(hivev1.PowerHibernating))
		h.until("Hibernating")
		h.edit(wants(hivev1.PowerRunning))
		h.until("Running")
		if n := h.told("Warning "); n != 0 {
			t.Errorf("warned %d times", n)
		}
	})
	t.Run("a machine that was started behind our back is stopped", func(t *testing.T) {
		h := newHub(t, wants(hivev1.PowerHibernating))
		h.until("Hibernating")
		h.vms[1].State = cloud.Running
		h.until("Stopping")
		h.until("Hibernating")
		if n := h.told("Warning MachinesStarted machines were started outside hotspare: w0;"); n != 1 {
			t.Errorf("told %d times, want once", n)
		}
	})
	t.Run("D9: an API that goes silent shows", func(t *testing.T) {
		h := newHub(t)
		h.until("Running")
		h.apiDown = true
		h.until("WaitingForNodes")
		if got := h.reason(hivev1.ClusterUnreachable); got != "True ErrorConnectingToCluster" {
			t.Errorf("Unreachable is %s", got)
		}
	})
}

func TestOperatorsAreAskedOnTheWayUpOnly(t *testing.T) {
	h := newHub(t)
	h.pass()
	if !h.asked.Operators {
		t.Error("not asked on the way up")
	}
	h.pass()
	if h.asked.Operators {
		t.Error("asked of a running cluster")
	}
}

func TestAsked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hivev1.ClusterDeployment)
		want   bool
	}{
		"a change of the specification wakes": {func(cd *hivev1.ClusterDeployment) { cd.Generation++ }, true},
		"a pause wakes":                       {annotate(hivev1.AnnotationPowerPause), true},
		"a label wakes":                       {func(cd *hivev1.ClusterDeployment) { cd.Labels = map[string]string{"a": "b"} }, true},
		"a status does not":                   {func(cd *hivev1.ClusterDeployment) { cd.Status.PowerState = "Running" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := newCluster(time.Now())
			after := before.DeepCopy()
			c.change(after)
			if got := userChangePredicate().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// blurred reads ClusterDeployments as if not all of them could be read.
type blurred struct{ client.Client }

func (b blurred) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := b.Client.Get(ctx, key, o, opts...)
	if cd, is := o.(*hivev1.ClusterDeployment); is {
		cd.Unreadable = "spec.platform: 7 is not an object"
	}
	return err
}

func TestTheReportOfAClaimIsForgottenWithItsWriteOrItsCluster(t *testing.T) {
	claimedHub := func() *hub {
		h := newHub(t, func(cd *hivev1.ClusterDeployment) {
			cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "p", PoolName: "p"}
		})
		h.until("Running")
		at := metav1.NewTime(h.sim.clock.Now().Truncate(time.Second))
		h.edit(func(cd *hivev1.ClusterDeployment) {
			cd.Spec.ClusterPoolRef.ClaimName, cd.Spec.ClusterPoolRef.ClaimedTimestamp = "x", &at
		})
		h.sim.clock.Step(h.pass())
		if len(h.claimReports.due) != 1 {
			t.Errorf("before the write, the queue has %v", h.claimReports.due)
		}
		return h
	}
	t.Run("write", func(t *testing.T) {
		h := claimedHub()
		h.pass()
		writes := h.writes
		h.pass() // nothing changes
		if len(h.claimReports.due) != 0 || h.writes != writes {
			t.Errorf("after the write, the queue has %v", h.claimReports.due)
		}
	})
	t.Run("deletion", func(t *testing.T) {
		h := claimedHub()
		if err := h.Client.Delete(t.Context(), h.get()); err != nil {
			t.Fatal(err)
		}
		h.pass()
		if len(h.claimReports.due) != 0 {
			t.Errorf("after the deletion, the queue has %v", h.claimReports.due)
		}
	})
}

func TestTheReportOfANewOrDeletedClusterIsDelayed(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	for name, tc := range map[string]struct {
		created, deleted *metav1.Time
		installed        bool
		want             time.Duration
	}{
		"new":                               {created: ago(time.Second), want: 2 * time.Second},
		"not installed for a while":         {created: ago(time.Minute), want: 3*time.Second - time.Minute},
		"created in the future":             {created: ago(-time.Minute)},
		"installed":                         {created: ago(time.Second), installed: true},
		"just deleted":                      {created: ago(time.Hour), deleted: ago(time.Second), installed: true, want: 2 * time.Second},
		"deleted before it was installed":   {created: ago(time.Hour), deleted: ago(0), want: 3 * time.Second},
		"deleted a while ago, still exists": {created: ago(time.Hour), deleted: ago(4 * time.Second), installed: true, want: -time.Second},
		"deleted in the future":             {created: ago(time.Hour), deleted: ago(-time.Minute), installed: true},
	} {
		t.Run(name, func(t *testing.T) {
			cd := &hivev1.ClusterDeployment{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *tc.created, DeletionTimestamp: tc.deleted},
				Spec:       hivev1.ClusterDeploymentSpec{Installed: tc.installed},
			}
			if got := new(Reconciler).reportDelay(cd, cd, now); got != tc.want {
				t.Errorf("delayed by %v, want %v", got, tc.want)
			}
		})
	}
}
