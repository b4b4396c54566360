package up

import (
	"context"
	"sync"
	"time"

	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/doctor/hostfacts"
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
