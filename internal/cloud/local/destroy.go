package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/usernamespace"
)

// DestroyCluster stops the machines of a cluster and removes them with their disks. It waits until
// they are removed or ctx ends; after that, it can be called again. It may be interrupted at any
// point: either all machines remain, and DestroyCluster can be retried, or none does. A cluster
// without machines is success.
func (s *Store) DestroyCluster(ctx context.Context, infraID string) error {
	s.ReleaseResources(infraID)
	s.DropAddress(ctx, infraID)
	for {
		if err := s.StopCluster(infraID); err != nil {
			return err
		}
		if err := s.waitForClusterExit(ctx, infraID); err != nil {
			return err
		}
		if err := s.endLeftoverProcesses(ctx, infraID); err != nil {
			return err
		}
		if err := s.checkNoMounts(filepath.Join(s.dir, infraID)); err != nil {
			return fmt.Errorf("removing the machines of %s: %w", infraID, err)
		}
		moved, err := s.moveClusterToTrash(infraID)
		if err != nil {
			return fmt.Errorf("removing the machines of %s: %w", infraID, err)
		}
		if moved {
			return s.removeTrash(ctx, infraID)
		}
	}
}

// removeTrash removes what was moved to the trash under a name, also by an earlier call that could not remove it.
func (s *Store) removeTrash(ctx context.Context, name string) error {
	all, err := s.listTrash(name)
	if err != nil {
		return err
	}
	for _, trash := range all {
		if err := s.endRemovedMachines(ctx, trash); err != nil {
			return err
		}
		if err := s.removeAll(ctx, trash); err != nil {
			return err
		}
	}
	return nil
}

// listTrash returns the folders of the trash that contain a cluster or a machine with a name.
func (s *Store) listTrash(name string) ([]string, error) {
	all, err := s.listIncomplete()
	if err != nil {
		return nil, fmt.Errorf("searching what is left of %s: %w", name, err)
	}
	return slices.DeleteFunc(all, func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err != nil || !strings.HasPrefix(filepath.Base(dir), trashPrefix)
	}), nil
}

// removeAll removes a folder of machines in which nothing is mounted. Containers may have written files there that belong to other
// users.
func (s *Store) removeAll(ctx context.Context, dir string) error {
	if err := s.checkNoMounts(dir); err != nil {
		return err
	}
	return usernamespace.Remover{Command: s.command}.RemoveAll(ctx, dir)
}

// waitForClusterExit waits until no machine of a cluster has a process.
func (s *Store) waitForClusterExit(ctx context.Context, infraID string) error {
	for {
		s.mu.Lock()
		busy, changed := s.hasClusterProcess(infraID), s.changed
		s.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return interruptedError(ctx, "waiting for the machines to stop of", infraID)
		}
	}
}

// hasClusterProcess reports whether a machine of the cluster has a process. The caller must hold
// s.mu.
func (s *Store) hasClusterProcess(infraID string) bool {
	for _, p := range s.procs {
		if p.InfraID == infraID {
			return true
		}
	}
	return false
}

// endLeftoverProcesses ends the processes that an earlier run of the store left behind, and removes their
// cgroups. It covers the case that Run has not done so yet.
func (s *Store) endLeftoverProcesses(ctx context.Context, infraID string) error {
	list, err := s.ListMachines(infraID)
	if err != nil {
		return err
	}
	for _, c := range list {
		if err := endLockHolder(machine.LockPath(s.MachineDir(infraID, c.Name)), s.grace); err != nil {
			return err
		}
		if err := s.removeCgroupsWhenEmpty(ctx, c, s.removeCgroupsOf); err != nil {
			return err
		}
	}
	return nil
}

// moveClusterToTrash moves all machines of a cluster out of the store in one rename; without machines, it does nothing. It
// returns false and moves nothing if one of them was started in the meantime.
func (s *Store) moveClusterToTrash(infraID string) (moved bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasClusterProcess(infraID) {
		return false, nil
	}
	trash, err := os.MkdirTemp(s.dir, trashPrefix)
	if err != nil {
		return false, err
	}
	err = os.Rename(filepath.Join(s.dir, infraID), filepath.Join(trash, infraID))
	if err != nil {
		err = errors.Join(ignoreNotExist(err), os.Remove(trash))
	}
	if err != nil {
		return false, err
	}
	for dir := range s.lastExits {
		if filepath.Dir(dir) == filepath.Join(s.dir, infraID) {
			delete(s.lastExits, dir)
		}
	}
	return true, nil
}

func ignoreNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
