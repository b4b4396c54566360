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
	memory      memory
	locked      locked
	clock       clock.PassiveClock
	// patience is how long a BMC has for one answer.
	patience time.Duration
}

var _ cloud.Power = (*Power)(nil)

// New makes the bare metal platform. secrets reads the Secrets of the hub. Every connection
// trusts the certificates of authorities in addition to the system's.
func New(secrets cloud.Secrets, authorities *cabundle.Source) *Power {
	return &Power{
		secrets: secrets, authorities: authorities, clock: clock.RealClock{}, patience: turns.Patience,
		memory: memory{told: map[string]told{}}, locked: locked{until: map[string]time.Time{}},
	}
}

// Observe returns the cluster's hosts. One whose BMC does not tell is Unknown; it is an
// error if none does.
func (p *Power) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	_, all, err := p.look(ctx, ref)
	if err != nil {
		return nil, err
	}
	var ms cloud.Machines
	var errs []error
	for _, s := range all {
		ms = append(ms, s.machine(p.clock.Now()))
		if s.err != nil {
			errs = append(errs, s.err)
		}
	}
	if len(errs) > 0 && (len(errs) == len(all) || ctx.Err() != nil) {
		return nil, failures(all, "observing")
	}
	ms.Sort()
	return ms, nil
}

// Start turns the control plane on and, once most of it runs, the workers.
func (p *Power) Start(ctx context.Context, ref cloud.Ref) error {
	inv, all, err := p.look(ctx, ref)
	if err != nil {
		return err
	}
	var ms cloud.Machines
	for _, s := range all {
		ms = append(ms, s.machine(p.clock.Now()))
	}
	done := p.tell(ctx, inv, pick(all, turns.ToStart(ms)), told.starting)
	return errors.Join(failures(all, "starting"), failures(done, "starting"))
}

// Stop asks the workers to shut down and, once none of them is on, the control plane. A
// host that has not done so after the grace is powered off by a later call.
func (p *Power) Stop(ctx context.Context, ref cloud.Ref) error {
	inv, all, err := p.look(ctx, ref)
	if err != nil {
		return err
	}
	age := time.Duration(0)
	if !ref.Since.IsZero() {
		age = p.clock.Now().Sub(ref.Since)
	}
	patience := patienceAt(age)
	next := func(t told, power power, now time.Time) order { return t.stopping(power, now, patience) }

	ms, complete := awake(all, age)
	done := p.tell(ctx, inv, pick(all, turns.ToStop(ms, false)), next)
	spare(ms, done, age)
	second := p.tell(ctx, inv, pick(all, remove(turns.ToStop(ms, complete), done)), next)
	return errors.Join(failures(all, "stopping"), failures(done, "stopping"), failures(second, "stopping"))
}

// sight is a host as its BMC shows it, or why it does not.
type sight struct {
	host
	power power
	word  string
	told  told
	err   error
}

// machine is what the platform's users see of a host.
func (s sight) machine(now time.Time) cloud.Machine {
	m := cloud.Machine{Name: s.name, ControlPlane: s.controlPlane, State: cloud.Unknown}
	if s.err != nil {
		m.Reason = s.err.Error()
		return m
	}
	switch m.State = s.told.state(s.power, now); m.State {
	case cloud.Failed:
		m.Reason = fmt.Sprintf("its BMC says that it is %s; starting the cluster resumes it, and stopping powers it off", s.word)
	case cloud.Unknown:
		m.Reason = fmt.Sprintf("its BMC tells the power state %q", s.word)
	}
	return m
}

// awake is which hosts have still to be stopped: a host that was asked to shut down is
// on until it is off. It is complete if those that nobody sees need not be waited for:
// those that a person must see to, or that there was time enough to see.
func awake(all []sight, age time.Duration) (ms cloud.Machines, complete bool) {
	complete = true
	for _, s := range all {
		m := cloud.Machine{Name: s.name, ControlPlane: s.controlPlane, State: cloud.Running}
		switch {
		case s.err != nil:
			m.State = cloud.Unknown
			complete = complete && (m.ControlPlane || fault.Of(s.err) == fault.Denied || age >= 2*grace)
		case s.power == odd:
			m.State = cloud.Unknown
		case s.power == off && s.told.order != turnOn:
			m.State = cloud.Stopped
		}
		ms = append(ms, m)
	}
	return ms, complete
}

// spare leaves out those that refuse to be stopped, or fail to for long: they would hold
// up the others for ever.
func spare(ms cloud.Machines, done []sight, age time.Duration) {
	for _, s := range done {
		for i := range ms {
			if ms[i].Name == s.name && s.err != nil && (fault.Of(s.err) == fault.Denied || age >= late) {
				ms[i].State = cloud.Unknown
			}
		}
	}
}

// pick returns the hosts of those names that were seen.
func pick(all []sight, names []string) []host {
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

// remove leaves out the names of those that it has been done to.
func remove(names []string, done []sight) []string {
	var out []string
	for _, name := range names {
		if len(pick(done, []string{name})) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// look asks the BMC of every host of the cluster.
func (p *Power) look(ctx context.Context, ref cloud.Ref) (inventory, []sight, error) {
	if err := ctx.Err(); err != nil {
		return inventory{}, nil, fault.New(fault.Unknown, fmt.Errorf("looking for hosts of %s: %w", ref.Cluster, err))
	}
	inv, err := p.inventory(ctx, ref)
	if err != nil {
		return inventory{}, nil, err
	}
	inv.trust.authorities = p.authorities.Latest(ctx)
	all := p.visit(ctx, inv.trust, inv.hosts, func(context.Context, node, told) error { return nil })
	return inv, all, nil
}

// tell gives hosts the order that next says, by what their BMCs tell just now.
func (p *Power) tell(ctx context.Context, inv inventory, hosts []host, next func(told, power, time.Time) order) []sight {
	return p.visit(ctx, inv.trust, hosts, func(ctx context.Context, n node, t told) error {
		o := next(t, n.power(), p.clock.Now())
		switch o {
		case nothing:
			return nil
		case wait:
			p.memory.note(n.id(), o, p.clock.Now())
			return nil
		}
		err := n.tell(ctx, o)
		if o == shutDown && errors.Is(err, errUnable) {
			o = powerOff // this BMC cannot ask a guest
			err = n.tell(ctx, o)
		}
		if err == nil {
			p.memory.note(n.id(), o, p.clock.Now())
		}
		return err
	})
}
