package power

import (
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// depth sets the wanted depth. The platform has depth freeze, and suspend with an obstacle.
func depth(wanted cloud.Depth) with {
	return func(s *Snapshot) {
		s.WantedDepth = wanted
		s.Depths = []cloud.DepthSupport{{Depth: cloud.DepthFreeze}, {Depth: cloud.DepthSuspend, Obstacle: "The instance type cannot: choose another."}}
	}
}

// asleep sets the machines: "name:depth …".
func asleep(text string) with {
	return func(s *Snapshot) {
		s.Machines = nil
		for field := range strings.FieldsSeq(text) {
			name, depth, _ := strings.Cut(field, ":")
			s.Machines = append(s.Machines, cloud.Machine{Name: name, State: cloud.Stopped, Depth: cloud.Depth(depth)})
		}
	}
}

func obstacle(s *Snapshot) { s.Machines[0].DepthObstacle = "it was starting" }

func refusedFreeze(s *Snapshot) {
	s.Record.RefusedDepths = []hivev1.RefusedDepth{{Depth: "freeze", Reason: "machine m0 cannot sleep at depth freeze: no memory"}}
}

func TestTheMessageNamesTheDepth(t *testing.T) {
	for name, c := range map[string]struct {
		in   []with
		want string
	}{
		"a stop that is wanted is not worth a word":   {[]with{depth(""), asleep("m0: w0:stop")}, "The cluster is hibernating."},
		"another depth is named":                      {[]with{depth("freeze"), asleep("m0:freeze w0:freeze")}, "The cluster is hibernating at depth freeze."},
		"a depth that does not exist, and its effect": {[]with{noDepths, asleep("m0: w0:")}, "The cluster is hibernating at depth stop. The platform sim does not support the requested depth freeze."},
		"an obstacle of the platform": {
			[]with{depth("suspend"), asleep("m0:")},
			"The cluster is hibernating at depth stop. The requested depth suspend is not possible. The instance type cannot: choose another.",
		},
		"a refusal": {
			[]with{depth("freeze"), asleep("m0: w0:"), refusedFreeze},
			"The cluster is hibernating at depth stop. The requested depth freeze is not possible: machine m0 cannot sleep at depth freeze: no memory.",
		},
		"what only one machine cannot": {
			[]with{depth("freeze"), asleep("m0: w0:freeze"), obstacle},
			"The cluster is hibernating, its machines at depths freeze (w0), stop (m0). The requested depth freeze is not possible: m0: it was starting.",
		},
		"a wish that came too late": {
			[]with{depth("freeze"), asleep("m0: w0:")},
			"The cluster is hibernating at depth stop. The requested depth freeze applies to the next hibernation.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(seen(append([]with{hibernate, came("Hibernating", time.Hour)}, c.in...)...), now)
			if d.Hibernating.Message != c.want || d.PowerState != hivev1.StatusHibernating || d.Action != NoAction {
				t.Errorf("%s\ngot  %q\nwant %q", brief(d), d.Hibernating.Message, c.want)
			}
			agree(t, d)
		})
	}
}

func noDepths(s *Snapshot) { s.WantedDepth, s.Depths = cloud.DepthFreeze, nil }

func TestMachinesArePutDeeper(t *testing.T) {
	for name, c := range map[string]struct {
		in   []with
		want Action
	}{
		"those that sleep less deeply than wanted":   {[]with{depth("stop"), asleep("m0:freeze w0:")}, Stop},
		"not those that sleep as wanted":             {[]with{depth("freeze"), asleep("m0:freeze w0:freeze")}, NoAction},
		"not those that sleep more deeply":           {[]with{depth("freeze"), asleep("m0: w0:")}, NoAction},
		"those whose depth is not wanted any more":   {[]with{depth("suspend"), asleep("m0:freeze w0:freeze")}, Stop},
		"not because a depth was refused for others": {[]with{depth("freeze"), asleep("m0:freeze w0:"), refusedFreeze}, NoAction},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen(append([]with{hibernate, going("Hibernating", time.Minute)}, c.in...)...)
			d := Decide(s, now)
			if d.Action != c.want || (d.Action == Stop) != (d.PowerState == hivev1.ReasonStopping) {
				t.Errorf("got %s", d)
			}
			if d.Action == Stop && !strings.Contains(d.Hibernating.Message, "Waiting for machines to sleep at depth stop: m0") {
				t.Errorf("message %q", d.Hibernating.Message)
			}
		})
	}
}

