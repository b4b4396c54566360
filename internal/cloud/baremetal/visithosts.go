package baremetal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// maxConcurrentBMCs is the maximum number of BMCs accessed concurrently. Each BMC is a separate
	// computer, so only the hub's own resources matter; a rack without power must not use up the
	// time of a call.
	maxConcurrentBMCs = 64
	// lockoutDelay is how long an account is not used after a BMC has rejected it: many BMCs lock
	// an account after a few wrong passwords, for all of its users.
	lockoutDelay = 5 * time.Minute
)

// bmcClient is an open connection to a BMC. It is not safe for concurrent use.
type bmcClient interface {
	// readHost returns the current state of one of this BMC's hosts.
	readHost(ctx context.Context, h host) (managedHost, error)
	closeSession(ctx context.Context)
}

// managedHost is a host as reported by its BMC.
type managedHost interface {
	uniqueID() string
	powerState() power
	// reportedState returns the power state as named by the BMC.
	reportedState() string
	setPowerState(ctx context.Context, o powerAction) error
}

// visitHosts calls do for hosts: for many BMCs concurrently, and for the hosts of one BMC
// sequentially. It returns its observation of each host, in the order of hosts.
func (a *Actuator) visitHosts(ctx context.Context, trust trust, hosts []host, do func(context.Context, managedHost, lastAction) error) []hostObservation {
	out := make([]hostObservation, len(hosts))
	groups := map[string][]int{}
	for i, h := range hosts {
		out[i].host = h
		groups[h.bmcAccountKey()] = append(groups[h.bmcAccountKey()], i)
	}
	var g errgroup.Group
	g.SetLimit(maxConcurrentBMCs)
	for id, group := range groups {
		g.Go(func() error {
			a.visitBMC(ctx, trust, id, group, out, do)
			return nil // one BMC's errors must not stop the others
		})
	}
	if err := g.Wait(); err != nil {
		for i := range out {
			out[i].err = err
		}
	}
	return out
}

// visitBMC visits the hosts of one BMC: those in out at the indexes in group.
func (a *Actuator) visitBMC(ctx context.Context, trust trust, id string, group []int, out []hostObservation, do func(context.Context, managedHost, lastAction) error) {
	first := out[group[0]].host
	deaf := a.locked.lockoutError(id, first, a.clock.Now())
	var b bmcClient
	if deaf == nil {
		b = a.newBMCClient(first, trust)
		defer b.closeSession(ctx)
	}
	for _, i := range group {
		s := &out[i]
		if s.err = deaf; deaf != nil {
			continue
		}
		if err := a.visitHost(ctx, b, s, do); err != nil {
			found := classifyError(ctx, s.host, err)
			s.err = found.toFault()
			if found.affectsWholeBMC() {
				deaf = s.err
			}
			if found.class == accountRefused {
				a.locked.lockAccount(id, a.clock.Now())
			}
		}
	}
}

func (a *Actuator) visitHost(ctx context.Context, b bmcClient, s *hostObservation, do func(context.Context, managedHost, lastAction) error) error {
	n, err := b.readHost(ctx, s.host)
	if err != nil {
		return err
	}
	s.power, s.reportedState = n.powerState(), n.reportedState()
	s.lastAction = a.memory.getLastAction(n.uniqueID(), s.power, a.clock.Now())
	return do(ctx, n, s.lastAction)
}

func (a *Actuator) newBMCClient(h host, trust trust) bmcClient {
	if h.protocol == ipmi {
		return newIPMIClient(h, a.requestTimeout)
	}
	return newRedfishClient(h, trust, a.requestTimeout)
}

// joinHostErrors joins the errors of hosts. It reports an error that several hosts of a BMC have in
// common once.
func joinHostErrors(all []hostObservation, doing string) error {
	var errs []error
	seen := map[string]bool{}
	for _, s := range all {
		if s.err == nil || seen[s.bmcAccountKey()+s.err.Error()] {
			continue
		}
		seen[s.bmcAccountKey()+s.err.Error()] = true
		var names []string
		for _, o := range all {
			if o.err != nil && o.bmcAccountKey() == s.bmcAccountKey() && o.err.Error() == s.err.Error() {
				names = append(names, o.name)
			}
		}
		const most = 3
		if n := len(names) - most; n > 0 {
			names = append(names[:most], fmt.Sprintf("%d more", n))
		}
		errs = append(errs, fmt.Errorf("%s %s: %w", doing, strings.Join(names, ", "), s.err))
	}
	return errors.Join(errs...)
}

// lockedAccounts contains the accounts that BMCs have rejected.
type lockedAccounts struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (l *lockedAccounts) lockAccount(id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, until := range l.until {
		if now.After(until) {
			delete(l.until, other)
		}
	}
	l.until[id] = now.Add(lockoutDelay)
}

// lockoutError returns the error for an account that must not be used yet, or nil.
func (l *lockedAccounts) lockoutError(id string, h host, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until[id]) {
		return refusedAccountError(h).toFault()
	}
	return nil
}
