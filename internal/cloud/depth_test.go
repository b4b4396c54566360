package cloud_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

func TestDepthsAreOrdered(t *testing.T) {
	all := cloud.Depths()
	for i, a := range all {
		for j, b := range all {
			if a.IsDeeperThan(b) != (i > j) {
				t.Errorf("%s is deeper than %s: %t", a, b, a.IsDeeperThan(b))
			}
		}
	}
	for _, unset := range []cloud.Depth{"", "nap"} {
		if !unset.IsDeeperThan(cloud.DepthSuspend) || unset.IsDeeperThan(cloud.DepthStop) || cloud.DepthStop.IsDeeperThan(unset) {
			t.Errorf("%q does not count as stop", unset)
		}
	}
}

func TestParsingADepth(t *testing.T) {
	for name, want := range map[string]cloud.Depth{"freeze": "freeze", "suspend": "suspend", "stop": "stop", "": "stop"} {
		if got, err := cloud.ParseDepth(name); got != want || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"Freeze", "nap", " stop"} {
		if _, err := cloud.ParseDepth(name); err == nil || !strings.Contains(err.Error(), "freeze, suspend, stop") || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTheDepthOfAMachine(t *testing.T) {
	const freeze, suspend, stop = cloud.DepthFreeze, cloud.DepthSuspend, cloud.DepthStop
	type depths = []cloud.Depth
	for name, c := range map[string]struct {
		wanted            cloud.Depth
		refused, supports depths
		want              cloud.Depth
	}{
		"is stop if nothing else is wanted":            {"", nil, depths{freeze, suspend}, stop},
		"is the wanted one":                            {freeze, nil, depths{freeze, suspend}, freeze},
		"is the next deeper one if that is missing":    {freeze, nil, depths{suspend}, suspend},
		"is never less deep":                           {suspend, nil, depths{freeze}, stop},
		"is not one that was refused":                  {freeze, depths{freeze}, depths{freeze, suspend}, suspend},
		"is stop if all others were refused":           {freeze, depths{freeze, suspend}, depths{freeze, suspend}, stop},
		"is stop even if that was refused":             {stop, depths{stop}, nil, stop},
		"is stop if the wanted depth does not exist":   {"nap", nil, depths{freeze, suspend}, stop},
		"is the wanted one if a shallower was refused": {suspend, depths{freeze}, depths{freeze, suspend}, suspend},
	} {
		t.Run(name, func(t *testing.T) {
			ref := cloud.Ref{Depth: c.wanted, RefusedDepths: c.refused}
			if got := ref.SelectDepth(func(d cloud.Depth) bool { return slices.Contains(c.supports, d) }); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOnlyAMachineThatIsAsleepIsPutDeeper(t *testing.T) {
	for name, c := range map[string]struct {
		m    cloud.Machine
		want bool
	}{
		"it sleeps less deeply": {cloud.Machine{State: cloud.Stopped, Depth: cloud.DepthFreeze}, true},
		"it sleeps as deeply":   {cloud.Machine{State: cloud.Stopped, Depth: cloud.DepthSuspend}, false},
		"it cannot":             {cloud.Machine{State: cloud.Stopped, Depth: cloud.DepthFreeze, CannotDeepen: true}, false},
		"it sleeps more deeply": {cloud.Machine{State: cloud.Stopped}, false},
		"it runs":               {cloud.Machine{State: cloud.Running}, false},
		"it stops":              {cloud.Machine{State: cloud.Stopping}, false},
	} {
		if got := c.m.IsAsleepAbove(cloud.DepthSuspend); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestRefusedDepthsAreSplitFromOtherErrors(t *testing.T) {
	boom := errors.New("boom")
	refusal := func(name string) error { return cloud.RefuseDepth(cloud.DepthSuspend, name, "it has local disks") }
	for name, c := range map[string]struct {
		err     error
		refused string
		others  bool
	}{
		"no error":               {nil, "", false},
		"another error":          {boom, "", true},
		"a refusal":              {refusal("a"), "a", false},
		"a refusal, wrapped":     {fmt.Errorf("stopping c: %w", refusal("a")), "a", false},
		"refusals":               {errors.Join(refusal("a"), refusal("b")), "a b", false},
		"refusals and an error":  {errors.Join(refusal("a"), boom, refusal("b")), "a b", true},
		"joined refusals joined": {errors.Join(errors.Join(refusal("a"), refusal("b")), errors.Join(boom)), "a b", true},
	} {
		t.Run(name, func(t *testing.T) {
			refused, others := cloud.SplitRefusedDepths(c.err)
			var names []string
			for _, r := range refused {
				names = append(names, r.Machine)
			}
			if got := strings.Join(names, " "); got != c.refused || errors.Is(others, boom) != c.others || (others != nil) != c.others {
				t.Errorf("refused %q, others %v", got, others)
			}
		})
	}
	if err := refusal("a"); fault.KindOf(err) != fault.Denied || err.Error() != "machine a cannot sleep at depth suspend: it has local disks" {
		t.Errorf("%v is %s", err, fault.KindOf(err))
	}
}

func TestAnObservationShowsDepths(t *testing.T) {
	ms := cloud.Machines{{Name: "a", State: cloud.Running}, {Name: "b", State: cloud.Stopped, Depth: cloud.DepthFreeze}, {Name: "c", State: cloud.Stopped, Depth: "stop"}}
	if got := ms.String(); got != "a Running, b Stopped (freeze), c Stopped" {
		t.Errorf("got %q", got)
	}
}
