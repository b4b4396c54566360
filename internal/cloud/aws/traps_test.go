package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/fault"
)

// EC2 rejects a whole call if one instance is in the wrong state (Hive issue 1206, cloud-custodian
// 6014): such an instance must not be named.
func TestOnlyLegalStatesAreAskedFor(t *testing.T) {
	all := []string{ec2test.Pending, ec2test.Running, ec2test.Stopping, ec2test.ShuttingDown, ec2test.Stopped, ec2test.Terminated, "mothballed"}
	for _, c := range []struct {
		verb string
		call func(*lab) func(context.Context, cloud.Ref) error
		want string
	}{
		{"start", func(l *lab) func(context.Context, cloud.Ref) error { return l.Start }, "StartInstances i-stopped"},
		{"stop", func(l *lab) func(context.Context, cloud.Ref) error { return l.Stop }, "StopInstances i-running"},
	} {
		t.Run(c.verb, func(t *testing.T) {
			l := newLab(t)
			for _, state := range all {
				l.ec2.AddInstance(ec2test.Instance{ID: "i-" + state, State: state, Tags: tags(infraID, "worker-0")})
			}
			if err := c.call(l)(t.Context(), ref(t, infraID)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.want}, l.changes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheControlPlaneIsAskedFirstToStartAndLastToStop(t *testing.T) {
	l := newLab(t)
	w := l.workers(infraID, 1)[0]
	m := l.master(infraID)
	for _, call := range []func(context.Context, cloud.Ref) error{l.Start, l.Stop} {
		if err := call(t.Context(), ref(t, infraID)); err != nil {
			t.Fatal(err)
		}
		l.ec2.AdvanceStates()
	}
	want := []string{"StartInstances " + m, "StartInstances " + w, "StopInstances " + w, "StopInstances " + m}
	if diff := cmp.Diff(want, l.changes()); diff != "" {
		t.Error(diff)
	}
}

// between calls f once, after the list and before the first change.
func (l *lab) between(f func()) {
	l.ec2.BeforeAction(func(action string) {
		if action != "DescribeInstances" && f != nil {
			f()
			f = nil
		}
	})
}

func TestWhatChangesBetweenListAndCallStopsNoOther(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *lab, string){
		"it vanishes":      func(_ *testing.T, l *lab, id string) { l.ec2.RemoveInstance(id) },
		"it is terminated": func(t *testing.T, l *lab, id string) { l.set(t, id, ec2test.ShuttingDown) },
		"it stops":         func(t *testing.T, l *lab, id string) { l.set(t, id, ec2test.Stopping) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			all := l.workers(infraID, 20)
			l.between(func() { change(t, l, all[7]) })
			if err := l.Start(t.Context(), ref(t, infraID)); err != nil {
				t.Fatal(err)
			}
			for id, state := range l.ec2.InstanceStates() {
				if id != all[7] && state != ec2test.Pending {
					t.Errorf("%s is %s", id, state)
				}
			}
			if got := l.changes(); len(got) != 3 {
				t.Errorf("%d calls, want 3: all, those that the message does not name, that one: %v", len(got), got)
			}
		})
	}
}

func (l *lab) set(t *testing.T, id, state string) {
	t.Helper()
	l.ec2.ChangeInstance(t, id, func(i *ec2test.Instance) { i.State = state })
}

// An error that names no instance, such as one about capacity, is no reason to give up.
func TestFullForOneTypeStartsTheOthers(t *testing.T) {
	l := newLab(t)
	all := l.workers(infraID, 16)
	l.ec2.ChangeInstance(t, all[5], func(i *ec2test.Instance) {
		i.Refusal = &ec2test.Error{Status: 500, Code: "InsufficientInstanceCapacity", Message: "We currently do not have sufficient m6i.xlarge capacity in us-east-1a."}
	})
	err := l.Start(t.Context(), ref(t, infraID))
	if fault.KindOf(err) != fault.Capacity || fault.RetryAfter(err) == 0 || !strings.Contains(err.Error(), all[5]) || strings.Count(err.Error(), "i-") != 1 {
		t.Errorf("got %v, which is %v", err, fault.KindOf(err))
	}
	pending := 0
	for _, state := range l.ec2.InstanceStates() {
		if state == ec2test.Pending {
			pending++
		}
	}
	if pending != 15 {
		t.Errorf("%d start, want 15", pending)
	}
}

func TestManyAreAskedForInBatches(t *testing.T) {
	l := newLab(t)
	l.workers(infraID, 2*batchSize+1)
	if err := l.Start(t.Context(), ref(t, infraID)); err != nil {
		t.Fatal(err)
	}
	if got := l.changes(); len(got) != 3 {
		t.Errorf("%d calls, want 3", len(got))
	}
}

// If the control plane were stopped although the workers' stop was rejected, the order would be
// lost.
func TestWhenAWSDoesNotListenNoMoreIsAsked(t *testing.T) {
	l := newLab(t)
	l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Tags: tags(infraID, "master-0")})
	l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Tags: tags(infraID, "worker-0")})
	l.ec2.BeforeAction(func(string) { l.ec2.ThrottleNextCalls(1); l.ec2.BeforeAction(nil) })
	err := l.Stop(t.Context(), ref(t, infraID))
	if fault.KindOf(err) != fault.Wait || fault.RetryAfter(err) == 0 {
		t.Errorf("got %v, which is %v", err, fault.KindOf(err))
	}
	if got := l.changes(); len(got) != 0 {
		t.Errorf("asked for %v", got)
	}
}

