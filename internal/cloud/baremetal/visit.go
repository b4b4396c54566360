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
	// width is how many BMCs are asked at the same time. Each is a computer of its own,
	// so only ours limits it; a rack without power must not use up a call's time.
	width = 64
	// rest is how long an account is left alone that a BMC has refused: many lock it
	// after a few wrong passwords, and everybody else with it.
	rest = 5 * time.Minute
)

// bmc is what is open to a BMC. It is for one goroutine.
type bmc interface {
	// look returns a host of this BMC as it is now.
	look(ctx context.Context, h host) (node, error)
	close(ctx context.Context)
}

// node is a host as its BMC shows it.
type node interface {
	id() string
	power() power
	// word is the power state as the BMC calls it.
	word() string
	tell(ctx context.Context, o order) error
}

// visit does something to hosts, many BMCs at a time, and those of one BMC one after the
// other. It returns what it saw of each, in the order of hosts.
func (p *Power) visit(ctx context.Context, trust trust, hosts []host, do func(context.Context, node, told) error) []sight {
	out := make([]sight, len(hosts))
	groups := map[string][]int{}
	for i, h := range hosts {
		out[i].host = h
		groups[h.bmc()] = append(groups[h.bmc()], i)
	}
	var g errgroup.Group
	g.SetLimit(width)
	for id, group := range groups {
		g.Go(func() error {
			p.visitOne(ctx, trust, id, group, out, do)
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

// visitOne visits the hosts of one BMC, those of out that group tells.
func (p *Power) visitOne(ctx context.Context, trust trust, id string, group []int, out []sight, do func(context.Context, node, told) error) {
	first := out[group[0]].host
	deaf := p.locked.refusal(id, first, p.clock.Now())
	var b bmc
	if deaf == nil {
		b = p.open(first, trust)
		defer b.close(ctx)
	}
	for _, i := range group {
		s := &out[i]
		if s.err = deaf; deaf != nil {
			continue
		}
		if err := p.one(ctx, b, s, do); err != nil {
			found := asProblem(ctx, s.host, err)
			s.err = found.fault()
			if found.deaf() {
				deaf = s.err
			}
			if found.what == refused {
				p.locked.add(id, p.clock.Now())
			}
		}
	}
}

func (p *Power) one(ctx context.Context, b bmc, s *sight, do func(context.Context, node, told) error) error {
	n, err := b.look(ctx, s.host)
	if err != nil {
		return err
	}
	s.power, s.word = n.power(), n.word()
	s.told = p.memory.of(n.id(), s.power, p.clock.Now())
	return do(ctx, n, s.told)
}

func (p *Power) open(h host, trust trust) bmc {
	if h.protocol == ipmi {
		return newIPMI(h, p.patience)
	}
	return newRedfish(h, trust, p.patience)
}

// failures joins the errors of hosts. What a BMC says of all its hosts is said once.
func failures(all []sight, doing string) error {
	var errs []error
	seen := map[string]bool{}
	for _, s := range all {
		if s.err == nil || seen[s.bmc()+s.err.Error()] {
			continue
		}
		seen[s.bmc()+s.err.Error()] = true
		var names []string
		for _, o := range all {
			if o.err != nil && o.bmc() == s.bmc() && o.err.Error() == s.err.Error() {
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

// locked are the accounts that BMCs have refused.
type locked struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (l *locked) add(id string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other, until := range l.until {
		if now.After(until) {
			delete(l.until, other)
		}
	}
	l.until[id] = now.Add(rest)
}

// refusal is the error for an account that is to be left alone.
func (l *locked) refusal(id string, h host, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.until[id]) {
		return refusal(h).fault()
	}
	return nil
}
