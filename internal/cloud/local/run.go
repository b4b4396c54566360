package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"

	"hotspare.io/hotspare/internal/controlplane/flock"
)

// Run brings every machine to the state it should be in, and keeps at it, until
// ctx ends. Then it stops all processes, workers first, and returns when the last
// one has ended; what each machine should do remains recorded. The error is a
// *flock.HeldError if another program runs the store.
func (s *Store) Run(ctx context.Context) error {
	lock, err := flock.Acquire(filepath.Join(s.dir, ".lock"))
	if err != nil {
		return fmt.Errorf("running the machines of %s: %w", s.dir, err)
	}
	err = s.recoverMachines(ctx)
	if err == nil {
		s.reconcileUntilDone(ctx)
	}
	return errors.Join(err, lock.Release())
}

// recoverMachines removes what was on its way in or out when the last run ended, ends
// leftover processes of machines that should not run, and has all others looked at.
func (s *Store) recoverMachines(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.removeIncomplete(); err != nil {
		return fmt.Errorf("tidying the machine store: %w", err)
	}
	ids, err := s.ListClusters()
	if err != nil {
		return err
	}
	for _, id := range ids {
		ms, err := s.observeMachines(id)
		if err != nil {
			// A folder that is not of this store's making does not stop the others.
			logr.FromContextOrDiscard(ctx).Error(err, "skipped a cluster", "infraID", id)
			continue
		}
		for _, m := range ms {
			if !m.wanted && hasLeftoverProcess(m) {
				s.startMachineProcess(ctx, m).requestStop() // that is: only evict
			}
		}
		s.enqueueCluster(id)
	}
	return nil
}

// removeIncomplete removes half machines. s.mu is held: one that is being created is not half.
func (s *Store) removeIncomplete() error {
	for _, prefix := range []string{newPrefix, trashPrefix} {
		rubbish, err := filepath.Glob(filepath.Join(s.dir, prefix+"*"))
		if err != nil {
			return err
		}
		for _, dir := range rubbish {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconcileUntilDone makes a pass over each cluster in which something has changed.
func (s *Store) reconcileUntilDone(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-s.wake:
			s.reconcileDirty(ctx)
		case <-ctx.Done():
		}
	}
	s.stopAllMachines(ctx)
}

// stopAllMachines stops everything and waits.
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

// reconcileDirty makes a pass over each cluster that needs one.
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

// reconcileCluster sees, decides and acts for one cluster. s.mu is held.
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
			s.procs[do.dir].requestStop()
		}
	}
	return nil
}
