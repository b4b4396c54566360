package claim

import (
	"testing"
	"time"

	"hotspare.io/hotspare/internal/heartbeat"
)

func TestHeartbeats(t *testing.T) {
	beat := func(seen, missing time.Duration) Snapshot {
		return served(func(f *Snapshot) {
			f.Heartbeat = &heartbeat.Observation{Timeout: "90s", SeenAt: noon.Add(-seen)}
			if missing >= 0 {
				f.Heartbeat.MissingSince = noon.Add(-missing)
			}
		})
	}
	const usual, no = "Pending=False/ClusterClaimed ClusterRunning=True/Running ", -1
	change := func(s Snapshot, change func(*Snapshot)) Snapshot { change(&s); return s }
	for name, c := range map[string]struct {
		in   Snapshot
		want string
	}{
		"it is on time":                                           {beat(0, no), usual + "next 1m0s"},
		"it is late":                                              {beat(59*time.Second, no), usual + "next 1s"},
		"it is overdue, which is reported first":                  {beat(time.Minute, no), usual + "HeartbeatMissing=True/HeartbeatOverdue next 30s"},
		"however long the hub was away":                           {beat(time.Hour, no), usual + "HeartbeatMissing=True/HeartbeatOverdue next 30s"},
		"it was reported as overdue a moment ago":                 {beat(time.Hour, 0), usual + "HeartbeatMissing=True/HeartbeatOverdue next 31s"},
		"it was reported as overdue, and is nearly over":          {beat(time.Hour, 30*time.Second), usual + "HeartbeatMissing=True/HeartbeatOverdue next 1s"},
		"it is over":                                              {beat(91*time.Second, 31*time.Second), usual + "HeartbeatMissing=True/HeartbeatOverdue delete ClusterClaim: HeartbeatMissing"},
		"a new process waits for the whole timeout":               {beat(61*time.Second, time.Hour), usual + "HeartbeatMissing=True/HeartbeatOverdue next 29s"},
		"it is renewed after it was reported":                     {beat(0, 29*time.Second), usual + "HeartbeatMissing=False/HeartbeatOnTime next 1m0s"},
		"a claim that waits needs one too":                        {change(waiting(nil), func(f *Snapshot) { f.Heartbeat = beat(91*time.Second, 31*time.Second).Heartbeat }), "Pending=True/NoClusters HeartbeatMissing=True/HeartbeatOverdue delete ClusterClaim: HeartbeatMissing"},
		"a new claim is looked at for its heartbeat":              {change(waiting(nil), func(f *Snapshot) { f.Created, f.PoolHasReady, f.Heartbeat = noon, true, beat(0, no).Heartbeat }), "next 5s"},
		"the end of a lifetime comes first":                       {change(beat(91*time.Second, 31*time.Second), func(f *Snapshot) { f.Lifetime = span("1h") }), usual + "lifetime delete ClusterClaim: LifetimeElapsed"},
		"the next of both wakes":                                  {change(beat(0, no), func(f *Snapshot) { f.Lifetime = span("1h30s") }), usual + "lifetime next 30s"},
		"a timeout that is none is reported, and ends no claim":   {change(beat(time.Hour, time.Hour), func(f *Snapshot) { f.Heartbeat.Timeout = "soon" }), usual + "HeartbeatMissing=False/HeartbeatOnTime Stalled/InvalidHeartbeatTimeout"},
		"a timeout that is too short ends no claim":               {change(beat(time.Hour, no), func(f *Snapshot) { f.Heartbeat.Timeout = "9s" }), usual + "Stalled/InvalidHeartbeatTimeout"},
		"a claim that no longer has one":                          {change(beat(time.Hour, time.Hour), func(f *Snapshot) { f.Heartbeat.Timeout = "" }), usual + "HeartbeatMissing=False/HeartbeatOnTime"},
		"a claim that is being deleted needs none":                {change(beat(time.Hour, time.Hour), func(f *Snapshot) { f.Deleting = true }), "ClusterRunning=False/ClusterDeleting"},
		"a claim that cannot be read does not end by a heartbeat": {change(beat(time.Hour, time.Hour), func(f *Snapshot) { f.Unreadable = "x" }), usual + "Stalled/Unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formatPlan(Decide(c.in)); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
