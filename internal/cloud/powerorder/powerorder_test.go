package powerorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// machines parses "m Running, w Stopped freeze": names that begin with m belong to the control plane.
func machines(text string) cloud.Machines {
	var ms cloud.Machines
	for one := range strings.SplitSeq(text, ", ") {
		if name, rest, ok := strings.Cut(one, " "); ok {
			state, depth, _ := strings.Cut(rest, " ")
			ms = append(ms, cloud.Machine{Name: name, State: cloud.State(state), Depth: cloud.Depth(depth), ControlPlane: name[0] == 'm'})
		}
	}
	return ms
}

func TestToStart(t *testing.T) {
	for name, c := range map[string]struct{ seen, want string }{
		"nothing from nothing":                              {"", ""},
		"the control plane goes first":                      {"m1 Stopped, w1 Stopped", "m1"},
		"workers wait until it runs":                        {"m1 Starting, w1 Stopped", ""},
		"then they go":                                      {"m1 Running, w1 Stopped, w2 Failed", "w1 w2"},
		"a third of a control plane is no quorum":           {"m1 Running, m2 Starting, m3 Starting, w1 Stopped", ""},
		"two thirds are, and the rest is asked for anew":    {"m1 Running, m2 Running, m3 Stopped, w1 Stopped", "m3 w1"},
		"half is no quorum":                                 {"m1 Running, m2 Starting, w1 Stopped", ""},
		"without a control plane there is nothing to await": {"w1 Stopped", "w1"},
		"what stops is too early to start":                  {"m1 Stopping, w1 Stopping", ""},
		"what nobody understands is left alone":             {"m1 Unknown, w1 Unknown", ""},
		"names are sorted":                                  {"m2 Stopped, m1 Stopped", "m1 m2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(MachinesToStart(machines(c.seen)), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestToStop(t *testing.T) {
	for name, c := range map[string]struct {
		seen, want string
		part       bool
	}{
		"workers go first":                                    {"m1 Running, w1 Running, w2 Starting", "w1 w2", false},
		"one that still stops holds up nothing":               {"m1 Running, w1 Stopping", "m1", false},
		"one that still runs does":                            {"m1 Running, w1 Stopped, w2 Running", "w2", false},
		"one that has failed is stopped, and holds up nobody": {"m1 Running, w1 Failed", "m1 w1", false},
		"what nobody understands holds up nobody":             {"m1 Running, w1 Unknown", "m1", false},
		"the control plane stays while workers may be hidden": {"m1 Running, w1 Stopped", "", true},
		"workers that are seen go all the same":               {"m1 Running, w1 Running", "w1", true},
		"what is stopped stays so":                            {"m1 Stopped, w1 Stopped", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(MachinesToStop(machines(c.seen), !c.part), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestToSleep(t *testing.T) {
	for name, c := range map[string]struct {
		seen  string
		depth cloud.Depth
		want  string
	}{
		"what sleeps less deeply goes deeper":       {"m1 Stopped freeze, w1 Stopped freeze", cloud.DepthSuspend, "m1 w1"},
		"what sleeps at the depth is left alone":    {"m1 Stopped suspend, w1 Stopped suspend", cloud.DepthSuspend, ""},
		"what sleeps more deeply is left alone":     {"m1 Stopped, w1 Stopped suspend", cloud.DepthFreeze, ""},
		"a sleeping worker holds up nobody":         {"m1 Running, w1 Stopped freeze", cloud.DepthFreeze, "m1"},
		"a running worker holds a sleeping leader":  {"m1 Stopped freeze, w1 Running", cloud.DepthStop, "w1"},
		"to stop is to sleep at the deepest depth":  {"m1 Stopped suspend, w1 Stopped", cloud.DepthStop, "m1"},
		"workers go first, whatever the depth":      {"m1 Running, w1 Running", cloud.DepthFreeze, "w1"},
		"one that has failed is put to sleep, too":  {"m1 Stopped freeze, w1 Failed", cloud.DepthFreeze, "w1"},
		"what is on its way is not asked once more": {"m1 Stopping, w1 Stopping", cloud.DepthFreeze, ""},
		"what nobody understands is left as it is":  {"m1 Unknown, w1 Unknown", cloud.DepthFreeze, ""},
		"without a wish, everything goes to a stop": {"m1 Stopped freeze, w1 Stopped", "", "m1"},
		"each machine is looked at on its own":      {"m1 Stopped, w1 Stopped freeze, w2 Stopped", cloud.DepthSuspend, "w1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(MachinesToSleep(machines(c.seen), c.depth, true), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestARefusedDepthOfAWorkerHoldsTheControlPlane(t *testing.T) {
	var asked []string
	err := SleepInOrder(t.Context(), machines("m1 Running, w1 Running"), cloud.DepthSuspend, true, func(_ context.Context, name string) error {
		asked = append(asked, name)
		return cloud.RefuseDepth(cloud.DepthSuspend, name, "it has local disks")
	})
	refused, others := cloud.SplitRefusedDepths(err)
	if !slices.Equal(asked, []string{"w1"}) || len(refused) != 1 || others != nil {
		t.Errorf("asked %v: %v", asked, err)
	}
}

func TestEachAsksForAllAndJoinsErrorsInOrder(t *testing.T) {
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf("w%02d", i))
	}
	bad := errors.New("refused")
	var calls atomic.Int32
	err := ForEachMachine(t.Context(), all, func(ctx context.Context, name string) error {
		calls.Add(1)
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a call without a deadline")
		}
		if slices.Contains([]string{"w07", "w70"}, name) {
			return fmt.Errorf("%s: %w", name, bad)
		}
		return nil
	})
	if calls.Load() != 100 {
		t.Errorf("%d calls", calls.Load())
	}
	if !errors.Is(err, bad) || err.Error() != "w07: refused\nw70: refused" {
		t.Errorf("got %v", err)
	}
}

func TestEachAsksForSeveralAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := ForEachMachine(t.Context(), make([]string, 5*maxConcurrent), func(context.Context, string) error {
			<-time.After(time.Second)
			return nil
		})
		if took := time.Since(began); err != nil || took != 5*time.Second {
			t.Errorf("%s, %v", took, err)
		}
	})
}

func TestAWorkerThatMayNotBeStoppedHoldsUpNobody(t *testing.T) {
	for name, c := range map[string]struct{ seen, want string }{
		"the control plane goes when it alone is left":    {"m1 Running, w1 Running, w2 Stopped", "w1 m1"},
		"others that are asked in this call go before it": {"m1 Running, w1 Running, w2 Running", "w1 w2"},
		"others that stop do not hold it up":              {"m1 Running, w1 Running, w2 Stopping", "w1 m1"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var asked []string
			err := SleepInOrder(t.Context(), machines(c.seen), cloud.DepthStop, true, func(_ context.Context, name string) error {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, name)
				if name == "w1" {
					return fault.NewDenied("%s is locked", name)
				}
				return nil
			})
			slices.SortStableFunc(asked, func(a, b string) int { // requests for workers are concurrent
				if a[0] == 'm' || b[0] == 'm' {
					return 0
				}
				return strings.Compare(a, b)
			})
			if got := strings.Join(asked, " "); got != c.want || fault.KindOf(err) != fault.Denied {
				t.Errorf("asked %q, want %q: %v", got, c.want, err)
			}
		})
	}
}

func TestAWorkerThatFailsOtherwiseHoldsTheControlPlane(t *testing.T) {
	err := SleepInOrder(t.Context(), machines("m1 Running, w1 Running"), cloud.DepthStop, true, func(_ context.Context, name string) error {
		if name != "w1" {
			t.Errorf("asked %s", name)
		}
		return fault.NewWait(time.Second, "too many calls")
	})
	if fault.KindOf(err) != fault.Wait {
		t.Errorf("got %v", err)
	}
}
