// Package vsphere starts and stops the machines of clusters on VMware vSphere.
//
// A cluster's machines are those with the installer's tag, in every vCenter that
// spec.platform.vsphere names; docs/platforms/vsphere.md has the rules. The package keeps no state
// except sessions: it reads earlier power requests from vCenter's tasks and events, so a restart
// loses nothing.
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

// Actuator implements cloud.Actuator for vSphere. Close or Run logs its sessions out.
type Actuator struct {
	secrets     cloud.Secrets
	authorities *cabundle.Source
	sessions    *sessions
	// selected are the machines to control, by BIOS UUID; nil means those of the infraID.
	selected map[string]cloud.Instance
}

var _ cloud.InstanceSelector = (*Actuator)(nil)

// New returns an Actuator. secrets reads the Secrets that clusters name. Every connection trusts the
// certificates of authorities in addition to the system's.
func New(secrets cloud.Secrets, authorities *cabundle.Source) *Actuator {
	return &Actuator{secrets: secrets, authorities: authorities, sessions: newSessions()}
}

// logoutTimeout limits the time to log sessions out of vCenters; vCenter ends the remaining ones
// automatically.
const logoutTimeout = 2 * time.Second

// Run keeps sessions alive while they are used, and logs all of them out when ctx ends. Without it,
// vCenter ends sessions automatically, and new ones are created when needed.
func (a *Actuator) Run(ctx context.Context) error {
	tick := time.NewTicker(keepAliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutTimeout)
			defer cancel()
			return a.Close(parting)
		case <-tick.C:
			a.sessions.maintainSessions(ctx)
		}
	}
}

// Close logs every session out. Later calls fail.
func (a *Actuator) Close(ctx context.Context) error { return a.sessions.closeSessions(ctx) }

