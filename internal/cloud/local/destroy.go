package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
		trash, err := s.moveClusterToTrash(infraID)
		if err != nil {
			return fmt.Errorf("removing the machines of %s: %w", infraID, err)
		}
		if trash != "" {
			return s.removeAll(ctx, trash)
		}
	}
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

// moveClusterToTrash moves all machines of a cluster out of the store in one rename and returns
// their new folder. It returns "" and moves nothing if one of them was started in the meantime.
func (s *Store) moveClusterToTrash(infraID string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasClusterProcess(infraID) {
		return "", nil
	}
	trash, err := os.MkdirTemp(s.dir, trashPrefix)
	if err != nil {
		return "", err
	}
	err = os.Rename(filepath.Join(s.dir, infraID), filepath.Join(trash, infraID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", errors.Join(err, os.Remove(trash))
	}
	for dir := range s.lastExits {
		if filepath.Dir(dir) == filepath.Join(s.dir, infraID) {
			delete(s.lastExits, dir)
		}
	}
	return trash, nil
}
