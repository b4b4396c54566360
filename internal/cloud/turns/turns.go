// Package turns is what actuators of clouds have in common: whose turn it is to
// start or stop, and how to ask for many machines at once.
package turns

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hotspare.io/hotspare/internal/cloud"
)

// Patience is how long one request to a cloud may take.
const Patience = 10 * time.Second

// width is how many machines of a cluster are asked for at the same time: enough
// for hundreds within a minute, and few for the limits that clouds set per account.
const width = 8

// ToStart returns the names of the machines to start now: the control plane at
// once, the workers when most of it runs. Fewer would be no quorum of etcd, and all
// of it too much to ask: one machine that fails must not hold up the others.
func ToStart(ms cloud.Machines) []string {
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
	return names(ms, func(m cloud.Machine) bool {
		return (m.ControlPlane || up) && (m.State == cloud.Stopped || m.State == cloud.Failed)
	})
}

// ToStop returns the names of the machines to stop now: the workers at once, the
// control plane when none of them runs, and all machines have been seen.
func ToStop(ms cloud.Machines, complete bool) []string {
	down := complete && !slices.ContainsFunc(ms, func(m cloud.Machine) bool { return !m.ControlPlane && awake(m) })
	return names(ms, func(m cloud.Machine) bool {
		return (!m.ControlPlane || down) && (awake(m) || m.State == cloud.Failed)
	})
}

func awake(m cloud.Machine) bool { return m.State == cloud.Running || m.State == cloud.Starting }

func names(ms cloud.Machines, those func(cloud.Machine) bool) []string {
	var out []string
	for _, m := range ms {
		if those(m) {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Each calls do for every name, several at a time and each with a deadline, and joins
// the errors in the order of the names. It returns when all have returned.
func Each(ctx context.Context, names []string, do func(ctx context.Context, name string) error) error {
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(width)
	for i, name := range names {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, Patience)
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
