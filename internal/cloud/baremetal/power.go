// Package baremetal starts and stops the hosts of clusters on bare metal through their BMCs: with
// Redfish, or with IPMI if a BMC supports nothing else.
//
// Nothing marks a host as a cluster's, so the hub has a list of hosts with their BMCs and accounts:
// docs/platforms/baremetal.md has the rules. The last action for a host is remembered only for the
// life of the process. After a restart hotspare asks the host to shut down again; the age of the
// hibernation determines when to power the host off instead.
package baremetal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
)

// Actuator implements cloud.Actuator for bare metal.
type Actuator struct {
	secrets     cloud.Secrets
	authorities *cabundle.Source
	memory      actionStore
	locked      lockedAccounts
	clock       clock.PassiveClock
	// requestTimeout is how long a BMC may take for one response.
	requestTimeout time.Duration
}

var _ cloud.Actuator = (*Actuator)(nil)

// New returns an Actuator. secrets reads the Secrets of the hub. Every connection trusts the
// certificates of authorities in addition to the system's.
func New(secrets cloud.Secrets, authorities *cabundle.Source) *Actuator {
	return &Actuator{
		secrets: secrets, authorities: authorities, clock: clock.RealClock{}, requestTimeout: powerorder.RequestTimeout,
		memory: actionStore{lastActions: map[string]lastAction{}}, locked: lockedAccounts{until: map[string]time.Time{}},
	}
}

