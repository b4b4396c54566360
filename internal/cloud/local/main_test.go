package local

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/machine"
)

func TestMain(m *testing.M) {
	machinetest.Main(nil)
	os.Exit(m.Run())
}

const infraID = "c-12345"

func plenty(string) (Resources, error) {
	return Resources{Memory: Unlimited, Disk: Unlimited}, nil
}

// open opens a store that does not run yet.
func open(t *testing.T, dir string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(dir, machinetest.Command(t), append([]Option{WithResources(plenty), WithGrace(time.Minute)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs s until the test ends or the returned function is called, which waits until everything
// has stopped.
func run(t *testing.T, s *Store) (halt func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	halted := false
	halt = func() {
		if halted {
			return
		}
		halted = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("running the store: %v", err)
		}
	}
	t.Cleanup(halt)
	return halt
}

// create creates a cluster with a control plane and some workers.
func create(t *testing.T, s *Store, infraID string, workers int) {
	t.Helper()
	names := []string{infraID + "-master-0"}
	for i := range workers {
		names = append(names, infraID+"-worker-"+string(rune('0'+i)))
	}
	for i, name := range names {
		c := machine.Config{Name: name, InfraID: infraID, Role: machine.Worker, Workers: workers}
		if i == 0 {
			c.Role = machine.ControlPlane
		}
		if _, err := s.CreateMachine(c); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *Store) mustStart(t *testing.T, infraID string) {
	t.Helper()
	if err := s.StartCluster(infraID); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) see(t *testing.T, infraID string) cloud.Machines {
	t.Helper()
	ms, err := s.ObserveCluster(infraID)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

// await polls until the cluster's Machines.String equals want.
func (s *Store) await(t *testing.T, infraID, want string) cloud.Machines {
	t.Helper()
	var ms cloud.Machines
	eventually(t, func() bool {
		ms = s.see(t, infraID)
		return ms.String() == want
	}, func() { t.Fatalf("got %q, want %q", ms, want) })
	return ms
}

// eventually polls until something holds.
func eventually(t *testing.T, holds func() bool, otherwise func()) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) { //nolint:forbidigo // processes have no other clock
		if time.Now().After(deadline) {
			otherwise()
			return
		}
	}
}

func (s *Store) pid(name string) int {
	return flock.ReadHolder(machine.LockPath(s.MachineDir(infraID, name)))
}

// told reports whether the machine's process was asked to stop.
func (s *Store) told(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.procs[s.MachineDir(infraID, name)]
	return p != nil && p.phase == phaseStopping
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// leave starts a machine as an orphan process, like one left over from a killed hotspare.
func leave(t *testing.T, s *Store, name string) (pid int) {
	t.Helper()
	args := append(slices.Clone(s.command), "machine", "run", "--dir", s.MachineDir(infraID, name))
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait() // the test kills the process
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // normally it has already ended
		<-reaped
	})
	eventually(t, func() bool { return s.pid(name) == cmd.Process.Pid }, func() { t.Fatal("no leftover") })
	return cmd.Process.Pid
}
