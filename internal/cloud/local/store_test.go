package local

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

const (
	master = infraID + "-master-0"
	worker = infraID + "-worker-0"

	allRunning = master + " Running, " + worker + " Running"
	allStopped = master + " Stopped, " + worker + " Stopped"
)

func TestCreate(t *testing.T) {
	t.Run("a second time it changes nothing", func(t *testing.T) {
		s := open(t, t.TempDir())
		first, err := s.CreateMachine(machine.Config{Name: master, InfraID: infraID, ClusterName: "c"})
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.CreateMachine(machine.Config{Name: master, InfraID: infraID, ClusterName: "other"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("the machines of a cluster share a port, clusters do not", func(t *testing.T) {
		s := open(t, t.TempDir())
		create(t, s, "a-12345", 2)
		create(t, s, "b-12345", 1)
		byCluster := map[int]string{}
		for _, id := range []string{"a-12345", "b-12345"} {
			list, err := s.ListMachines(id)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				if owner, ok := byCluster[c.APIPort]; c.APIPort == 0 || ok && owner != id {
					t.Errorf("%s has port %d, as %q has", c.Name, c.APIPort, owner)
				}
				byCluster[c.APIPort] = id
			}
		}
	})
	t.Run("names cannot leave the store", func(t *testing.T) {
		s := open(t, t.TempDir())
		for _, bad := range []string{"", "..", "a/b", ".new-1", "../a"} {
			_, err := s.CreateMachine(machine.Config{Name: master, InfraID: bad})
			if fault.KindOf(err) != fault.Denied {
				t.Errorf("creating in %q: %v", bad, err)
			}
			if err := s.DestroyCluster(t.Context(), bad); fault.KindOf(err) != fault.Denied {
				t.Errorf("destroying %q: %v", bad, err)
			}
			if _, err := s.CreateMachine(machine.Config{Name: bad, InfraID: infraID}); fault.KindOf(err) != fault.Denied {
				t.Errorf("creating %q: %v", bad, err)
			}
		}
	})
}

func TestChoosePort(t *testing.T) {
	all := func(int) bool { return true }
	first := chooseFreePort("a", all)
	for name, c := range map[string]struct {
		free func(int) bool
		want int
	}{
		"the first is free":     {all, first},
		"then the next":         {func(p int) bool { return p != first }, first + 1},
		"the search goes round": {func(p int) bool { return p == first-1 }, first - 1},
		"none is free":          {func(int) bool { return false }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chooseFreePort("a", c.free); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestRecordedPortsAreNotGivenAway(t *testing.T) {
	s := open(t, t.TempDir())
	hibernating, err := s.CreateMachine(machine.Config{Name: master, InfraID: infraID})
	if err != nil {
		t.Fatal(err)
	}
	rival := ""
	for n := 0; rival == ""; n++ {
		id := "rival-" + strconv.Itoa(n)
		if chooseFreePort(id, func(int) bool { return true }) == hibernating.APIPort {
			rival = id
		}
	}
	got, err := s.CreateMachine(machine.Config{Name: rival + "-master-0", InfraID: rival})
	if err != nil || got.APIPort == hibernating.APIPort {
		t.Errorf("both have port %d, %v", got.APIPort, err)
	}
}

// freePort returns a port that no program listens on, and that is not used for outgoing
// connections.
func freePort(t *testing.T) int {
	t.Helper()
	port := chooseFreePort(t.TempDir(), isLoopbackPortFree)
	if port == 0 {
		t.Fatal("no port is free")
	}
	return port
}

func TestAPortThatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	port := freePort(t)
	first, err := s.CreateMachine(machine.Config{Name: master, InfraID: infraID, APIPort: port})
	if err != nil || first.APIPort != port {
		t.Fatalf("got port %d, %v, want %d", first.APIPort, err, port)
	}
	s = open(t, dir)
	squatter, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port)) // like the control plane by now
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	for _, asked := range []int{0, port, port + 1} {
		name := worker + "-asks-" + strconv.Itoa(asked)
		if got, err := s.CreateMachine(machine.Config{Name: name, InfraID: infraID, APIPort: asked}); err != nil || got.APIPort != port {
			t.Errorf("%s got port %d, %v, want its cluster's, %d", name, got.APIPort, err, port)
		}
	}
}

func TestAPortThatIsAskedForAndTaken(t *testing.T) {
	s := open(t, t.TempDir())
	port := freePort(t)
	ask := machine.Config{Name: "other-12345-master-0", InfraID: "other-12345", APIPort: port}
	refused := func(owner, says string) {
		t.Helper()
		_, err := s.CreateMachine(ask)
		want := &PortError{Port: port, Owner: owner}
		if got := (*PortError)(nil); !errors.As(err, &got) || *got != *want || fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %v", err, want)
		}
		if ms, err := s.ListMachines(ask.InfraID); err != nil || len(ms) > 0 {
			t.Errorf("made %v, %v", ms, err)
		}
	}

	squatter, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	refused("", "stop it")
	if err := squatter.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateMachine(machine.Config{Name: master, InfraID: infraID, APIPort: port}); err != nil {
		t.Fatal(err)
	}
	refused(infraID, "belongs to cluster "+infraID)

	if err := s.DestroyCluster(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
	if got, err := s.CreateMachine(ask); err != nil || got.APIPort != port {
		t.Errorf("when it is free again: port %d, %v", got.APIPort, err)
	}
}

func TestTakenPort(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 1)
	run(t, s)
	list, err := s.ListMachines(infraID)
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(list[0].APIPort)
	squatter, err := net.Listen("tcp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()

	s.mustStart(t, infraID)
	got := s.await(t, infraID, master+" Failed, "+worker+" Running")[0]
	if !strings.Contains(got.Reason, port) || !strings.Contains(got.Reason, "stop it") {
		t.Errorf("the reason does not name port and remedy: %s", got.Reason)
	}

	if err := squatter.Close(); err != nil {
		t.Fatal(err)
	}
	s.mustStart(t, infraID)
	s.await(t, infraID, allRunning)
}

func TestKilledBehindOurBack(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 1)
	halt := run(t, s)
	s.mustStart(t, infraID)
	s.await(t, infraID, allRunning)

	if n := len(s.changes); n != 2 {
		t.Errorf("told %d times that a machine runs, want twice", n)
	}
	if err := syscall.Kill(s.pid(worker), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.await(t, infraID, master+" Running, "+worker+" Stopped")
	if n := len(s.changes); n != 3 {
		t.Errorf("told %d times, want once more: a machine has stopped", n)
	}
	s.mustStart(t, infraID)
	s.await(t, infraID, allRunning)

	halt()
	if err := os.RemoveAll(machine.DiskPath(s.MachineDir(infraID, worker))); err != nil {
		t.Fatal(err)
	}
	s = open(t, s.dir)
	run(t, s)
	got := s.await(t, infraID, master+" Running, "+worker+" Failed")[1]
	if n := len(s.changes); n != 1 {
		t.Errorf("told %d times, want once: a machine that cannot be started would be started again and again", n)
	}
	if !strings.Contains(got.Reason, "disk is missing") {
		t.Errorf("reason: %s", got.Reason)
	}
}

func TestFailedTellsWhatItPrintedLast(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	run(t, s)
	log := machine.LogPath(s.MachineDir(infraID, master))
	if err := os.WriteFile(log, []byte("from another life\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	machinetest.Inject(t, s.MachineDir(infraID, master), machinetest.ExitAtOnce)
	s.mustStart(t, infraID)
	got := s.await(t, infraID, master+" Failed")[0]
	if !strings.HasSuffix(got.Reason, "(exit status 1): "+string(machinetest.ExitAtOnce)) {
		t.Errorf("reason: %s", got.Reason)
	}
}

func TestDeafMachineIsKilled(t *testing.T) {
	s := open(t, t.TempDir(), WithGrace(50*time.Millisecond))
	create(t, s, infraID, 0)
	run(t, s)
	machinetest.Inject(t, s.MachineDir(infraID, master), machinetest.IgnoreStop)
	s.mustStart(t, infraID)
	s.await(t, infraID, master+" Running")
	if err := s.StopCluster(infraID); err != nil {
		t.Fatal(err)
	}
	s.await(t, infraID, master+" Stopped")
}

func TestRemovedFolderOfRunningMachine(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 1)
	run(t, s)
	s.mustStart(t, infraID)
	s.await(t, infraID, allRunning)
	pid := s.pid(worker)
	if err := os.RemoveAll(s.MachineDir(infraID, worker)); err != nil {
		t.Fatal(err)
	}
	s.await(t, infraID, master+" Running")
	if alive(pid) {
		t.Error("its process is still there")
	}
}

func TestUnreadableMachine(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 1)
	if err := os.WriteFile(machine.ConfigPath(s.MachineDir(infraID, worker)), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	s.mustStart(t, infraID)
	s.await(t, infraID, master+" Running, "+worker+" Failed")
	if err := s.DestroyCluster(t.Context(), infraID); err != nil {
		t.Fatal(err)
	}
}

func TestRestart(t *testing.T) {
	t.Run("what ran comes back, what was stopped does not", func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, dir)
		create(t, s, infraID, 1)
		create(t, s, "off-12345", 0)
		halt := run(t, s)
		s.mustStart(t, infraID)
		s.await(t, infraID, allRunning)
		pid := s.pid(master)
		halt()
		if alive(pid) {
			t.Error("a process outlived the store")
		}

		s = open(t, dir)
		run(t, s)
		s.await(t, infraID, allRunning)
		s.await(t, "off-12345", "off-12345-master-0 Stopped")
	})
	t.Run("leftovers of a killed hotspare end before their machines start", func(t *testing.T) {
		s := open(t, t.TempDir(), WithGrace(50*time.Millisecond))
		create(t, s, infraID, 1)
		s.mustStart(t, infraID) // only recorded: the store is not running
		machinetest.Inject(t, s.MachineDir(infraID, master), machinetest.IgnoreStop)
		deaf, docile := leave(t, s, master), leave(t, s, worker)

		run(t, s)
		s.await(t, infraID, allRunning)
		if s.pid(master) == deaf || s.pid(worker) == docile {
			t.Error("a leftover was adopted")
		}
	})
	t.Run("leftovers of machines that should be off end, too", func(t *testing.T) {
		s := open(t, t.TempDir())
		create(t, s, infraID, 1)
		pid := leave(t, s, worker)
		run(t, s)
		eventually(t, func() bool { return !alive(pid) }, func() { t.Error("it is still there") })
		s.await(t, infraID, allStopped)
	})
	t.Run("half a machine is never seen, and is cleaned up", func(t *testing.T) {
		dir := t.TempDir()
		for _, half := range []string{newPrefix + "1", trashPrefix + "1"} {
			if err := os.MkdirAll(filepath.Join(dir, half, "disk"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, dir)
		if ids, err := s.ListClusters(); err != nil || len(ids) > 0 {
			t.Errorf("saw %v, %v", ids, err)
		}
		run(t, s)
		eventually(t, func() bool {
			left, err := filepath.Glob(filepath.Join(dir, ".*-*"))
			return err == nil && len(left) == 0
		}, func() { t.Error("rubbish is left") })
	})
	t.Run("two programs do not run one store", func(t *testing.T) {
		dir := t.TempDir()
		lock, err := flock.Acquire(filepath.Join(dir, ".lock"))
		if err != nil {
			t.Fatal(err)
		}
		var held *flock.LockedError
		if err := open(t, dir).Run(t.Context()); !errors.As(err, &held) {
			t.Errorf("got %v", err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestStartWhileStopping(t *testing.T) {
	s := open(t, t.TempDir(), WithGrace(50*time.Millisecond))
	create(t, s, infraID, 0)
	run(t, s)
	machinetest.Inject(t, s.MachineDir(infraID, master), machinetest.IgnoreStop)
	s.mustStart(t, infraID)
	s.await(t, infraID, master+" Running")
	first := s.pid(master)
	if err := s.StopCluster(infraID); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return s.told(master) }, func() { t.Fatal("nobody told it to stop") })
	s.mustStart(t, infraID)
	s.await(t, infraID, master+" Running")
	if s.pid(master) == first {
		t.Error("it was not stopped")
	}
}

func TestDestroy(t *testing.T) {
	t.Run("a running cluster stops and is gone", func(t *testing.T) {
		s := open(t, t.TempDir())
		create(t, s, infraID, 1)
		run(t, s)
		s.mustStart(t, infraID)
		s.await(t, infraID, allRunning)
		pid := s.pid(worker)
		if err := s.DestroyCluster(t.Context(), infraID); err != nil {
			t.Fatal(err)
		}
		if got := s.see(t, infraID); len(got) > 0 || alive(pid) {
			t.Errorf("left: %v, process alive: %t", got, alive(pid))
		}
		if left, err := filepath.Glob(filepath.Join(s.dir, "*-*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("what never was is gone already", func(t *testing.T) {
		if err := open(t, t.TempDir()).DestroyCluster(t.Context(), infraID); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("with a leftover process and nobody running the store", func(t *testing.T) {
		s := open(t, t.TempDir())
		create(t, s, infraID, 0)
		pid := leave(t, s, master)
		if err := s.DestroyCluster(t.Context(), infraID); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return !alive(pid) }, func() { t.Error("it is still there") })
	})
	t.Run("given up half way, it goes on later", func(t *testing.T) {
		s := open(t, t.TempDir())
		create(t, s, infraID, 0)
		halt := run(t, s)
		machinetest.Inject(t, s.MachineDir(infraID, master), machinetest.IgnoreStop)
		s.mustStart(t, infraID)
		s.await(t, infraID, master+" Running")
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := s.DestroyCluster(ctx, infraID); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if err := syscall.Kill(s.pid(master), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		halt()

		s = open(t, s.dir)
		run(t, s)
		s.await(t, infraID, master+" Stopped")
		if err := s.DestroyCluster(t.Context(), infraID); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for name, c := range map[string]struct {
		in   string
		from int64
		want string
	}{
		"the last line":            {"a\nb\n", 0, "b"},
		"the only one":             {"a", 0, "a"},
		"nothing since":            {"a\n", 2, ""},
		"empty lines do not count": {"a\n\n", 0, "a"},
		"a long line is cut":       {strings.Repeat("x", maxLineLength+1), 0, strings.Repeat("x", maxLineLength)},
		"only what is new is read": {"old\nnew\n", 4, "new"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.in), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, readLastLogLine(path, c.from)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	log := machine.LogPath(s.MachineDir(infraID, master))
	if err := os.WriteFile(log, make([]byte, maxLogSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, s)
	s.mustStart(t, infraID)
	s.await(t, infraID, master+" Running")
	info, err := os.Stat(log)
	if err != nil || info.Size() > maxLineLength {
		t.Errorf("size %d, %v", info.Size(), err)
	}
}