func TestARefusedDepthIsRecordedOnce(t *testing.T) {
	s := seen(hibernate, going("Hibernating", time.Minute), depth("freeze"))
	refuse := func(names ...string) []*cloud.DepthRefusedError {
		var out []*cloud.DepthRefusedError
		for _, n := range names {
			out = append(out, &cloud.DepthRefusedError{Depth: cloud.DepthFreeze, Machine: n, Reason: "it is too large"})
		}
		return out
	}
	d, ok := Decide(s, now).AfterRefusedDepths(refuse("w1", "w0"))
	if !ok || d.Next != nextPassDelay || d.Hibernating.Reason != hivev1.ReasonStopping || d.Record.Attempts != 0 {
		t.Errorf("got %s, %t", d, ok)
	}
	const want = "machine w0 cannot sleep at depth freeze: it is too large (and 1 more machines)"
	if got := d.Record.RefusedDepths; len(got) != 1 || got[0].Depth != "freeze" || got[0].Reason != want {
		t.Errorf("recorded %+v", got)
	}
	if len(s.Record.RefusedDepths) != 0 {
		t.Error("the stored record was written to")
	}
	s.Record = d.Record
	if got := s.RefusedDepths(); len(got) != 1 || got[0] != cloud.DepthFreeze {
		t.Errorf("refused: %v", got)
	}
	if _, ok := Decide(s, now).AfterRefusedDepths(refuse("w0")); ok {
		t.Error("a depth that was not asked for is refused once more, and that is no failure")
	}
	s.DesiredState = hivev1.PowerRunning
	if got := Decide(s, now).Record.RefusedDepths; len(got) != 0 {
		t.Errorf("the resume records %+v", got)
	}
}

func TestTheDepthIsRecorded(t *testing.T) {
	for machines, want := range map[string]string{"m0:freeze w0:freeze": "freeze", "m0:freeze w0:": "stop", "m0: w0:": "stop"} {
		d := Decide(seen(hibernate, came("Hibernating", time.Hour), depth("freeze"), asleep(machines)), now)
		if d.Record.Depth != want {
			t.Errorf("%s: %s", machines, d.Record.Depth)
		}
	}
	if d := Decide(seen(depth("freeze")), now); d.Record.Depth != "" {
		t.Errorf("a running cluster has depth %s", d.Record.Depth)
	}
	s := seen(came("Hibernating", time.Hour), depth("freeze"), asleep("m0:freeze w0:freeze"))
	s.Record.Depth = "freeze"
	if d := Decide(s, now); d.Record.Target != hivev1.PowerRunning || d.Record.Depth != "freeze" {
		t.Errorf("the resume records %+v", d.Record)
	}
	s.Record.FinishedAt = nil // it was about to sleep more deeply
	s.Record.Depth, s.WantedDepth = "", cloud.DepthStop
	if d := Decide(s, now); d.Record.Target != hivev1.PowerRunning || d.Record.Depth != "freeze" {
		t.Errorf("before a deeper sleep, the resume records %+v", d.Record)
	}
	for i := range s.Machines {
		s.Machines[i].State, s.Machines[i].Depth = cloud.Running, ""
		if d := Decide(s, now); d.Record.Target != hivev1.PowerRunning || d.Record.Depth != "freeze" {
			t.Errorf("while %d machines are not frozen yet, the resume records %+v", i+1, d.Record)
		}
	}
}
