package openstack

import (
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// newSleepingLab returns a lab and a running cluster with a worker, which should sleep at the depth.
func newSleepingLab(t *testing.T, depth cloud.Depth) (*lab, cloud.Ref) {
	t.Helper()
	l := newLab(t)
	ref := l.cluster(1)
	ref.Depth = depth
	l.set("master-0", "ACTIVE", "")
	l.set("worker-0", "ACTIVE", "")
	return l, ref
}

// stop calls Stop and returns the refused depths.
func (l *lab) stop(t *testing.T, ref cloud.Ref) []*cloud.DepthRefusedError {
	t.Helper()
	refused, others := cloud.SplitRefusedDepths(l.Stop(t.Context(), ref))
	must(t, others)
	return refused
}

func TestServersArePausedAndSuspended(t *testing.T) {
	for depth, c := range map[cloud.Depth]struct{ action, state string }{
		cloud.DepthFreeze:  {"pause", "Stopped (freeze)"},
		cloud.DepthSuspend: {"suspend", "Stopped (suspend)"},
		cloud.DepthStop:    {"os-stop", "Stopped"},
	} {
		t.Run(string(depth), func(t *testing.T) {
			l, ref := newSleepingLab(t, depth)
			for range 4 {
				l.stop(t, ref)
				l.Step()
			}
			l.wantTold(t, "master-0 "+c.action, "worker-0 "+c.action)
			l.sees(t, ref, "master-0 "+c.state+", worker-0 "+c.state)
		})
	}
}

// Nova stops and suspends only running servers.
func TestAServerIsWokenToSleepMoreDeeply(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		depth  cloud.Depth
		shelve bool
		want   []string
	}{
		"from a pause to a suspension": {"PAUSED", cloud.DepthSuspend, false, []string{"worker-0 suspend", "worker-0 unpause"}},
		"from a pause to a stop":       {"PAUSED", cloud.DepthStop, false, []string{"worker-0 os-stop", "worker-0 unpause"}},
		"from a suspension to a stop":  {"SUSPENDED", cloud.DepthStop, false, []string{"worker-0 os-stop", "worker-0 resume"}},
		"from a suspension to a shelf": {"SUSPENDED", cloud.DepthStop, true, []string{"worker-0 resume", "worker-0 shelve"}},
		"but never to sleep less":      {"SUSPENDED", cloud.DepthFreeze, false, nil},
		"nor from a shelf":             {"SHELVED_OFFLOADED", cloud.DepthStop, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newSleepingLab(t, c.depth)
			ref.Shelve = c.shelve
			l.set("master-0", "SHUTOFF", "")
			l.set("worker-0", c.status, "")
			for range 4 {
				l.stop(t, ref)
				l.Step()
			}
			l.wantTold(t, c.want...)
		})
	}
}

func TestARefusalToSuspend(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		message string
		refused bool
		kind    fault.Kind
	}{
		"the policy of the cloud":     {403, "Policy doesn't allow os_compute_api:os-suspend-server:suspend to be performed.", true, fault.Denied},
		"its hypervisor":              {409, "Operation 'suspend' not supported for instance with vDPA ports", true, fault.Denied},
		"its accelerators":            {403, "Feature not supported with instances that have accelerators.", true, fault.Denied},
		"a quota":                     {403, "Quota exceeded", false, fault.Capacity},
		"the API does not have it":    {501, "Not implemented", true, fault.Denied},
		"the request":                 {400, "Operation 'suspend' not supported for SEV-enabled instance", true, fault.Denied},
		"its state":                   {409, "Cannot 'suspend' instance while it is in task_state image_snapshot", false, fault.Wait},
		"too many calls":              {429, "slow down", false, fault.Wait},
		"a server of the cloud fails": {500, "oh", false, fault.Wait},
	} {
		t.Run(name, func(t *testing.T) {
			l, ref := newSleepingLab(t, cloud.DepthSuspend)
			l.do(func() {
				l.named(infraID + "-worker-0").refused = map[string]failure{"suspend": {status: c.status, body: c.message}}
			})
			err := l.Stop(t.Context(), ref)
			mustSay(t, err, c.kind, infraID+"-worker-0", c.message)
			refused, _ := cloud.SplitRefusedDepths(err)
			if (len(refused) == 1) != c.refused {
				t.Fatalf("refused: %v", refused)
			}
			l.sees(t, ref, "master-0 Running, worker-0 Running")
			if !c.refused {
				return
			}
			ref.RefusedDepths = []cloud.Depth{cloud.DepthSuspend}
			for range 4 {
				l.stop(t, ref)
				l.Step()
			}
			l.sees(t, ref, "master-0 Stopped, worker-0 Stopped")
		})
	}
}

// Nova accepts the request, and returns the server to ACTIVE when its hypervisor cannot do it.
func TestAServerThatCannotBeSuspendedIsStoppedInstead(t *testing.T) {
	l, ref := newSleepingLab(t, cloud.DepthSuspend)
	l.do(func() { l.named(infraID + "-worker-0").unable = true })
	began := l.clock
	if got := l.stop(t, ref); len(got) > 0 {
		t.Fatalf("refused at once: %v", got)
	}
	l.Step()
	ref.Since = began
	got := l.stop(t, ref)
	if len(got) != 1 || got[0].Machine != infraID+"-worker-0" || got[0].Depth != cloud.DepthSuspend || !strings.Contains(got[0].Reason, "openstack server event list") {
		t.Fatalf("refused: %v", got)
	}
	later := ref
	later.Since = l.clock.Add(time.Hour)
	if got := l.stop(t, later); len(got) > 0 {
		t.Errorf("the next hibernation does not try again: %v", got)
	}
}

func TestAServerThatWasResumedMeanwhileIsSuspendedAgain(t *testing.T) {
	l, ref := newSleepingLab(t, cloud.DepthSuspend)
	ref.Since = l.clock
	l.stop(t, ref)
	l.Step()
	l.set("worker-0", "ACTIVE", "")
	if got := l.stop(t, ref); len(got) > 0 {
		t.Errorf("refused: %v", got)
	}
	l.sees(t, ref, "master-0 Running, worker-0 Stopping")
}

func TestAServerInErrorIsStoppedAlsoWhereOthersAreSuspended(t *testing.T) {
	l, ref := newSleepingLab(t, cloud.DepthSuspend)
	l.set("worker-0", "ERROR", "") // Nova does not suspend such servers
	l.set("master-0", "SHUTOFF", "")
	l.stop(t, ref)
	l.wantTold(t, "worker-0 os-stop")
}

func TestACredentialThatMayNotReadEventsIsNamed(t *testing.T) {
	l, ref := newSleepingLab(t, cloud.DepthSuspend)
	ref.Since = l.clock
	l.do(func() { l.noEvents = true })
	mustSay(t, l.Stop(t.Context(), ref), fault.Denied, "os-instance-actions", "Secret clusters/os-creds", "worker-0")
}
