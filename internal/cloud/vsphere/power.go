// Package vsphere starts and stops the machines of clusters on VMware vSphere.
//
// A cluster's machines are what the installer's tag is attached to, in every
// vCenter that spec.platform.vsphere names; docs/platforms/vsphere.md has the
// rules. The package keeps sessions, and nothing else: what has been asked of a
// machine it reads from vCenter's tasks and events, so a restart forgets nothing.
package vsphere

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// Power is the vSphere platform. Close or Run logs its sessions out.
type Power struct {
	secrets     cloud.Secrets
	authorities *cabundle.Source
	sessions    *sessions
}

var _ cloud.Power = (*Power)(nil)

// New makes the vSphere platform. secrets reads the Secrets that clusters name. Every
// connection trusts the certificates of authorities in addition to the system's.
func New(secrets cloud.Secrets, authorities *cabundle.Source) *Power {
	return &Power{secrets: secrets, authorities: authorities, sessions: newSessions()}
}

// logoutTimeout is how long vCenters may take to log sessions out; what is left ends there by itself.
const logoutTimeout = 2 * time.Second

// Run keeps sessions alive while they are used, and logs all out when ctx ends.
// Without it sessions end in vCenter by themselves, and are made anew when needed.
func (p *Power) Run(ctx context.Context) error {
	tick := time.NewTicker(keepAliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutTimeout)
			defer cancel()
			return p.Close(parting)
		case <-tick.C:
			p.sessions.maintainSessions(ctx)
		}
	}
}

// Close logs every session out. Calls that come later fail.
func (p *Power) Close(ctx context.Context) error { return p.sessions.closeSessions(ctx) }

// Observe returns the cluster's machines in all its vCenters. When one of those
// fails the whole observation does: half a cluster is neither running nor stopped.
func (p *Power) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	fleets, err := p.listClusterMachines(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ms cloud.Machines
	for _, f := range fleets {
		for _, v := range f.vms {
			state, reason := v.machineState()
			ms = append(ms, cloud.Machine{Name: uniqueMachineName(v, fleets), ControlPlane: v.controlPlane, State: state, Reason: reason})
		}
	}
	ms.SortByName()
	return ms, nil
}

// Start powers the control plane on, and, once all of it runs or has failed to,
// the workers.
func (p *Power) Start(ctx context.Context, ref cloud.Ref) error {
	return p.changeInOrder(ctx, ref, powerChange{
		first:      func(v vm) bool { return v.controlPlane },
		applicable: vm.canStart, awaited: vm.isStartPending, do: (*conn).powerOnMachines,
	})
}

// Stop shuts the workers' guests down, and, once no worker is on, the control
// plane's. A guest that has not shut down after the grace is powered off by a later call.
func (p *Power) Stop(ctx context.Context, ref cloud.Ref) error {
	return p.changeInOrder(ctx, ref, powerChange{
		first:      func(v vm) bool { return !v.controlPlane },
		applicable: vm.canStop, awaited: func(v vm) bool { return v.isConnected() && v.isPoweredOn() }, do: (*conn).stopMachines,
	})
}

// powerChange is something to do to machines in two steps.
type powerChange struct {
	// first tells the machines of the first step from the others.
	first func(vm) bool
	// applicable is whether a machine can be told now, and awaited whether the second step waits for it.
	applicable, awaited func(vm) bool
	do                  func(*conn, context.Context, []vm, *results)
}

// changeInOrder does the first step and, if none of its machines is awaited any more, the
// second. One that the account may not touch holds nobody up: it will be as it is in
// every later call. Machines that nobody sees may be of the first step.
//
// Package turns is of no use here: it asks for each machine by itself, and DRS wants to
// place those of a datacenter together; and it does not know what can be told to start
// or stop beside its state, by tasks and by the host.
func (p *Power) changeInOrder(ctx context.Context, ref cloud.Ref, o powerChange) error {
	fleets, blind := p.listClusterMachines(ctx, ref)
	denied, err := p.changeMachines(ctx, fleets, o, o.first)
	err = errors.Join(blind, err)
	if blind != nil || anyMachineMatches(fleets, func(v vm) bool { return o.first(v) && o.awaited(v) && !denied[v.uniqueID()] }) {
		return err
	}
	_, second := p.changeMachines(ctx, fleets, o, func(v vm) bool { return !o.first(v) })
	return errors.Join(err, second)
}

