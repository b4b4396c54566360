package local

import (
	"errors"
	"os"
	"path/filepath"
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
	s := open(t, t.TempDir(), WithGrace(200*time.Millisecond))
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
