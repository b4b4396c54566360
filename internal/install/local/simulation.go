package local

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// simulation is whether the nodes of a cluster only report that pods run.
type simulation struct {
	simulated bool
	// cause is why, and what to do about it; "" if it was requested. It is a clause.
	cause string
}

// obstacleRetryDelay is the delay before this computer is checked again: no notification exists for
// programs that are installed.
const obstacleRetryDelay = 30 * time.Second

// decideSimulation decides for a new cluster. The error is fault.Capacity if the install-config
// requires containers and this computer cannot run them.
func (i *Installer) decideSimulation(c config) (simulation, error) {
	if c.containers == hivev1.LocalContainersNever {
		return simulation{simulated: true}, nil
	}
	if c.workers == 0 {
		return simulation{simulated: true, cause: "the cluster has no workers: create one with workers"}, nil
	}
	obstacle := i.containersObstacle()
	switch {
	case obstacle == "":
		return simulation{}, nil
	case c.containers == hivev1.LocalContainersAlways:
		return simulation{}, fault.NewCapacity(obstacleRetryDelay, "workers cannot run containers on this computer: %s", obstacle)
	default:
		return simulation{simulated: true, cause: obstacle}, nil
	}
}
