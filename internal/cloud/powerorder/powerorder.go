// Package powerorder is shared by the actuators of clouds: it decides which machines to start or stop
// next, and sends requests for many machines concurrently.
package powerorder

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

// RequestTimeout is the timeout of one request to a cloud.
const RequestTimeout = 10 * time.Second

// maxConcurrent is the maximum number of concurrent machine requests per cluster: enough for
// hundreds of machines within a minute, and low enough for the rate limits that clouds set per
// account.
const maxConcurrent = 8

// MachinesToStart returns the names of the machines to start now: the control plane immediately,
// the workers once more than half of the control plane is running. Fewer would not be an etcd
// quorum; waiting for all of them would let one failed machine block the workers.
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

// MachinesToStop returns the names of the machines to stop now: those of MachinesToSleep with depth
// stop.
func MachinesToStop(ms cloud.Machines, complete bool) []string {
	return MachinesToSleep(ms, cloud.DepthStop, complete)
}

// MachinesToSleep returns the names of the machines to put to sleep now, or deeper, so that all sleep at
// the depth or deeper: the workers immediately, the control plane once no worker is running or starting.
// complete says whether all machines were observed; if it is false, the control plane is left alone.
func MachinesToSleep(ms cloud.Machines, depth cloud.Depth, complete bool) []string {
	down := complete && !slices.ContainsFunc(ms, func(m cloud.Machine) bool { return !m.ControlPlane && isRunningOrStarting(m) })
	return selectNames(ms, func(m cloud.Machine) bool {
		return (!m.ControlPlane || down) && (isRunningOrStarting(m) || m.State == cloud.Failed || m.IsAsleepAbove(depth))
	})
}

// SleepInOrder calls sleep for each machine in MachinesToSleep, as ForEachMachine does. Workers whose
// sleep is denied do not block the control plane: later calls would be denied too, and a cluster
// that keeps running for one worker costs as much as one that was never hibernated. A worker whose depth is
// refused blocks the control plane, because a later call puts it to sleep at another depth.
func SleepInOrder(ctx context.Context, ms cloud.Machines, depth cloud.Depth, complete bool, sleep func(ctx context.Context, name string) error) error {
	var mu sync.Mutex
	denied := map[string]bool{}
	now := MachinesToSleep(ms, depth, complete)
	err := ForEachMachine(ctx, now, func(ctx context.Context, name string) error {
		err := sleep(ctx, name)
		_, others := cloud.SplitRefusedDepths(err)
		mu.Lock()
		defer mu.Unlock()
		denied[name] = fault.KindOf(others) == fault.Denied
		return err
	})
	rest := slices.DeleteFunc(slices.Clone(ms), func(m cloud.Machine) bool { return denied[m.Name] })
	later := slices.DeleteFunc(MachinesToSleep(rest, depth, complete), func(name string) bool { return slices.Contains(now, name) })
	return errors.Join(err, ForEachMachine(ctx, later, sleep))
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

// ForEachMachine calls do for every name, several at a time and each with a deadline of
// RequestTimeout. It waits for all calls and joins their errors in the order of names.
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
