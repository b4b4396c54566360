package heartbeat

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// observed is a heartbeat of 90 s that was seen that long ago, and is missing for that long; negative if it is not.
func observed(seen, missing time.Duration) Observation {
	o := Observation{Timeout: "90s", SeenAt: noon.Add(-seen)}
	if missing >= 0 {
		o.MissingSince = noon.Add(-missing)
	}
	return o
}

// formatPlan returns a plan as one line.
func formatPlan(p Plan) string {
	var out []string
	if p.Missing.Status != "" {
		out = append(out, fmt.Sprintf("%s/%s", p.Missing.Status, p.Missing.Reason))
	}
	if p.Invalid.IsTrue() {
		out = append(out, p.Invalid.Reason)
	}
	if p.End {
		out = append(out, "end")
	}
	if p.Next > 0 {
		out = append(out, "next "+p.Next.String())
	}
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	const no = -1
	for name, c := range map[string]struct {
		in   Observation
		want string
	}{
		"it is on time":                                  {observed(0, no), "next 1m0s"},
		"it is late":                                     {observed(59*time.Second, no), "next 1s"},
		"it is overdue, which is reported first":         {observed(time.Minute, no), "True/HeartbeatOverdue next 30s"},
		"however long the hub was away":                  {observed(time.Hour, no), "True/HeartbeatOverdue next 30s"},
		"it was reported as overdue a moment ago":        {observed(time.Hour, 0), "True/HeartbeatOverdue next 31s"},
		"it was reported as overdue, and is nearly over": {observed(time.Hour, 30*time.Second), "True/HeartbeatOverdue next 1s"},
		"it is over":                                     {observed(91*time.Second, 31*time.Second), "True/HeartbeatOverdue end"},
		"a new process waits for the whole timeout":      {observed(61*time.Second, time.Hour), "True/HeartbeatOverdue next 29s"},
		"it is renewed after it was reported":            {observed(0, 29*time.Second), "False/HeartbeatOnTime next 1m0s"},
		"a timeout that is none ends nothing":            {Observation{Timeout: "soon", MissingSince: noon.Add(-time.Hour)}, "False/HeartbeatOnTime InvalidHeartbeatTimeout"},
		"a timeout that is too short ends nothing":       {Observation{Timeout: "9s"}, "InvalidHeartbeatTimeout"},
		"an object that has none any more":               {Observation{MissingSince: noon.Add(-time.Hour)}, "False/HeartbeatOnTime"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(Snapshot{Now: noon, Object: "claim", Observation: c.in})
			if got := formatPlan(p); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestTheMessageNamesTheObject(t *testing.T) {
	p := Decide(Snapshot{Now: noon, Object: "set", Observation: observed(time.Hour, -1)})
	want := "The process that uses the set has not renewed annotation hotspare.io/heartbeat: hotspare releases the set unless it does so within 30s"
	if p.Missing.Message != want {
		t.Errorf("got  %q\nwant %q", p.Missing.Message, want)
	}
}