func TestFailedIsOnlyWhatCouldNotStart(t *testing.T) {
	l := newLab(t)
	id := l.workers(infraID, 1)[0]
	for _, c := range []struct {
		broken bool
		want   cloud.State
	}{{true, cloud.Failed}, {false, cloud.Running}} {
		l.ec2.ChangeInstance(t, id, func(i *ec2test.Instance) { i.Broken = c.broken })
		if err := l.Start(t.Context(), ref(t, infraID)); err != nil {
			t.Fatal(err)
		}
		l.ec2.AdvanceStates()
		if got := l.observe(t, ref(t, infraID)); !got.AllIn(c.want) {
			t.Errorf("got %v, want %s", got, c.want)
		}
	}
	if err := l.Stop(t.Context(), ref(t, infraID)); err != nil {
		t.Fatal(err)
	}
	l.ec2.AdvanceStates()
	if got := l.observe(t, ref(t, infraID)); !got.AllIn(cloud.Stopped) {
		t.Errorf("stopped by us: %v", got)
	}
}

func TestSpotInstances(t *testing.T) {
	spot := func(l *lab, name string, i ec2test.Instance) string {
		i.State, i.Spot, i.Tags = ec2test.Running, true, tags(infraID, name)
		return l.ec2.AddInstance(i)
	}
	t.Run("those of one-time requests are terminated, all others are stopped", func(t *testing.T) {
		l := newLab(t)
		want := map[string]string{
			l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Tags: tags(infraID, "master-0")}):     ec2test.Stopping,
			l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Tags: tags(infraID, "worker-0")}):     ec2test.Stopping,
			l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Tags: tags("other-12345", "worker")}): ec2test.Running,
			spot(l, "spot-0", ec2test.Instance{}):                 ec2test.ShuttingDown,
			spot(l, "spot-1", ec2test.Instance{Persistent: true}): ec2test.Stopping,
			spot(l, "spot-2", ec2test.Instance{}):                 ec2test.ShuttingDown,
		}
		if err := l.Stop(t.Context(), ref(t, infraID)); err != nil {
			t.Fatal(err)
		}
		l.wantStates(t, want)
		l.ec2.AdvanceStates()
		if got := l.observe(t, ref(t, infraID)); len(got) != 3 || !got.AllIn(cloud.Stopped) {
			t.Errorf("saw %v", got)
		}
	})
	t.Run("one of the control plane is never terminated: it has etcd's data", func(t *testing.T) {
		l := newLab(t)
		id := spot(l, "master-0", ec2test.Instance{})
		if err := l.Stop(t.Context(), ref(t, infraID)); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), id) {
			t.Errorf("got %v", err)
		}
		l.wantStates(t, map[string]string{id: ec2test.Running})
	})
	t.Run("a persistent one that cannot be stopped is not terminated", func(t *testing.T) {
		l := newLab(t)
		id := spot(l, "worker-0", ec2test.Instance{Persistent: true, Store: true})
		if err := l.Stop(t.Context(), ref(t, infraID)); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), id) {
			t.Errorf("got %v", err)
		}
		l.wantStates(t, map[string]string{id: ec2test.Running})
	})
	t.Run("one that is not spot is not terminated, whatever EC2 says", func(t *testing.T) {
		l := newLab(t)
		id := l.ec2.AddInstance(ec2test.Instance{State: ec2test.Running, Store: true, Tags: tags(infraID, "worker-0")})
		if err := l.Stop(t.Context(), ref(t, infraID)); fault.KindOf(err) != fault.Denied {
			t.Errorf("got %v", err)
		}
		l.wantStates(t, map[string]string{id: ec2test.Running})
	})
	t.Run("many are terminated in one call", func(t *testing.T) {
		l := newLab(t)
		for n := range 50 {
			spot(l, fmt.Sprintf("spot-%d", n), ec2test.Instance{})
		}
		if err := l.Stop(t.Context(), ref(t, infraID)); err != nil {
			t.Fatal(err)
		}
		n := len(slices.DeleteFunc(l.changes(), func(c string) bool { return !strings.HasPrefix(c, "TerminateInstances") }))
		if got := l.observe(t, ref(t, infraID)); n != 1 || !got.AllIn(cloud.Stopping) {
			t.Errorf("%d calls to terminate: %v", n, got)
		}
	})
}

func TestLost(t *testing.T) {
	l := newLab(t)
	var ids, want []string
	for n := range 250 {
		state := []string{ec2test.Running, ec2test.Stopped, ec2test.Terminated, ec2test.ShuttingDown}[n%4]
		id := "aws:///us-east-1a/" + l.ec2.AddInstance(ec2test.Instance{State: state})
		ids = append(ids, id)
		if n%4 > 1 {
			want = append(want, id)
		}
	}
	ids = append(ids, "aws:///us-east-1a/i-never", "gce://project/zone/i-other", "")
	want = append(want, "aws:///us-east-1a/i-never")
	got, err := l.ListLostInstances(t.Context(), ref(t, infraID), ids)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	l.ec2.ExpireAllKeys()
	if got, err := l.ListLostInstances(t.Context(), ref(t, infraID), ids); fault.KindOf(err) != fault.Denied || len(got) > 0 {
		t.Errorf("with expired credentials: %v lost, %v", len(got), err)
	}
}

func TestARequestThatHangsHasADeadlineOfItsOwn(t *testing.T) {
	l := newLab(t)
	l.requestTimeout = 20 * time.Millisecond
	l.ec2.HangEveryCall()
	_, err := l.Observe(t.Context(), ref(t, infraID))
	if fault.KindOf(err) != fault.Unknown || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("got %v", err)
	}
}
