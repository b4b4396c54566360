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
	var (
		lock     sync.Mutex
		readAt   time.Time
		obstacle string
	)
	return func() string {
		lock.Lock()
		defer lock.Unlock()
		if readAt.IsZero() || time.Since(readAt) >= obstacleLifetime {
			obstacle, readAt = doctor.ContainersObstacle(hostfacts.Read(ctx, o.Dir)), time.Now()
		}
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
