// Package baremetal starts and stops the hosts of clusters on bare metal, through their
// BMCs: with Redfish, or with IPMI where a BMC speaks nothing else.
//
// Nothing marks a host as a cluster's, so the hub keeps a list of them with their BMCs
// and accounts: docs/platforms/baremetal.md has the rules. What a host was told last is
// remembered only as long as the process lives; after that it is asked to shut down
// again, and how long the hibernation goes on already says when to ask no more.
package baremetal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/turns"
	"hotspare.io/hotspare/internal/fault"
)

// Power is the bare metal platform.
type Power struct {
	secrets     cloud.Secrets
	authorities *cabundle.Source
	memory      actionStore
	locked      lockedAccounts
	clock       clock.PassiveClock
	// requestTimeout is how long a BMC has for one answer.
	requestTimeout time.Duration
}

var _ cloud.Power = (*Power)(nil)

// New makes the bare metal platform. secrets reads the Secrets of the hub. Every connection
// trusts the certificates of authorities in addition to the system's.
func New(secrets cloud.Secrets, authorities *cabundle.Source) *Power {
	return &Power{
		secrets: secrets, authorities: authorities, clock: clock.RealClock{}, requestTimeout: turns.RequestTimeout,
		memory: actionStore{lastActions: map[string]lastAction{}}, locked: lockedAccounts{until: map[string]time.Time{}},
	}
}

// Observe returns the cluster's hosts. One whose BMC does not tell is Unknown; it is an
// error if none does.
func (p *Power) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	_, all, err := p.observeAllHosts(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ms cloud.Machines
	var errs []error
	for _, s := range all {
		ms = append(ms, s.toCloudMachine(p.clock.Now()))
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

// Start turns the control plane on and, once most of it runs, the workers.
func (p *Power) Start(ctx context.Context, ref cloud.Ref) error {
	inv, all, err := p.observeAllHosts(ctx, ref)
	if err != nil {
		return err
	}
	var ms cloud.Machines
	for _, s := range all {
		ms = append(ms, s.toCloudMachine(p.clock.Now()))
	}
	done := p.applyPowerActions(ctx, inv, selectHostsByName(all, turns.MachinesToStart(ms)), lastAction.nextStartAction)
	return errors.Join(joinHostErrors(all, "starting"), joinHostErrors(done, "starting"))
}

// Stop asks the workers to shut down and, once none of them is on, the control plane. A
// host that has not done so after the grace is powered off by a later call.
func (p *Power) Stop(ctx context.Context, ref cloud.Ref) error {
	inv, all, err := p.observeAllHosts(ctx, ref)
	if err != nil {
		return err
	}
	age := time.Duration(0)
	if !ref.Since.IsZero() {
		age = p.clock.Now().Sub(ref.Since)
	}
	patience := shutdownGraceAt(age)
	next := func(t lastAction, power power, now time.Time) powerAction {
		return t.nextStopAction(power, now, patience)
	}

	ms, complete := machinesToStop(all, age)
	done := p.applyPowerActions(ctx, inv, selectHostsByName(all, turns.MachinesToStop(ms, false)), next)
	excludeRefusing(ms, done, age)
	second := p.applyPowerActions(ctx, inv, selectHostsByName(all, excludeDoneNames(turns.MachinesToStop(ms, complete), done)), next)
	return errors.Join(joinHostErrors(all, "stopping"), joinHostErrors(done, "stopping"), joinHostErrors(second, "stopping"))
}

// hostObservation is a host as its BMC shows it, or why it does not.
type hostObservation struct {
	host
	power         power
	reportedState string
	lastAction    lastAction
	err           error
}

// toCloudMachine is what the platform's users see of a host.
func (s hostObservation) toCloudMachine(now time.Time) cloud.Machine {
	m := cloud.Machine{Name: s.name, ControlPlane: s.controlPlane, State: cloud.Unknown}
	if s.err != nil {
		m.Reason = s.err.Error()
		return m
	}
	switch m.State = s.lastAction.machineState(s.power, now); m.State {
	case cloud.Failed:
		m.Reason = fmt.Sprintf("its BMC says that it is %s; starting the cluster resumes it, and stopping powers it off", s.reportedState)
	case cloud.Unknown:
		m.Reason = fmt.Sprintf("its BMC tells the power state %q", s.reportedState)
	}
	return m
}

// machinesToStop is which hosts have still to be stopped: a host that was asked to shut down is
// on until it is off. It is complete if those that nobody sees need not be waited for:
// those that a person must see to, or that there was time enough to see.
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

// excludeRefusing leaves out those that refuse to be stopped, or fail to for long: they would hold
// up the others for ever.
func excludeRefusing(ms cloud.Machines, done []hostObservation, age time.Duration) {
	for _, s := range done {
		for i := range ms {
			if ms[i].Name == s.name && s.err != nil && (fault.KindOf(s.err) == fault.Denied || age >= lateHibernation) {
				ms[i].State = cloud.Unknown
			}
		}
	}
}

// selectHostsByName returns the hosts of those names that were seen.
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

// excludeDoneNames leaves out the names of those that it has been done to.
func excludeDoneNames(names []string, done []hostObservation) []string {
	var out []string
	for _, name := range names {
		if len(selectHostsByName(done, []string{name})) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// observeAllHosts asks the BMC of every host of the cluster.
func (p *Power) observeAllHosts(ctx context.Context, ref cloud.Ref) (inventory, []hostObservation, error) {
	if err := ctx.Err(); err != nil {
		return inventory{}, nil, fault.New(fault.Unknown, fmt.Errorf("looking for hosts of %s: %w", ref.Cluster, err))
	}
	inv, err := p.readInventory(ctx, ref)
	if err != nil {
		return inventory{}, nil, err
	}
	inv.trust.authorities = p.authorities.LatestBundle(ctx)
	all := p.visitHosts(ctx, inv.trust, inv.hosts, func(context.Context, managedHost, lastAction) error { return nil })
	return inv, all, nil
}

// applyPowerActions gives hosts the order that next says, by what their BMCs tell just now.
func (p *Power) applyPowerActions(ctx context.Context, inv inventory, hosts []host, next func(lastAction, power, time.Time) powerAction) []hostObservation {
	return p.visitHosts(ctx, inv.trust, hosts, func(ctx context.Context, n managedHost, t lastAction) error {
		o := next(t, n.powerState(), p.clock.Now())
		switch o {
		case noAction:
			return nil
		case waitAction:
			p.memory.recordLastAction(n.uniqueID(), o, p.clock.Now())
			return nil
		}
		err := n.setPowerState(ctx, o)
		if o == shutDown && errors.Is(err, errUnsupported) {
			o = powerOff // this BMC cannot ask a guest
			err = n.setPowerState(ctx, o)
		}
		if err == nil {
			p.memory.recordLastAction(n.uniqueID(), o, p.clock.Now())
		}
		return err
	})
}
