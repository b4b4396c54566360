package local

import (
	"fmt"
	"math"
	"time"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/machine"
)

// What a machine needs, as measured, and a little more.
const (
	megabyte           = 1 << 20
	controlPlaneMemory = 200 * megabyte
	workerMemory       = 15 * megabyte
	clusterDisk        = 200 * megabyte
)

// capacityRetryDelay is when to look again whether there is room: nobody tells us when a
// program has ended.
const capacityRetryDelay = 30 * time.Second

// Unlimited is a resource of which nobody knows how much is left.
const Unlimited int64 = math.MaxInt64

// Resources are what this computer has left, in bytes.
type Resources struct {
	Memory, Disk int64
}

// need is what some machines need, in bytes.
type need struct {
	memory, disk int64
}

func (n need) addNeed(m need) need { return need{n.memory + m.memory, n.disk + m.disk} }

// needOfCluster is what a new cluster needs.
func needOfCluster(workers int) need {
	return need{memory: controlPlaneMemory + int64(workers)*workerMemory, disk: clusterDisk}
}

// needOfMachine is what a machine needs to run.
func needOfMachine(c machine.Config) need {
	if c.Role == machine.ControlPlane {
		return need{memory: controlPlaneMemory}
	}
	return need{memory: workerMemory}
}

// needOfStopped is what those of ms need that do not run.
func needOfStopped(ms []observedMachine) need {
	var sum need
	for _, m := range ms {
		if m.phase == phaseAbsent {
			sum = sum.addNeed(needOfMachine(m.Config))
		}
	}
	return sum
}

// countNeedFits returns how often n fits into what is left, and what says so. Numbers are
// rounded, so that the text does not change with each page of memory.
func countNeedFits(left Resources, n need) (int, string) {
	memory, disk := timesAvailable(left.Memory, n.memory), timesAvailable(left.Disk, n.disk)
	if memory <= disk {
		return memory, fmt.Sprintf("%d MB of memory are needed for each and %s are available: hibernate or delete clusters, or end other programs",
			n.memory/megabyte, formatRounded(left.Memory))
	}
	return disk, fmt.Sprintf("%d MB of disk space are needed for each and %s are free: delete clusters or other files",
		n.disk/megabyte, formatRounded(left.Disk))
}

func timesAvailable(have, need int64) int {
	if have == Unlimited || need <= 0 {
		return math.MaxInt
	}
	return int(max(have, 0) / need)
}

// formatRounded returns whole gigabytes, rounded down, or hundreds of megabytes below that.
func formatRounded(bytes int64) string {
	mb := max(bytes, 0) / megabyte
	if mb >= 1000 {
		return fmt.Sprintf("about %d GB", mb/1000)
	}
	return fmt.Sprintf("about %d MB", mb/100*100)
}

// subtractNeed returns what is left when n is used as well.
func (r Resources) subtractNeed(n need) Resources {
	if r.Memory != Unlimited {
		r.Memory -= n.memory
	}
	if r.Disk != Unlimited {
		r.Disk -= n.disk
	}
	return r
}

// CountClusterFits returns how many more clusters with so many workers this computer can
// hold, math.MaxInt if nobody knows, and what limits them. If that cannot be
// found out, none fit and the text says why.
func (s *Store) CountClusterFits(workers int) (n int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left, err := s.availableResources("")
	if err != nil {
		return 0, err.Error()
	}
	return countNeedFits(left, needOfCluster(workers))
}

// ReserveResources keeps room for a cluster that is about to be made, until Release or
// Destroy. It may be repeated. The error is fault.Capacity, with a sentence for
// users, if there is none.
func (s *Store) ReserveResources(infraID string, workers int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := needOfCluster(workers)
	if err := s.checkCapacity(infraID, n); err != nil {
		return err
	}
	s.reserved[infraID] = n
	return nil
}

// ReleaseResources gives up what Reserve has kept, if anything.
func (s *Store) ReleaseResources(infraID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, infraID)
}

// checkCapacity returns a fault.Capacity if n does not fit for the cluster. s.mu is held.
func (s *Store) checkCapacity(infraID string, n need) error {
	if n == (need{}) {
		return nil
	}
	left, err := s.availableResources(infraID)
	if err != nil {
		return err
	}
	if times, why := countNeedFits(left, n); times == 0 {
		return fault.NewCapacity(capacityRetryDelay, "no room for cluster %s on this computer: %s", infraID, why)
	}
	return nil
}

// availableResources is what this computer has left for the cluster: without what is kept for
// others, and what machines have been promised that have just been started and
// do not use it yet. s.mu is held.
func (s *Store) availableResources(infraID string) (Resources, error) {
	have, err := s.measure(s.dir)
	if err != nil {
		return Resources{}, fmt.Errorf("measuring what this computer has left: %w", err)
	}
	for id, n := range s.reserved {
		if id != infraID {
			have = have.subtractNeed(n)
		}
	}
	for _, p := range s.procs {
		_, reserved := s.reserved[p.InfraID]
		if !reserved && p.phase != phaseStopping && time.Since(p.startedAt) < startupPeriod {
			have = have.subtractNeed(needOfMachine(p.Config))
		}
	}
	return have, nil
}
