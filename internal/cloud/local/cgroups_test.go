package local

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/embedded/machine"
)

var errBusy = fmt.Errorf("removing: %w", syscall.EBUSY)

// busyCgroups are the cgroups of machines whose last processes end at a time of a clock.
type busyCgroups struct {
	clock   *clocktesting.FakeClock
	emptyAt time.Time
	removed chan string
}

// newBusyCgroups replaces the cgroups and the clock of a store. While the test runs, the clock is stepped whenever the
// store waits for it.
func newBusyCgroups(t *testing.T, s *Store, busy time.Duration) *busyCgroups {
	t.Helper()
	start := time.Unix(0, 0)
	b := &busyCgroups{clock: clocktesting.NewFakeClock(start), emptyAt: start.Add(busy), removed: make(chan string, 10)}
	s.clock = b.clock
	s.removeCgroups = func(name string) error {
		if b.clock.Now().Before(b.emptyAt) {
			return errBusy
		}
		b.removed <- name
		return nil
	}
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); <-ended })
	go func() {
		defer close(ended)
		for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
			if b.clock.HasWaiters() {
				b.clock.Step(lockPollInterval)
			}
		}
	}()
	return b
}

func (b *busyCgroups) check(t *testing.T, want ...string) {
	t.Helper()
	for _, name := range want {
		select {
		case got := <-b.removed:
			if got != name {
				t.Errorf("the cgroups of %s were removed, want those of %s", got, name)
			}
		default:
			t.Errorf("the cgroups of %s were not removed", name)
		}
	}
}

// newWorker creates a worker that runs containers and is switched off.
func newWorker(t *testing.T, s *Store) *process {
	t.Helper()
	c := machine.Config{InfraID: infraID, Name: "c-12345-gpu-0", Role: machine.Worker, Containers: true}
	if _, err := s.CreateMachine(c); err != nil {
		t.Fatal(err)
	}
	return &process{Config: c, dir: s.MachineDir(infraID, c.Name), cancel: func() {}}
}

func TestTheStartOfAWorkerWaitsUntilItsCgroupsAreEmpty(t *testing.T) {
	s := open(t, t.TempDir())
	p := newWorker(t, s)
	b := newBusyCgroups(t, s, 5*lockPollInterval)
	s.command = []string{filepath.Join(s.dir, "no-such-program")}
	s.runMachineProcess(t.Context(), p) // it fails after that
	b.check(t, p.Name)
}

func TestTheWaitForCgroupsHasALimit(t *testing.T) {
	s := open(t, t.TempDir(), WithGrace(10*lockPollInterval))
	p := newWorker(t, s)
	b := newBusyCgroups(t, s, time.Hour)
	s.removeControlGroups(t.Context(), p)
	if waited := b.clock.Since(time.Unix(0, 0)); waited < s.grace || waited > 2*s.grace {
		t.Errorf("it waited %s, want %s", waited, s.grace)
	}
	if err := s.endLeftoverProcesses(t.Context(), infraID); err == nil {
		t.Error("a cluster whose processes still run is deleted")
	}
}

func TestAStopEndsTheWaitForCgroups(t *testing.T) {
	s := open(t, t.TempDir())
	p := newWorker(t, s)
	s.clock = clocktesting.NewFakeClock(time.Unix(0, 0)) // nobody steps it
	ctx, stop := context.WithCancel(t.Context())
	s.removeCgroups = func(string) error { stop(); return errBusy }
	s.removeControlGroups(ctx, p)
}

func TestTheDeletionOfAClusterWaitsUntilItsCgroupsAreEmpty(t *testing.T) {
	s := open(t, t.TempDir())
	p := newWorker(t, s)
	b := newBusyCgroups(t, s, 5*lockPollInterval)
	if err := s.DestroyCluster(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	b.check(t, p.Name)
}

func TestAHubThatWasKilledLeavesNoCgroups(t *testing.T) {
	for name, leaveProcess := range map[string]bool{"of a process that has ended": false, "of a process that still runs": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			p := newWorker(t, s)
			if leaveProcess {
				leave(t, s, p.Name)
			}
			s = open(t, dir)
			b := newBusyCgroups(t, s, 5*lockPollInterval)
			run(t, s)
			eventually(t, func() bool { return len(b.removed) > 0 }, func() { t.Fatal("the cgroups are left") })
			b.check(t, p.Name)
			s.await(t, infraID, p.Name+" Stopped")
		})
	}
}
