package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/logfile"
)

// Run brings every machine to its desired state and keeps it there until ctx ends. Then it stops
// all processes, workers first, and returns when the last one has ended; the desired state of each
// machine stays recorded. The error is a *flock.HeldError if another program runs the store.
func (s *Store) Run(ctx context.Context) error {
	lock, err := flock.Acquire(filepath.Join(s.dir, ".lock"))
	if err != nil {
		return fmt.Errorf("running the machines of %s: %w", s.dir, err)
	}
	var limits sync.WaitGroup
	limited, stop := context.WithCancel(ctx)
	limits.Go(func() {
		logfile.KeepLimited(limited, clock.RealClock{}, maxLogSize, s.listLogs, func(err error) {
			logr.FromContextOrDiscard(ctx).Error(err, "limiting the log of a machine")
		})
	})
	defer limits.Wait()
	defer stop()
	err = s.recoverMachines(ctx)
	if err == nil {
		s.reconcileUntilDone(ctx)
	}
	return errors.Join(err, lock.Release())
}

// recoverMachines removes machines that were being created or deleted when the last run ended, ends
// leftover processes of machines that should not run and removes their cgroups, and enqueues all clusters.
func (s *Store) recoverMachines(ctx context.Context) error {
	if err := s.removeIncomplete(ctx); err != nil { // before a machine starts that has the name of one of them
		return fmt.Errorf("cleaning up the machine store: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, err := s.ListClusters()
	if err != nil {
		return err
	}
	for _, id := range ids {
		ms, err := s.observeMachines(id)
		if err != nil {
			// A folder that this store did not create does not block the others.
			logr.FromContextOrDiscard(ctx).Error(err, "skipped a cluster", "infraID", id)
			continue
		}
		for _, m := range ms {
			if !m.wanted && (m.RunsContainers() || hasLeftoverProcess(m)) {
				s.startMachineProcess(ctx, m).requestStop(ctx) // only removes what is left over
			}
		}
		s.enqueueCluster(id)
	}
	return nil
}

// removeIncomplete removes partially created and partially deleted machines, and ends the processes that the latter still
// have. One that cannot be removed stays until the next run.
func (s *Store) removeIncomplete(ctx context.Context) error {
	rubbish, err := s.listIncomplete()
	if err != nil {
		return err
	}
	for _, dir := range rubbish {
		err := s.endRemovedMachines(ctx, dir)
		if err == nil {
			err = s.removeAll(ctx, dir)
		}
		if err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "will remove the folder at the next start", "folder", dir)
		}
	}
	return nil
}

// listIncomplete returns the folders of partially created and partially deleted machines. It holds s.mu, so that no
// machine is being created at the same time.
func (s *Store) listIncomplete() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), newPrefix) || strings.HasPrefix(e.Name(), trashPrefix) {
			found = append(found, filepath.Join(s.dir, e.Name()))
		}
	}
	return found, nil
}

// reconcileUntilDone reconciles each cluster that has changed, until ctx ends.
func (s *Store) reconcileUntilDone(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-s.wake:
			s.reconcileDirty(ctx)
		case <-ctx.Done():
		}
	}
	s.stopAllMachines(ctx)
	s.closeAddresses(ctx)
}

// stopAllMachines stops all machines and waits until their processes have ended.
func (s *Store) stopAllMachines(ctx context.Context) {
	s.mu.Lock()
	for _, p := range s.procs {
		s.enqueueCluster(p.InfraID)
	}
	s.mu.Unlock()
	for {
		s.reconcileDirty(ctx)
		s.mu.Lock()
		left := len(s.procs)
		s.mu.Unlock()
		if left == 0 {
			break
		}
		<-s.wake
	}
	s.runningProcesses.Wait()
}

// reconcileDirty reconciles each cluster that is marked dirty.
func (s *Store) reconcileDirty(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.dirty {
		delete(s.dirty, id)
		if err := s.reconcileCluster(ctx, id); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "skipped a cluster", "infraID", id)
		}
	}
}

// reconcileCluster observes, decides and acts for one cluster. The caller must hold s.mu.
func (s *Store) reconcileCluster(ctx context.Context, infraID string) error {
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	for _, do := range decideSteps(ms, ctx.Err() != nil) {
		logr.FromContextOrDiscard(ctx).V(1).Info("decided", "step", do.String())
		switch do.verb {
		case verbStart:
			s.startMachineProcess(ctx, do.observedMachine)
		case verbStop:
			s.procs[do.dir].requestStop(ctx)
		case verbFreeze:
			s.startFreeze(ctx, s.procs[do.dir])
		case verbThaw:
			s.startThaw(ctx, s.procs[do.dir])
		}
	}
	return nil
}
