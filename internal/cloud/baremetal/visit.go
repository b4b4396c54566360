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
	// maxConcurrentBMCs is how many BMCs are asked at the same time. Each is a computer of its own,
	// so only ours limits it; a rack without power must not use up a call's time.
	maxConcurrentBMCs = 64
	// lockoutDelay is how long an account is left alone that a BMC has refused: many lock it
	// after a few wrong passwords, and everybody else with it.
	lockoutDelay = 5 * time.Minute
)

// bmcClient is what is open to a BMC. It is for one goroutine.
type bmcClient interface {
	// readHost returns a host of this BMC as it is now.
	readHost(ctx context.Context, h host) (managedHost, error)
	closeSession(ctx context.Context)
}

// managedHost is a host as its BMC shows it.
type managedHost interface {
	uniqueID() string
	powerState() power
	// reportedState is the power state as the BMC calls it.
	reportedState() string
	setPowerState(ctx context.Context, o powerAction) error
}

// visitHosts does something to hosts, many BMCs at a time, and those of one BMC one after the
// other. It returns what it saw of each, in the order of hosts.
func (p *Power) visitHosts(ctx context.Context, trust trust, hosts []host, do func(context.Context, managedHost, lastAction) error) []hostObservation {
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
			p.visitBMC(ctx, trust, id, group, out, do)
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

// visitBMC visits the hosts of one BMC, those of out that group tells.
func (p *Power) visitBMC(ctx context.Context, trust trust, id string, group []int, out []hostObservation, do func(context.Context, managedHost, lastAction) error) {
	first := out[group[0]].host
	deaf := p.locked.lockoutError(id, first, p.clock.Now())
	var b bmcClient
	if deaf == nil {
		b = p.newBMCClient(first, trust)
		defer b.closeSession(ctx)
	}
	for _, i := range group {
		s := &out[i]
		if s.err = deaf; deaf != nil {
			continue
		}
		if err := p.visitHost(ctx, b, s, do); err != nil {
			found := classifyError(ctx, s.host, err)
			s.err = found.toFault()
			if found.affectsWholeBMC() {
				deaf = s.err
			}
			if found.class == accountRefused {
				p.locked.lockAccount(id, p.clock.Now())
			}
		}
	}
}

func (p *Power) visitHost(ctx context.Context, b bmcClient, s *hostObservation, do func(context.Context, managedHost, lastAction) error) error {
	n, err := b.readHost(ctx, s.host)
	if err != nil {
		return err
	}
	s.power, s.reportedState = n.powerState(), n.reportedState()
	s.lastAction = p.memory.getLastAction(n.uniqueID(), s.power, p.clock.Now())
	return do(ctx, n, s.lastAction)
}

func (p *Power) newBMCClient(h host, trust trust) bmcClient {
	if h.protocol == ipmi {
		return newIPMIClient(h, p.requestTimeout)
	}
	return newRedfishClient(h, trust, p.requestTimeout)
}

// joinHostErrors joins the errors of hosts. What a BMC says of all its hosts is said once.
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

// lockedAccounts are the accounts that BMCs have refused.
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

// lockoutError is the error for an account that is to be left alone.
func (l *lockedAccounts) lockoutError(id string, h host, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until[id]) {
		return refusedAccountError(h).toFault()
	}
	return nil
}
