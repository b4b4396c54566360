package up

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/doctor/hostfacts"
	"hotspare.io/hotspare/internal/up/containersrecord"
)

// obstacleLifetime is how long what is known about this computer is used: reading it runs programs.
const obstacleLifetime = 15 * time.Second

// newContainersObstacle returns a function that returns why real pods cannot run on this computer, and
// what to do; "" if they can. Its answer is up to obstacleLifetime old.
func (o Options) newContainersObstacle(ctx context.Context) func() string {
	if !o.Containers {
		return func() string { return "hotspare up was started with --containers=false: start it without" }
	}
	return confirmObstacle(ctx, clock.RealClock{}, func() string { return doctor.ContainersObstacle(hostfacts.Read(ctx, o.Dir)) })
}

// confirmObstacle returns a function with the answer of read, up to obstacleLifetime old. It asks again before it reports that
// something has become an obstacle: on a busy computer, a program may not have answered in time, and a cluster keeps the
// decision of its creation. When ctx has ended, programs end as well, and the last answer counts.
func confirmObstacle(ctx context.Context, c clock.PassiveClock, read func() string) func() string {
	var (
		lock     sync.Mutex
		readAt   time.Time
		obstacle string
	)
	return func() string {
		lock.Lock()
		defer lock.Unlock()
		if !readAt.IsZero() && (c.Since(readAt) < obstacleLifetime || ctx.Err() != nil) {
			return obstacle
		}
		now := read()
		if now != "" && obstacle == "" {
			now = read()
		}
		if ctx.Err() != nil && !readAt.IsZero() {
			return obstacle
		}
		obstacle, readAt = now, c.Now()
		return obstacle
	}
}

// recordInterval is the interval between two checks of whether real pods can run, for the record. No notification
// exists for programs that are installed.
const recordInterval = time.Minute

// recordContainers keeps the record of whether local clusters run the containers of pods until ctx ends, and then
// removes it. It calls recorded after the first attempt. The record is for users: the hub runs without it.
func recordContainers(ctx context.Context, c clock.WithTicker, dir string, obstacle func() string, recorded func()) error {
	defer func() {
		if err := containersrecord.Remove(dir); err != nil {
			klog.FromContext(ctx).Error(err, "the next start removes it")
		}
	}()
	tick := c.NewTicker(recordInterval)
	defer tick.Stop()
	for written := (*containersrecord.Record)(nil); ctx.Err() == nil; {
		if now := (containersrecord.Record{Obstacle: obstacle()}); written == nil || *written != now {
			written = writeContainersRecord(ctx, dir, now)
		}
		recorded()
		select {
		case <-tick.C():
		case <-ctx.Done():
		}
	}
	return nil
}

// writeContainersRecord returns the record that was written, or nil if it could not be.
func writeContainersRecord(ctx context.Context, dir string, r containersrecord.Record) *containersrecord.Record {
	if err := r.Write(dir); err != nil {
		klog.FromContext(ctx).Error(err, "will retry", "after", recordInterval)
		return nil
	}
	return &r
}
