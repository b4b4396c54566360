package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"hotspare.io/hotspare/internal/cloud/local/apiaddress"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

// address is the address of a cluster's API, while this program has its socket or should hold it.
type address struct {
	port int
	// held is set if connections should be held while the control plane does not run.
	held bool
	// socket is nil while the port is free.
	socket *apiaddress.Socket
	// proxy is nil unless held is set.
	proxy *apiaddress.WakeProxy
}

// dialTimeout limits a connection to a control plane that runs on this computer.
const dialTimeout = 10 * time.Second

// HoldAddress accepts the connections to the API of a cluster whenever its control plane does not run, and holds them
// until it runs. Several calls are as one.
func (s *Store) HoldAddress(ctx context.Context, infraID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.addresses[infraID]; a != nil && a.held && a.socket != nil {
		return nil
	}
	ms, err := s.observeMachines(infraID)
	if err != nil {
		return err
	}
	for _, m := range ms {
		if isControlPlane(m) && !m.gone {
			a := s.ensureAddress(m.Config)
			a.held = true
			return s.applyAddress(ctx, infraID, a)
		}
	}
	return fault.NewDenied("cluster %s has no control plane", infraID)
}

// IsAddressHeld reports whether HoldAddress was called, and DropAddress was not.
func (s *Store) IsAddressHeld(infraID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.addresses[infraID]
	return a != nil && a.held
}

// DropAddress ends HoldAddress, and closes the connections that are held.
func (s *Store) DropAddress(ctx context.Context, infraID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.addresses[infraID]
	if a == nil || !a.held {
		return
	}
	a.held = false
	s.updateAddress(ctx, infraID)
}

// CountWaiting returns the number of connections to the API of a cluster that are held.
func (s *Store) CountWaiting(infraID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.addresses[infraID]; a != nil && a.proxy != nil {
		return a.proxy.CountWaiting()
	}
	return 0
}

// ensureAddress returns the address of the API that a control plane serves. The caller must hold s.mu.
func (s *Store) ensureAddress(c machine.Config) *address {
	a := s.addresses[c.InfraID]
	if a == nil {
		a = &address{port: c.APIPort}
		s.addresses[c.InfraID] = a
	}
	return a
}

// passAPISocket passes the socket of the API to the process of a control plane.
func (s *Store) passAPISocket(cmd *exec.Cmd, p *process) error {
	if p.Role != machine.ControlPlane {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.ensureAddress(p.Config)
	if err := a.open(p.InfraID); err != nil {
		return err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, a.socket.File())
	cmd.Env = append(cmd.Env, machine.APISocketVariable+"=1")
	return nil
}

// open opens the socket, if it is not open, and lets it accept connections.
func (a *address) open(infraID string) error {
	if a.socket != nil {
		return a.socket.Resume()
	}
	socket, err := apiaddress.Open(a.port)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.NewDenied("port %d of 127.0.0.1, on which %s serves the API, is taken by another program: "+
			"find it with `ss -ltnp` or `lsof -i :%d`, stop it, then start the cluster again", a.port, infraID, a.port)
	}
	if err != nil {
		return fmt.Errorf("listening on port %d of 127.0.0.1: %w", a.port, err)
	}
	a.socket = socket
	return nil
}

// updateAddress is applyAddress for callers that cannot do anything about an error: the next call of HoldAddress or
// the next start of the control plane tries again. The caller must hold s.mu.
func (s *Store) updateAddress(ctx context.Context, infraID string) {
	a := s.addresses[infraID]
	if a == nil {
		return
	}
	if err := s.applyAddress(ctx, infraID, a); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "clients cannot connect to the API", "infraID", infraID)
	}
}

// applyAddress makes the socket and the proxy what the phase of the control plane requires. The caller must hold s.mu.
func (s *Store) applyAddress(ctx context.Context, infraID string, a *address) error {
	switch phase := s.controlPlanePhase(infraID); {
	case phase == phaseAbsent && !a.held:
		s.closeAddress(ctx, infraID, a)
		return nil
	case phase == phaseFrozen && !a.held:
		a.closeHolder()
		return a.socket.Suspend()
	case phase == phaseAbsent, phase == phaseFrozen:
		return s.startHolding(ctx, infraID, a)
	case phase == phaseRunning:
		if a.proxy != nil {
			a.proxy.Release()
		}
		if !a.held {
			a.proxy = nil // what it passes goes on
		}
		return nil
	case phase == phaseThawing:
		return a.socket.Resume()
	default: // starting, stopping or freezing: connections wait in the kernel
		return nil
	}
}

func (s *Store) startHolding(ctx context.Context, infraID string, a *address) error {
	if err := a.open(infraID); err != nil {
		return err
	}
	if a.proxy == nil {
		dialer, lasting := &net.Dialer{Timeout: dialTimeout}, context.WithoutCancel(ctx)
		dial := func() (net.Conn, error) {
			return dialer.DialContext(lasting, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(a.port)))
		}
		a.proxy = apiaddress.NewWakeProxy(apiaddress.DefaultLimits, s.held, dial, func() { s.notifyRunStateChange(infraID) })
	}
	if a.proxy.IsHolding() {
		return nil
	}
	l, err := a.socket.Listen()
	if err != nil {
		return err
	}
	a.proxy.Hold(l)
	return nil
}

// controlPlanePhase returns the phase of the process of a cluster's control plane. The caller must hold s.mu.
func (s *Store) controlPlanePhase(infraID string) processPhase {
	if p := s.procs[s.MachineDir(infraID, machine.ControlPlaneName(infraID))]; p != nil {
		return p.phase
	}
	return phaseAbsent
}

func (a *address) closeHolder() {
	if a.proxy != nil {
		a.proxy.Close()
		a.proxy = nil
	}
}

// closeAddress frees the port. The caller must hold s.mu.
func (s *Store) closeAddress(ctx context.Context, infraID string, a *address) {
	a.closeHolder()
	if a.socket != nil {
		if err := a.socket.Close(); err != nil {
			logr.FromContextOrDiscard(ctx).Error(err, "closing the socket of the API", "infraID", infraID)
		}
	}
	delete(s.addresses, infraID)
}

// closeAddresses frees all ports, after all machines have stopped.
func (s *Store) closeAddresses(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for infraID, a := range s.addresses {
		s.closeAddress(ctx, infraID, a)
	}
}
