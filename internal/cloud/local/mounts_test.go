package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// mountAt replaces the mounts of this computer that a store sees.
func mountAt(s *Store, points ...string) {
	s.listMounts = func(filter mountinfo.FilterFunc) ([]*mountinfo.Info, error) {
		var found []*mountinfo.Info
		for _, point := range points {
			m := &mountinfo.Info{Mountpoint: point}
			if skip, _ := filter(m); !skip {
				found = append(found, m)
			}
		}
		return found, nil
	}
}

func TestNothingIsRemovedThatSomebodyHasMountedInAMachine(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	target := t.TempDir()
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	s := open(t, link)
	create(t, s, infraID, 1)
	name := infraID + "-worker-0"
	data := filepath.Join(s.MachineDir(infraID, name), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(data, "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(data)
	if err != nil {
		t.Fatal(err)
	}
	mountAt(s, "/", filepath.Dir(target), real)

	for what, err := range map[string]error{
		"cluster": s.DestroyCluster(t.Context(), infraID),
		"worker":  s.RemoveWorker(t.Context(), infraID, name),
	} {
		if err == nil || !strings.Contains(err.Error(), real) || !strings.Contains(err.Error(), "umount") {
			t.Errorf("the removal of the %s: %v", what, err)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if list, err := s.ListMachines(infraID); err != nil || len(list) != 2 {
		t.Errorf("%d machines are left, %v: want all", len(list), err)
	}

	t.Log("at the next start, too")
	if moved, err := s.moveClusterToTrash(infraID); err != nil || !moved {
		t.Fatal(moved, err)
	}
	all, err := s.listTrash(infraID)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	trash := all[0]
	moved := filepath.Join(trash, infraID, name)
	mountAt(s, strings.Replace(moved, link, target, 1))
	if err := s.removeIncomplete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(machine.ConfigPath(moved)); err != nil {
		t.Error(err)
	}
	mountAt(s)
	if err := s.removeIncomplete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(trash); !os.IsNotExist(err) {
		t.Errorf("after the end of the mount the folder is left: %v", err)
	}
}