// Observe returns the cluster's machines in all its vCenters. If one of these fails, so does
// Observe: half a cluster is neither running nor stopped.
func (a *Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	fleets, err := a.listClusterMachines(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ms cloud.Machines
	for _, f := range fleets {
		for _, v := range f.vms {
			m := cloud.Machine{Name: uniqueMachineName(v, fleets), ControlPlane: v.controlPlane, ProviderID: v.providerID}
			m.State, m.Reason = v.machineState()
			if m.State == cloud.Stopped && v.isSuspended() {
				m.Depth = cloud.DepthSuspend
			}
			ms = append(ms, m)
		}
	}
	ms.SortByName()
	return ms, nil
}

// Start powers on the control plane and, once each of its machines runs or has failed to start, the
// workers.
func (a *Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	return a.changeInOrder(ctx, ref, powerChange{
		first:      func(v vm) bool { return v.controlPlane },
		applicable: vm.canStart, awaited: vm.isStartPending, do: (*conn).powerOnMachines,
	})
}

// Stop shuts down the workers' guests, or suspends the workers, and, once no worker is on, those of the
// control plane. A later call powers off a guest that has not shut down after shutdownGrace. A suspended
// machine that should be stopped is powered on first, and its guest shut down by a later call: powering
// it off would be a power failure for its guest.
func (a *Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	depth := ref.SelectDepth(func(d cloud.Depth) bool { return d == cloud.DepthSuspend })
	change := powerChange{
		first:      func(v vm) bool { return !v.controlPlane },
		applicable: func(v vm) bool { return v.canStop() || v.isAsleepAbove(ref.Depth) },
		awaited:    func(v vm) bool { return v.isConnected() && (v.isPoweredOn() || v.isAsleepAbove(ref.Depth)) },
		do: func(c *conn, ctx context.Context, vms []vm, r *results) {
			asleep, on := splitSuspended(vms)
			c.powerOnMachines(ctx, asleep, r)
			if depth == cloud.DepthSuspend {
				c.suspendMachines(ctx, ref.Since, on, r)
				return
			}
			c.stopMachines(ctx, on, r)
		},
	}
	return a.changeInOrder(ctx, ref, change)
}

// powerChange is a change of machines in two steps.
type powerChange struct {
	// first reports whether a machine belongs to the first step.
	first func(vm) bool
	// applicable reports whether the change can be requested for a machine now, and awaited whether
	// the second step waits for the machine.
	applicable, awaited func(vm) bool
	do                  func(*conn, context.Context, []vm, *results)
}

// changeInOrder executes the first step and, if none of its machines is awaited any more, the
// second. Machines that the account may not change do not block the second step: later calls would
// be denied too. If a vCenter cannot be read, the second step does not start, because unlisted
// machines may belong to the first.
//
// Package turns does not fit here: it sends one request per machine, whereas DRS should place the
// machines of a datacenter together; and it decides by the state alone, whereas vSphere's tasks and
// hosts also determine whether a machine can be started or stopped.
func (a *Actuator) changeInOrder(ctx context.Context, ref cloud.Ref, o powerChange) error {
	fleets, blind := a.listClusterMachines(ctx, ref)
	denied, err := a.changeMachines(ctx, fleets, o, o.first)
	err = errors.Join(blind, err)
	if blind != nil || anyMachineMatches(fleets, func(v vm) bool { return o.first(v) && o.awaited(v) && !denied[v.uniqueID()] }) {
		return err
	}
	_, second := a.changeMachines(ctx, fleets, o, func(v vm) bool { return !o.first(v) })
	return errors.Join(err, second)
}

// changeMachines executes one step, and returns the IDs of the machines that the account may not
// change.
func (a *Actuator) changeMachines(ctx context.Context, fleets []centerVMs, o powerChange, those func(vm) bool) (map[string]bool, error) {
	denied := map[string]bool{}
	var errs []error
	for _, f := range fleets {
		vms := f.selectMachines(func(v vm) bool { return those(v) && o.applicable(v) })
		if len(vms) == 0 {
			continue
		}
		for i := range vms {
			vms[i].label = uniqueMachineName(vms[i], fleets)
		}
		var res results
		errs = append(errs, a.retryWithSession(ctx, f.center, func(ctx context.Context, c *conn) error {
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

// results collects the errors of machines. An error of one machine does not stop the others.
type results struct {
	errs   []error
	denied []string
}

// recordMachineError records the error of a machine. It ignores errors that the next call resolves. A
// machine whose depth is refused is not denied: the next call puts it deeper.
func (r *results) recordMachineError(doing string, v vm, err error) {
	if refused, _ := cloud.SplitRefusedDepths(err); len(refused) > 0 {
		r.errs = append(r.errs, err) // it names the machine
		return
	}
	err = ignoreStaleState(err)
	if err == nil {
		return
	}
	r.errs = append(r.errs, fmt.Errorf("%s %s: %w", doing, v.name, err))
	if fault.KindOf(err) == fault.Denied {
		r.denied = append(r.denied, v.uniqueID())
	}
}

// recordError records an error that concerns no single machine.
func (r *results) recordError(err error) {
	if err != nil {
		r.errs = append(r.errs, err)
	}
}

// centerVMs contains the cluster's machines in one vCenter.
type centerVMs struct {
	center center
	vms    []vm
}

func (m centerVMs) selectMachines(want func(vm) bool) []vm {
	var out []vm
	for _, v := range m.vms {
		if want(v) {
			out = append(out, v)
		}
	}
	return out
}

// uniqueMachineName returns the machine's name. vCenter allows the same name in different folders:
// duplicates are followed by their unique ID.
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

// listClusterMachines lists the cluster's machines. If one vCenter fails, it still returns the
// machines in the others, and an error.
func (a *Actuator) listClusterMachines(ctx context.Context, ref cloud.Ref) ([]centerVMs, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Unknown, fmt.Errorf("finding machines of %s: %w", ref.InfraID, err))
	}
	centers, err := a.readClusterCenters(ctx, ref)
	if err != nil {
		return nil, err
	}
	var fleets []centerVMs
	var errs []error
	for _, c := range centers {
		f := centerVMs{center: c}
		err := a.retryWithSession(ctx, c, func(ctx context.Context, conn *conn) (err error) {
			if a.selected != nil {
				f.vms, err = conn.findSelectedMachines(ctx, a.selected)
			} else {
				f.vms, err = conn.findClusterMachines(ctx, ref.InfraID)
			}
			for i := range f.vms {
				f.vms[i].server = c.server
			}
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("finding machines of %s in vCenter %s: %w", ref.InfraID, c.server, err))
			continue
		}
		fleets = append(fleets, f)
	}
	if a.selected != nil {
		if err := confirmUnique(fleets); err != nil {
			return nil, err
		}
	}
	return fleets, errors.Join(errs...)
}

// retryWithSession calls do with a session. If vCenter has ended that session, it retries once with
// a new one.
func (a *Actuator) retryWithSession(ctx context.Context, c center, do func(context.Context, *conn) error) error {
	err := a.sessions.withSession(ctx, c, do)
	if errors.Is(err, errExpired) {
		err = a.sessions.withSession(ctx, c, do)
	}
	return redactPassword(err, c.password)
}