// Observe returns the cluster's hosts. A host whose BMC does not report its state is Unknown; if no
// BMC does, Observe returns an error.
func (a *Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	_, all, err := a.observeAllHosts(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ms cloud.Machines
	var errs []error
	for _, s := range all {
		ms = append(ms, s.toCloudMachine(a.clock.Now()))
		if s.err != nil {
			errs = append(errs, s.err)
		}
	}
	if len(errs) > 0 && (len(errs) == len(all) || ctx.Err() != nil) {
		return nil, joinHostErrors(all, "observing")
	}
	ms.SortByName()
	return ms, nil
}

// Start powers on the control plane and, once most of it runs, the workers.
func (a *Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	inv, all, err := a.observeAllHosts(ctx, ref)
	if err != nil {
		return err
	}
	var ms cloud.Machines
	for _, s := range all {
		ms = append(ms, s.toCloudMachine(a.clock.Now()))
	}
	done := a.applyPowerActions(ctx, inv, selectHostsByName(all, powerorder.MachinesToStart(ms)), lastAction.nextStartAction)
	return errors.Join(joinHostErrors(all, "starting"), joinHostErrors(done, "starting"))
}

// Stop asks the workers to shut down and, once none of them is on, the control plane. A later call
// powers off a host that has not shut down within the grace period (shutdownGraceAt).
func (a *Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	inv, all, err := a.observeAllHosts(ctx, ref)
	if err != nil {
		return err
	}
	age := time.Duration(0)
	if !ref.Since.IsZero() {
		age = a.clock.Now().Sub(ref.Since)
	}
	patience := shutdownGraceAt(age)
	next := func(t lastAction, power power, now time.Time) powerAction {
		return t.nextStopAction(power, now, patience)
	}

	ms, complete := machinesToStop(all, age)
	done := a.applyPowerActions(ctx, inv, selectHostsByName(all, powerorder.MachinesToStop(ms, false)), next)
	excludeRefusing(ms, done, age)
	second := a.applyPowerActions(ctx, inv, selectHostsByName(all, excludeDoneNames(powerorder.MachinesToStop(ms, complete), done)), next)
	return errors.Join(joinHostErrors(all, "stopping"), joinHostErrors(done, "stopping"), joinHostErrors(second, "stopping"))
}

// hostObservation is a host as reported by its BMC, or the error that prevented that.
type hostObservation struct {
	host
	power         power
	reportedState string
	lastAction    lastAction
	err           error
}

// toCloudMachine returns the host as users of the platform see it.
func (o hostObservation) toCloudMachine(now time.Time) cloud.Machine {
	m := cloud.Machine{Name: o.name, ControlPlane: o.controlPlane, State: cloud.Unknown}
	if o.err != nil {
		m.Reason = o.err.Error()
		return m
	}
	switch m.State = o.lastAction.machineState(o.power, now); m.State {
	case cloud.Failed:
		m.Reason = fmt.Sprintf("its BMC reports the power state %s; starting the cluster resumes it, and stopping powers it off", o.reportedState)
	case cloud.Unknown:
		m.Reason = fmt.Sprintf("its BMC reports the power state %q", o.reportedState)
	}
	return m
}

// machinesToStop returns the hosts with the states that decide which to stop: a host that was asked
// to shut down counts as running until it is off. complete is false if workers that could not be
// read must be waited for. They need not be if a person must correct the error, or if the
// hibernation is old enough that there was time to read them.
func machinesToStop(all []hostObservation, age time.Duration) (ms cloud.Machines, complete bool) {
	complete = true
	for _, s := range all {
		m := cloud.Machine{Name: s.name, ControlPlane: s.controlPlane, State: cloud.Running}
		switch {
		case s.err != nil:
			m.State = cloud.Unknown
			complete = complete && (m.ControlPlane || fault.KindOf(s.err) == fault.Denied || age >= 2*shutdownGrace)
		case s.power == unknownPower:
			m.State = cloud.Unknown
		case s.power == poweredOff && s.lastAction.action != turnOn:
			m.State = cloud.Stopped
		}
		ms = append(ms, m)
	}
	return ms, complete
}

// excludeRefusing excludes hosts that refuse to stop, or have failed to for a long time: they would
// block the others forever.
func excludeRefusing(ms cloud.Machines, done []hostObservation, age time.Duration) {
	for _, s := range done {
		for i := range ms {
			if ms[i].Name == s.name && s.err != nil && (fault.KindOf(s.err) == fault.Denied || age >= lateHibernation) {
				ms[i].State = cloud.Unknown
			}
		}
	}
}

// selectHostsByName returns the observed hosts with those names.
func selectHostsByName(all []hostObservation, names []string) []host {
	var out []host
	for _, s := range all {
		for _, name := range names {
			if s.name == name {
				out = append(out, s.host)
			}
		}
	}
	return out
}

// excludeDoneNames returns names without those of the hosts in done.
func excludeDoneNames(names []string, done []hostObservation) []string {
	var out []string
	for _, name := range names {
		if len(selectHostsByName(done, []string{name})) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// observeAllHosts reads the state of every host of the cluster from its BMC.
func (a *Actuator) observeAllHosts(ctx context.Context, ref cloud.Ref) (inventory, []hostObservation, error) {
	if err := ctx.Err(); err != nil {
		return inventory{}, nil, fault.New(fault.Unknown, fmt.Errorf("finding hosts of %s: %w", ref.Cluster, err))
	}
	inv, err := a.readInventory(ctx, ref)
	if err != nil {
		return inventory{}, nil, err
	}
	inv.trust.authorities = a.authorities.LatestBundle(ctx)
	all := a.visitHosts(ctx, inv.trust, inv.hosts, func(context.Context, managedHost, lastAction) error { return nil })
	return inv, all, nil
}

// applyPowerActions applies the action that next returns to each host, based on the current state
// that its BMC reports.
func (a *Actuator) applyPowerActions(ctx context.Context, inv inventory, hosts []host, next func(lastAction, power, time.Time) powerAction) []hostObservation {
	return a.visitHosts(ctx, inv.trust, hosts, func(ctx context.Context, n managedHost, t lastAction) error {
		o := next(t, n.powerState(), a.clock.Now())
		switch o {
		case noAction:
			return nil
		case waitAction:
			a.memory.recordLastAction(n.uniqueID(), o, a.clock.Now())
			return nil
		}
		err := n.setPowerState(ctx, o)
		if o == shutDown && errors.Is(err, errUnsupported) {
			o = powerOff // this BMC cannot shut down a guest
			err = n.setPowerState(ctx, o)
		}
		if err == nil {
			a.memory.recordLastAction(n.uniqueID(), o, a.clock.Now())
		}
		return err
	})
}
