package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/processtree"
)

// defaultFreezeTimeout is how long it may take to freeze a machine, which includes the rest of its start. A machine
// that takes longer is stopped.
const defaultFreezeTimeout = 15 * time.Second

// wakeTimeout is how long a thawed control plane may take until its API listens. After that, it is reported as
// running all the same.
const wakeTimeout = 5 * time.Second

// errFreezeNotWanted reports that the machine should not be frozen any more.
var errFreezeNotWanted = errors.New("the machine should not be frozen any more")

// startFreeze freezes a process in the background. The caller must hold s.mu.
func (s *Store) startFreeze(ctx context.Context, p *process) {
	p.phase = phaseFreezing
	s.broadcastChange()
	ctx = context.WithoutCancel(ctx) // when the store closes, it stops the machine
	s.runningProcesses.Go(func() {
		tree, err := s.freezeProcess(ctx, p)
		s.recordFreeze(ctx, p, tree, err)
	})
}

// freezeProcess freezes all processes of a machine: those of a control plane when it is at rest, and when all
// workers are frozen or have ended.
func (s *Store) freezeProcess(ctx context.Context, p *process) (*processtree.Tree, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.freezeTimeout, fmt.Errorf("it took more than %s", s.freezeTimeout))
	defer cancel()
	if isControlPlane(observedMachine{Config: p.Config}) {
		if err := s.waitForRest(ctx, p); err != nil {
			return nil, err
		}
	}
	return processtree.Freeze(ctx, p.pid)
}

// waitForRest asks a control plane to come to rest, and waits until it does and no worker is awake.
func (s *Store) waitForRest(ctx context.Context, p *process) error {
	if err := sendCommand(p.commands, machine.CommandFreeze); err != nil {
		return err
	}
	tick := time.NewTicker(lockPollInterval) // nothing reports that a file is created
	defer tick.Stop()
	for {
		s.mu.Lock()
		ms, err := s.observeMachines(p.InfraID)
		changed := s.changed
		isWanted := p.phase == phaseFreezing && isFreezeWanted(p.dir)
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case !isWanted:
			return errFreezeNotWanted
		case fileExists(machine.QuiescedPath(p.dir)) && !slices.ContainsFunc(ms, isAwakeWorker):
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-tick.C:
		}
	}
}

func sendCommand(to io.Writer, command string) error {
	if _, err := fmt.Fprintln(to, command); err != nil {
		return fmt.Errorf("sending command %s: %w", command, err)
	}
	return nil
}

// recordFreeze records the result of a freeze. A machine that cannot be frozen is stopped.
func (s *Store) recordFreeze(ctx context.Context, p *process, tree *processtree.Tree, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.tree = tree
	switch {
	case p.phase != phaseFreezing || s.procs[p.dir] != p: // it was asked to stop, or has ended
		p.thawTree(ctx)
		return
	case errors.Is(err, errFreezeNotWanted):
		s.startThaw(ctx, p)
		return
	case err != nil:
		logr.FromContextOrDiscard(ctx).Info("could not freeze a machine: stopping it", "machine", p.Name, "reason", err.Error())
		s.recordUnfreezable(p, err)
		s.startThaw(ctx, p) // it must be awake to stop
		return
	}
	p.phase = phaseFrozen
	s.updateAddress(ctx, p.InfraID)
	s.notifyRunStateChange(p.InfraID)
	s.broadcastChange()
	s.enqueueCluster(p.InfraID)
}

// recordUnfreezable records that a machine could not be frozen. Without a control plane that is frozen, frozen workers
// would only use memory. The caller must hold s.mu.
func (s *Store) recordUnfreezable(p *process, cause error) {
	s.freezeObstacles[p.dir] = "it could not be frozen: " + cause.Error()
	if !isControlPlane(observedMachine{Config: p.Config}) {
		return
	}
	for dir, other := range s.procs {
		if other.InfraID == p.InfraID && dir != p.dir && isFreezeWanted(dir) {
			s.freezeObstacles[dir] = "its control plane could not be frozen"
		}
	}
}

// thawTree continues the processes of a frozen machine, if it is frozen. The caller must hold s.mu.
func (p *process) thawTree(ctx context.Context) {
	if p.tree == nil {
		return
	}
	if err := p.tree.Thaw(); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "some processes of a machine may be frozen until it is stopped", "machine", p.Name)
	}
	p.tree = nil
}

// startThaw thaws a frozen process, and records in the background when it runs. The caller must hold s.mu.
func (s *Store) startThaw(ctx context.Context, p *process) {
	p.thawTree(ctx)
	p.phase = phaseThawing
	s.updateAddress(ctx, p.InfraID)
	s.broadcastChange()
	s.runningProcesses.Go(func() {
		if err := s.wakeControlPlane(context.WithoutCancel(ctx), p); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "a thawed control plane does not answer yet", "machine", p.Name)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.phase != phaseThawing || s.procs[p.dir] != p {
			return
		}
		p.phase = phaseRunning
		s.updateAddress(ctx, p.InfraID)
		s.notifyRunStateChange(p.InfraID)
		s.broadcastChange()
		s.enqueueCluster(p.InfraID)
	})
}

// wakeControlPlane asks a thawed control plane to wake up, and waits until its API can be used. Workers need no
// wake.
func (s *Store) wakeControlPlane(ctx context.Context, p *process) error {
	if !isControlPlane(observedMachine{Config: p.Config}) {
		return nil
	}
	if err := sendCommand(p.commands, machine.CommandThaw); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	tick := time.NewTicker(wakePollInterval) // nothing reports that a file is removed
	defer tick.Stop()
	for {
		if _, err := os.Stat(machine.QuiescedPath(p.dir)); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// wakePollInterval is how often a control plane that wakes up is checked, which takes some milliseconds.
const wakePollInterval = 2 * time.Millisecond
