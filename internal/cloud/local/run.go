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
	err = s.begin(ctx)
	if err == nil {
		s.serve(ctx)
	}
	return errors.Join(err, lock.Release())
}

// begin removes what was on its way in or out when the last run ended, ends
// leftover processes of machines that should not run, and has all others looked at.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.tidy(); err != nil {
		return fmt.Errorf("tidying the machine store: %w", err)
	}
	ids, err := s.Clusters()
	if err != nil {
		return err
	}
	for _, id := range ids {
		ms, err := s.look(id)
		if err != nil {
			// A folder that is not of this store's making does not stop the others.
			logr.FromContextOrDiscard(ctx).Error(err, "skipped a cluster", "infraID", id)
			continue
		}
		for _, m := range ms {
			if !m.wanted && leftover(m) {
				s.launch(ctx, m).halt() // that is: only evict
			}
		}
		s.kick(id)
	}
	return nil
}

// tidy removes half machines. s.mu is held: one that is being created is not half.
func (s *Store) tidy() error {
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

// serve makes a pass over each cluster in which something has changed.
func (s *Store) serve(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-s.wake:
			s.passes(ctx)
		case <-ctx.Done():
		}
	}
	s.close(ctx)
}

// close stops everything and waits.
func (s *Store) close(ctx context.Context) {
	s.mu.Lock()
	for _, p := range s.procs {
		s.kick(p.InfraID)
	}
	s.mu.Unlock()
	for {
		s.passes(ctx)
		s.mu.Lock()
		left := len(s.procs)
		s.mu.Unlock()
		if left == 0 {
			break
		}
		<-s.wake
	}
	s.live.Wait()
}

// passes makes a pass over each cluster that needs one.
func (s *Store) passes(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.dirty {
		delete(s.dirty, id)
		if err := s.pass(ctx, id); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "skipped a cluster", "infraID", id)
		}
	}
}

// pass sees, decides and acts for one cluster. s.mu is held.
func (s *Store) pass(ctx context.Context, infraID string) error {
	ms, err := s.look(infraID)
	if err != nil {
		return err
	}
	for _, do := range decide(ms, ctx.Err() != nil) {
		logr.FromContextOrDiscard(ctx).V(1).Info("decided", "step", do.String())
		switch do.verb {
		case start:
			s.launch(ctx, do.seen)
		case stop:
			s.procs[do.dir].halt()
		}
	}
	return nil
}
