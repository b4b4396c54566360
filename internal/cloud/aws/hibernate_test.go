package aws

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/aws/ec2test"
	"hotspare.io/hotspare/internal/fault"
)

// newHibernatingLab returns a lab and a cluster that should be suspended.
func newHibernatingLab(t *testing.T) (*lab, cloud.Ref) {
	t.Helper()
	l, r := newLab(t), ref(t, infraID)
	l.hibernation = true
	r.Depth = cloud.DepthSuspend
	return l, r
}

// run adds a running instance and returns its ID.
func (l *lab) run(name string, i ec2test.Instance) string {
	i.State, i.Tags = ec2test.Running, tags(infraID, name)
	return l.ec2.AddInstance(i)
}

func (l *lab) wantChanges(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, l.changes()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestInstancesThatCannotHibernateAreStopped(t *testing.T) {
	l, ref := newHibernatingLab(t)
	can := l.run("worker-0", ec2test.Instance{Hibernation: true})
	cannot := l.run("worker-1", ec2test.Instance{})
	master := l.run("master-0", ec2test.Instance{Hibernation: true})
	for _, m := range l.observe(t, ref) {
		if got := m.DepthObstacle; (got != "") != strings.Contains(m.Name, cannot) {
			t.Errorf("the obstacle of %s is %q", m.Name, got)
		}
	}
	if err := l.Stop(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	l.wantChanges(t, "StopInstances --hibernate "+can, "StopInstances "+cannot, "StopInstances --hibernate "+master)
	l.ec2.AdvanceStates()
	got := l.observe(t, ref)
	for _, m := range got {
		if want := map[bool]cloud.Depth{true: "", false: cloud.DepthSuspend}[strings.Contains(m.Name, cannot)]; m.State != cloud.Stopped || m.Depth != want {
			t.Errorf("%s is %s at depth %q, want %q", m.Name, m.State, m.Depth, want)
		}
	}
	ref.Depth = cloud.DepthStop
	for _, m := range l.observe(t, ref) {
		if m.DepthObstacle != "" {
			t.Errorf("nobody wants it to hibernate, and its obstacle is %q", m.DepthObstacle)
		}
	}
}

func TestAHibernatedInstanceIsNotPutDeeper(t *testing.T) {
	l, ref := newHibernatingLab(t)
	l.run("worker-0", ec2test.Instance{Hibernation: true})
	for _, ref.Depth = range []cloud.Depth{cloud.DepthSuspend, cloud.DepthStop} {
		if err := l.Stop(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		l.ec2.AdvanceStates()
	}
	if n := len(l.changes()); n != 1 {
		t.Errorf("%d calls: %v", n, l.changes())
	}
	if got := l.observe(t, ref)[0]; got.IsAsleepAbove(cloud.DepthStop) || got.Depth != cloud.DepthSuspend {
		t.Errorf("%+v would be put deeper", got)
	}
}

func TestTheControlPlaneWaitsForWorkersThatDoNotHibernate(t *testing.T) {
	for name, c := range map[string]struct {
		worker  ec2test.Instance
		since   time.Duration // how long ago the hibernation has begun; 0 is not yet
		refused bool
		kind    fault.Kind
	}{
		"it is not ready yet":       {ec2test.Instance{Unready: true}, 0, false, fault.Wait},
		"it is still not ready":     {ec2test.Instance{Unready: true}, agentTimeout, false, fault.Wait},
		"it does not become ready":  {ec2test.Instance{Unready: true}, agentTimeout + 1, true, fault.Denied},
		"EC2 refuses":               {ec2test.Instance{HibernationRefusal: noHibernation("it")}, 0, true, fault.Denied},
		"EC2 cannot for its family": {ec2test.Instance{HibernationRefusal: &ec2test.Error{Status: 400, Code: "UnsupportedOperation", Message: "no"}}, 0, true, fault.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newHibernatingLab(t)
			now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
			l.Actuator.clock = testingclock.NewFakePassiveClock(now)
			if c.since > 0 {
				ref.Since = now.Add(-c.since)
			}
			c.worker.Hibernation = true
			bad, good := l.run("worker-0", c.worker), l.run("worker-1", ec2test.Instance{Hibernation: true})
			master := l.run("master-0", ec2test.Instance{Hibernation: true})
			err := l.Stop(t.Context(), ref)
			refused, others := cloud.SplitRefusedDepths(err)
			if fault.KindOf(err) != c.kind || (len(refused) == 1) != c.refused || (others == nil) != c.refused || strings.Contains(err.Error(), key.SecretAccessKey) {
				t.Fatalf("got %v, which is %v", err, fault.KindOf(err))
			}
			if c.refused && (refused[0].Machine != infraID+"-worker-0 ("+bad+")" || refused[0].Depth != cloud.DepthSuspend) {
				t.Errorf("refused: %+v", refused[0])
			}
			l.wantStates(t, map[string]string{bad: ec2test.Running, good: ec2test.Stopping, master: ec2test.Running})
			ref.RefusedDepths = []cloud.Depth{cloud.DepthSuspend}
			if err := l.Stop(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			l.wantStates(t, map[string]string{bad: ec2test.Stopping, good: ec2test.Stopping, master: ec2test.Stopping})
		})
	}
}

func TestAWorkerThatMayNotBeStoppedDoesNotKeepTheControlPlaneAwake(t *testing.T) {
	l, ref := newHibernatingLab(t)
	bad := l.run("worker-0", ec2test.Instance{Hibernation: true, Refusal: protected("it")})
	master := l.run("master-0", ec2test.Instance{Hibernation: true})
	if err := l.Stop(t.Context(), ref); fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
	l.wantStates(t, map[string]string{bad: ec2test.Running, master: ec2test.Stopping})
}

func TestWhenAWSDoesNotHibernateNoMoreIsAsked(t *testing.T) {
	l, ref := newHibernatingLab(t)
	l.run("worker-0", ec2test.Instance{Hibernation: true})
	l.run("worker-1", ec2test.Instance{})
	l.ec2.BeforeAction(func(string) { l.ec2.ThrottleNextCalls(1); l.ec2.BeforeAction(nil) })
	if err := l.Stop(t.Context(), ref); fault.KindOf(err) != fault.Wait {
		t.Errorf("got %v", err)
	}
	if got := l.changes(); len(got) != 0 {
		t.Errorf("asked for %v", got)
	}
}

// An instance that cannot stop because of its spot request is terminated, but not because it cannot
// hibernate.
func TestSpotInstancesHibernateAndAreNotTerminatedForIt(t *testing.T) {
	l, ref := newHibernatingLab(t)
	can := l.run("worker-0", ec2test.Instance{Spot: true, Persistent: true, Hibernation: true})
	unready := l.run("worker-1", ec2test.Instance{Spot: true, Persistent: true, Hibernation: true, Unready: true})
	once := l.run("worker-2", ec2test.Instance{Spot: true})
	if err := l.Stop(t.Context(), ref); fault.KindOf(err) != fault.Wait {
		t.Errorf("got %v", err)
	}
	l.wantStates(t, map[string]string{can: ec2test.Stopping, unready: ec2test.Running, once: ec2test.ShuttingDown})
}