// changeMachines does one step, and returns the machines that the account may not touch.
func (p *Power) changeMachines(ctx context.Context, fleets []centerVMs, o powerChange, those func(vm) bool) (map[string]bool, error) {
	denied := map[string]bool{}
	var errs []error
	for _, f := range fleets {
		vms := f.selectMachines(func(v vm) bool { return those(v) && o.applicable(v) })
		if len(vms) == 0 {
			continue
		}
		var res results
		errs = append(errs, p.retryWithSession(ctx, f.center, func(ctx context.Context, c *conn) error {
			res = results{}
			o.do(c, ctx, vms, &res)
			return errors.Join(res.errs...)
		}))
		for _, id := range res.denied {
			denied[id] = true
		}
	}
	return denied, errors.Join(errs...)
}

// results are the errors of machines, each of which stops nobody else.
type results struct {
	errs   []error
	denied []string
}

// recordMachineError notes what has become of a machine; that it has settled by itself is no error.
func (r *results) recordMachineError(doing string, v vm, err error) {
	err = ignoreStaleState(err)
	if err == nil {
		return
	}
	r.errs = append(r.errs, fmt.Errorf("%s %s: %w", doing, v.name, err))
	if fault.KindOf(err) == fault.Denied {
		r.denied = append(r.denied, v.uniqueID())
	}
}

// recordError notes an error that is of no single machine.
func (r *results) recordError(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

// centerVMs is the part of a cluster that is in one vCenter.
type centerVMs struct {
	center center
	vms    []vm
}

func (f centerVMs) selectMachines(want func(vm) bool) []vm {
	var out []vm
	for _, v := range f.vms {
		if want(v) {
			out = append(out, v)
		}
	}
	return out
}

// uniqueMachineName is the machine's name. Where two have the same, which vCenter allows in
// different folders, it is followed by what tells them apart.
func uniqueMachineName(v vm, fleets []centerVMs) string {
	twin := func(other vm) bool { return other.name == v.name && other.uniqueID() != v.uniqueID() }
	if anyMachineMatches(fleets, twin) {
		return v.name + " (" + v.uniqueID() + ")"
	}
	return v.name
}

func anyMachineMatches(fleets []centerVMs, is func(vm) bool) bool {
	for _, f := range fleets {
		if len(f.selectMachines(is)) > 0 {
			return true
		}
	}
	return false
}

// listClusterMachines finds the cluster's machines. A vCenter that fails does not hide the others.
func (p *Power) listClusterMachines(ctx context.Context, ref cloud.Ref) ([]centerVMs, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Unknown, fmt.Errorf("looking for machines of %s: %w", ref.InfraID, err))
	}
	centers, err := p.readClusterCenters(ctx, ref)
	if err != nil {
		return nil, err
	}
	var fleets []centerVMs
	var errs []error
	for _, c := range centers {
		f := centerVMs{center: c}
		err := p.retryWithSession(ctx, c, func(ctx context.Context, conn *conn) (err error) {
			f.vms, err = conn.findClusterMachines(ctx, ref.InfraID)
			for i := range f.vms {
				f.vms[i].server = c.server
			}
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("looking for machines of %s in vCenter %s: %w", ref.InfraID, c.server, err))
			continue
		}
		fleets = append(fleets, f)
	}
	return fleets, errors.Join(errs...)
}

// retryWithSession does something in a session. One that vCenter has ended meanwhile is made anew, once.
func (p *Power) retryWithSession(ctx context.Context, c center, do func(context.Context, *conn) error) error {
	err := p.sessions.withSession(ctx, c, do)
	if errors.Is(err, errExpired) {
		err = p.sessions.withSession(ctx, c, do)
	}
	return redactPassword(err, c.password)
}
