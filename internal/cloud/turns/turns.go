// Package turns is what actuators of clouds have in common: whose turn it is to
// start or stop, and how to ask for many machines at once.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// RequestTimeout is how long one request to a cloud may take.
const RequestTimeout = 10 * time.Second

// maxConcurrent is how many machines of a cluster are asked for at the same time: enough
// for hundreds within a minute, and few for the limits that clouds set per account.
const maxConcurrent = 8

// MachinesToStart returns the names of the machines to start now: the control plane at
// once, the workers when most of it runs. Fewer would be no quorum of etcd, and all
// of it too much to ask: one machine that fails must not hold up the others.
func MachinesToStart(ms cloud.Machines) []string {
	var ours, running int
	for _, m := range ms {
		if m.ControlPlane {
			ours++
		}
		if m.ControlPlane && m.State == cloud.Running {
			running++
		}
	}
	up := ours == 0 || running*2 > ours
	return selectNames(ms, func(m cloud.Machine) bool {
		return (m.ControlPlane || up) && (m.State == cloud.Stopped || m.State == cloud.Failed)
	})
}

// MachinesToStop returns the names of the machines to stop now: the workers at once, the
// control plane when none of them runs, and all machines have been seen.
func MachinesToStop(ms cloud.Machines, complete bool) []string {
	down := complete && !slices.ContainsFunc(ms, func(m cloud.Machine) bool { return !m.ControlPlane && isRunningOrStarting(m) })
	return selectNames(ms, func(m cloud.Machine) bool {
		return (!m.ControlPlane || down) && (isRunningOrStarting(m) || m.State == cloud.Failed)
	})
}

// StopInOrder calls stop for those whose turn it is, as Each does. A worker that may not be
// stopped holds nobody up: it will be as it is in every later call, and a cluster that
// runs for it alone costs as much as one that nobody has told to stop.
func StopInOrder(ctx context.Context, ms cloud.Machines, complete bool, stop func(ctx context.Context, name string) error) error {
	var mu sync.Mutex
	denied := map[string]bool{}
	now := MachinesToStop(ms, complete)
	err := ForEachMachine(ctx, now, func(ctx context.Context, name string) error {
		err := stop(ctx, name)
		mu.Lock()
		defer mu.Unlock()
		denied[name] = fault.KindOf(err) == fault.Denied
		return err
	})
	rest := slices.DeleteFunc(slices.Clone(ms), func(m cloud.Machine) bool { return denied[m.Name] })
	later := slices.DeleteFunc(MachinesToStop(rest, complete), func(name string) bool { return slices.Contains(now, name) })
	return errors.Join(err, ForEachMachine(ctx, later, stop))
}

func isRunningOrStarting(m cloud.Machine) bool {
	return m.State == cloud.Running || m.State == cloud.Starting
}

func selectNames(ms cloud.Machines, those func(cloud.Machine) bool) []string {
	var out []string
	for _, m := range ms {
		if those(m) {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}

// ForEachMachine calls do for every name, several at a time and each with a deadline, and joins
// the errors in the order of the names. It returns when all have returned.
func ForEachMachine(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(maxConcurrent)
	for i, name := range names {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
			defer cancel()
			errs[i] = do(ctx, name)
			return nil // one machine's error must not stop the others
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return errors.Join(errs...)
}
