package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

func bare(_, _ machine.Config, _ string) error { return nil }

func extra(name string) machine.Config {
	return machine.Config{InfraID: infraID, Name: name, Taints: []corev1.Taint{{Key: "gpu"}}}
}

func TestAWorkerJoinsAClusterThatRuns(t *testing.T) {
	s := open(t, t.TempDir())
	run(t, s)
	create(t, s, infraID, 0)
	s.mustStart(t, infraID)
	s.await(t, infraID, "c-12345-master-0 Running")
	for range 2 { // the second time, the worker exists
		if err := s.AddWorker(extra("c-12345-gpu-0"), func(c, leader machine.Config, dir string) error {
			if c.APIPort == 0 || c.APIPort != leader.APIPort || c.Role != machine.Worker || len(c.Taints) != 1 || leader.Role != machine.ControlPlane {
				t.Errorf("%+v, led by %+v", c, leader)
			}
			return os.WriteFile(filepath.Join(machine.DiskPath(dir), "bootstrap.kubeconfig"), nil, 0o600)
		}); err != nil {
			t.Fatal(err)
		}
	}
	s.await(t, infraID, "c-12345-gpu-0 Running, c-12345-master-0 Running")
	if _, err := os.Stat(machine.BootstrapPath(s.MachineDir(infraID, "c-12345-gpu-0"))); err != nil {
		t.Error(err)
	}

	t.Run("stops and starts with the others", func(t *testing.T) {
		if err := s.StopCluster(infraID); err != nil {
			t.Fatal(err)
		}
		s.await(t, infraID, "c-12345-gpu-0 Stopped, c-12345-master-0 Stopped")
		if err := s.AddWorker(extra("c-12345-gpu-1"), bare); fault.KindOf(err) != fault.Wait {
			t.Errorf("a cluster that is off got a worker: %v", err)
		}
		s.mustStart(t, infraID)
		s.await(t, infraID, "c-12345-gpu-0 Running, c-12345-master-0 Running")
	})
	t.Run("and is removed for good", func(t *testing.T) {
		for range 2 {
			if err := s.RemoveWorker(t.Context(), infraID, "c-12345-gpu-0"); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.see(t, infraID).String(); got != "c-12345-master-0 Running" {
			t.Error(got)
		}
		if left, err := filepath.Glob(filepath.Join(s.dir, trashPrefix+"*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	})
	t.Run("its name can be used again", func(t *testing.T) {
		rest := filepath.Join(s.MachineDir(infraID, "c-12345-gpu-0"), "disk", "pki")
		if err := os.MkdirAll(rest, 0o700); err != nil { // written by the process as it ended
			t.Fatal(err)
		}
		if err := s.AddWorker(extra("c-12345-gpu-0"), bare); err != nil {
			t.Fatal(err)
		}
		s.await(t, infraID, "c-12345-gpu-0 Running, c-12345-master-0 Running")
	})
	t.Run("the control plane is not removed", func(t *testing.T) {
		if err := s.RemoveWorker(t.Context(), infraID, "c-12345-master-0"); fault.KindOf(err) != fault.Denied {
			t.Error(err)
		}
	})
}

func TestNoWorkerWithoutACluster(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.AddWorker(extra("c-12345-gpu-0"), bare); fault.KindOf(err) != fault.Gone {
		t.Error(err)
	}
	if err := s.RemoveWorker(t.Context(), infraID, "c-12345-gpu-0"); err != nil {
		t.Error(err)
	}
	if err := s.AddWorker(extra("../x"), bare); fault.KindOf(err) != fault.Denied {
		t.Error(err)
	}
}

func TestAWorkerIsThereAsAWholeOrNot(t *testing.T) {
	s := open(t, t.TempDir())
	run(t, s)
	create(t, s, infraID, 0)
	s.mustStart(t, infraID)
	broken := errors.New("no pen")
	if err := s.AddWorker(extra("c-12345-gpu-0"), func(_, _ machine.Config, _ string) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if list, err := s.ListMachines(infraID); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestWorkersAreOnlyAddedWhereThereIsRoom(t *testing.T) {
	left := int64(controlPlaneMemory)
	s := open(t, t.TempDir(), WithResources(func(string) (Resources, error) { return Resources{Memory: left, Disk: Unlimited}, nil }))
	create(t, s, infraID, 0)
	s.mustStart(t, infraID) // nothing starts: the store is not running
	left = controlPlaneMemory + 2*workerMemory
	for i, name := range []string{"c-12345-gpu-0", "c-12345-gpu-1", "c-12345-gpu-2"} {
		if err := s.AddWorker(extra(name), bare); (i < 2) != (err == nil) || i == 2 && fault.KindOf(err) != fault.Capacity {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAWorkerThatIsDeafIsKilledAndItsNameWaits(t *testing.T) {
	s := open(t, t.TempDir(), WithGrace(3*time.Second))
	run(t, s)
	create(t, s, infraID, 0)
	s.mustStart(t, infraID)
	if err := s.AddWorker(extra("c-12345-gpu-0"), func(_, _ machine.Config, dir string) error {
		machinetest.Inject(t, dir, machinetest.IgnoreStop)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.await(t, infraID, "c-12345-gpu-0 Running, c-12345-master-0 Running")
	removed := make(chan error, 1)
	go func() { removed <- s.RemoveWorker(t.Context(), infraID, "c-12345-gpu-0") }()
	eventually(t, func() bool { return s.told("c-12345-gpu-0") }, func() { t.Fatal("it was not told to stop") })
	if err := s.AddWorker(extra("c-12345-gpu-0"), bare); fault.KindOf(err) != fault.Wait {
		t.Errorf("beside its namesake: %v", err)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

// leaveRemoved adds a worker that runs containers and has a process that is left over, and moves it to the trash. It
// returns the path of its lock there.
func leaveRemoved(t *testing.T, s *Store, name string) (lock string) {
	t.Helper()
	c := machine.Config{InfraID: infraID, Name: name, Role: machine.Worker, Containers: true}
	if _, err := s.CreateMachine(c); err != nil {
		t.Fatal(err)
	}
	leave(t, s, name)
	trash, err := s.moveWorkerToTrash(infraID, name)
	if err != nil {
		t.Fatal(err)
	}
	return machine.LockPath(filepath.Join(trash, name))
}

func TestAWorkerWhoseRemovalWasKilledIsRemovedAtTheNextStart(t *testing.T) {
	for name, parent := range map[string]string{"in an ordinary folder": "", "in a folder whose name is a pattern": "[a]*"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), parent)
			s := open(t, dir)
			create(t, s, infraID, 0)
			lock := leaveRemoved(t, s, "c-12345-gpu-0")

			s = open(t, dir)
			cleaned := make(chan string, 10)
			s.removeCgroups = func(name string) error {
				if held, err := findLockHolder(lock); held != nil || err != nil {
					t.Errorf("the process still runs: %v, %v", held, err)
				}
				cleaned <- name
				return nil
			}
			run(t, s)
			eventually(t, func() bool { return len(trashOf(t, s)) == 0 }, func() { t.Error("the folder is left") })
			if len(cleaned) != 1 || <-cleaned != "c-12345-gpu-0" {
				t.Error("the cgroups were not removed")
			}
		})
	}
}

func trashOf(t *testing.T, s *Store) []string {
	t.Helper()
	left, err := s.listIncomplete()
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestAFolderThatCannotBeRemovedBlocksNoCluster(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	create(t, s, infraID, 0)
	s.mustStart(t, infraID)
	leaveRemoved(t, s, "c-12345-gpu-0")
	s = open(t, dir)
	s.removeCgroups = func(string) error { return errors.New("no right to do that") }
	run(t, s)
	s.await(t, infraID, "c-12345-master-0 Running")
	if len(trashOf(t, s)) != 1 {
		t.Error("a machine with cgroups was forgotten")
	}
}

func TestTheCgroupsOfARemovedWorkerAreRemoved(t *testing.T) {
	s := open(t, t.TempDir())
	create(t, s, infraID, 0)
	worker := machine.Config{InfraID: infraID, Name: "c-12345-gpu-0", Role: machine.Worker, Containers: true}
	if _, err := s.CreateMachine(worker); err != nil {
		t.Fatal(err)
	}
	var results []error
	s.removeCgroups = func(string) error {
		if len(results) == 0 {
			t.Fatal("they are removed once too often")
		}
		next := results[0]
		results = results[1:]
		return next
	}
	results = []error{fmt.Errorf("removing: %w", syscall.EBUSY), nil} // the last process ends in the meantime
	if err := s.RemoveWorker(t.Context(), infraID, worker.Name); err != nil {
		t.Fatal(err)
	}
	if len(results) != 0 || len(trashOf(t, s)) != 0 {
		t.Errorf("%d attempts fewer than expected, trash %v", len(results), trashOf(t, s))
	}
	if _, err := s.CreateMachine(worker); err != nil {
		t.Fatal(err)
	}
	if err := s.removeCgroupsWhenEmpty(t.Context(), worker, s.removeCgroupsUnlessReplaced); err != nil { // those of its namesake
		t.Error(err)
	}
}

func TestWhatCouldNotBeRemovedIsRemovedByTheNextCall(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "[a]*"))
	run(t, s)
	create(t, s, infraID, 1)
	cut, end := context.WithCancel(t.Context())
	end()
	worker := infraID + "-worker-0"
	if _, err := s.moveWorkerToTrash(infraID, worker); err != nil { // the hub's pass ended here
		t.Fatal(err)
	}
	if err := s.RemoveWorker(t.Context(), infraID, worker); err != nil || len(trashOf(t, s)) != 0 {
		t.Errorf("a worker: %v, %v is left", err, trashOf(t, s))
	}
	if _, err := s.moveClusterToTrash(infraID); err != nil {
		t.Fatal(err)
	}
	_ = s.DestroyCluster(cut, infraID) // it may have removed the folder, or not
	if err := s.DestroyCluster(t.Context(), infraID); err != nil || len(trashOf(t, s)) != 0 {
		t.Errorf("a cluster: %v, %v is left", err, trashOf(t, s))
	}
}
