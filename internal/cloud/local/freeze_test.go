//go:build linux

package local

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/embedded/machine"
)

const (
	allRun    = "c-12345-master-0 Running, c-12345-worker-0 Running"
	allFrozen = "c-12345-master-0 Stopped (freeze), c-12345-worker-0 Stopped (freeze)"
	allStop   = "c-12345-master-0 Stopped, c-12345-worker-0 Stopped"
)

// frozen returns a running store with a frozen cluster.
func frozen(t *testing.T) (s *Store, halt func()) {
	t.Helper()
	s = open(t, t.TempDir())
	create(t, s, infraID, 1)
	halt = run(t, s)
	s.mustStart(t, infraID)
	s.await(t, infraID, allRun)
	s.mustFreeze(t)
	s.await(t, infraID, allFrozen)
	return s, halt
}

func (s *Store) mustFreeze(t *testing.T) {
	t.Helper()
	if err := s.FreezeCluster(infraID); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) pids() [2]int { return [2]int{s.pid("c-12345-master-0"), s.pid("c-12345-worker-0")} }

// obstacles returns why machines are not frozen.
func (s *Store) obstacles(t *testing.T) string {
	t.Helper()
	var all []string
	for _, m := range s.see(t, infraID) {
		all = append(all, m.DepthObstacle)
	}
	return strings.Join(all, "; ")
}

func TestAFrozenMachineKeepsItsProcess(t *testing.T) {
	s, _ := frozen(t)
	before := s.pids()
	for _, pid := range before {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || !strings.Contains(string(raw), ") T ") {
			t.Errorf("process %d: %.40s, %v", pid, raw, err)
		}
	}
	for range 3 {
		s.mustStart(t, infraID)
		s.await(t, infraID, allRun)
		s.mustFreeze(t)
		s.await(t, infraID, allFrozen)
	}
	s.mustStart(t, infraID)
	s.await(t, infraID, allRun)
	if after := s.pids(); after != before {
		t.Errorf("the processes were %v and are %v", before, after)
	}
	if got := s.obstacles(t); got != "; " {
		t.Errorf("obstacles: %s", got)
	}
}

func TestAFrozenClusterThatIsStoppedKeepsNoProcess(t *testing.T) {
	s, _ := frozen(t)
	pids := s.pids()
	if err := s.StopCluster(infraID); err != nil {
		t.Fatal(err)
	}
	s.await(t, infraID, allStop)
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	s.mustFreeze(t)
	s.await(t, infraID, allStop)
	if got := s.obstacles(t); got != "; " {
		t.Errorf("a stopped machine is not frozen, for %s", got)
	}
}

func TestAFrozenClusterCanBeDestroyed(t *testing.T) {
	s, _ := frozen(t)
	pids := s.pids()
	if err := s.DestroyCluster(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
}

func TestAStoreThatClosesStopsWhatIsFrozenAndSaysSo(t *testing.T) {
	s, halt := frozen(t)
	pids := s.pids()
	halt()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive", pid)
		}
	}
	again := open(t, s.dir)
	run(t, again)
	again.await(t, infraID, allStop)
	const want = "hotspare has ended while it was frozen, which stops it"
	if got := again.obstacles(t); got != want+"; "+want {
		t.Errorf("obstacles: %s", got)
	}
	again.mustStart(t, infraID)
	again.await(t, infraID, allRun)
	if got := again.obstacles(t); got != "; " {
		t.Errorf("obstacles of machines that run: %s", got)
	}
}

func TestAMachineThatDiesFrozenIsStopped(t *testing.T) {
	s, _ := frozen(t)
	kill(t, s.pid("c-12345-worker-0"))
	s.await(t, infraID, "c-12345-master-0 Stopped (freeze), c-12345-worker-0 Stopped")
	if got := s.obstacles(t); got != "; its process was killed while it was frozen" {
		t.Errorf("obstacles: %s", got)
	}
	s.mustStart(t, infraID)
	s.await(t, infraID, allRun)
}

func TestAControlPlaneThatDoesNotRestIsStopped(t *testing.T) {
	s := open(t, t.TempDir())
	s.freezeTimeout = 300 * time.Millisecond
	create(t, s, infraID, 1)
	machinetest.Inject(t, s.MachineDir(infraID, "c-12345-master-0"), machinetest.IgnoreFreeze)
	run(t, s)
	s.mustStart(t, infraID)
	s.await(t, infraID, allRun)
	s.mustFreeze(t)
	eventually(t, func() bool { return s.see(t, infraID)[0].State == cloud.Stopped }, func() { t.Fatal(s.see(t, infraID)) })
	if got := s.obstacles(t); !strings.Contains(got, "it could not be frozen: it took more than 300ms") {
		t.Errorf("obstacles: %s", got)
	}
}

func TestAMachineThatStartsIsStoppedAndSaysSo(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	s.mustStart(t, infraID)
	s.mustFreeze(t) // nothing runs the store yet
	run(t, s)
	s.await(t, infraID, "c-12345-master-0 Stopped")
	if got := s.obstacles(t); got != "it was not running, and only a machine that runs can be frozen" {
		t.Errorf("obstacles: %s", got)
	}
}

func TestALeftoverFrozenMachineEnds(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	pid := leave(t, s, "c-12345-master-0")
	stop(t, pid)
	run(t, s)
	eventually(t, func() bool { return !alive(pid) }, func() { t.Fatal("the leftover process is alive") })
}

func TestWhatClaimsNoProcessorHoldsItsLock(t *testing.T) {
	s, _ := frozen(t)
	for _, name := range []string{"c-12345-master-0", "c-12345-worker-0"} {
		if held, err := findLockHolder(machine.LockPath(s.MachineDir(infraID, name))); held == nil || err != nil {
			t.Errorf("%s: %v, %v", name, held, err)
		}
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func stop(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func TestTheAddressOfAFrozenClusterIsHeldOrRefusesConnections(t *testing.T) {
	s, _ := frozen(t)
	s.refuses(t)
	if err := s.HoldAddress(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	s.begin(t)
	s.awaitWaiting(t, 1)
	s.DropAddress(t.Context(), infraID)
	s.refuses(t)
	if err := s.HoldAddress(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	s.begin(t)
	s.awaitWaiting(t, 1)
	s.mustStart(t, infraID)
	s.await(t, infraID, allRun)
	s.awaitWaiting(t, 0)
	if _, err := s.dialAPI(t); err != nil {
		t.Errorf("a thawed cluster refuses a connection: %v", err)
	}
}
