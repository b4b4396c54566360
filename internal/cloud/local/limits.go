package local

import (
	"errors"
	"fmt"
	"math"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/fault"
)

// Resources that a machine needs: the measured values plus a small margin. A control plane needs the most once a client has
// read its OpenAPI documents.
const (
	megabyte           = 1 << 20
	controlPlaneMemory = 200 * megabyte
	workerMemory       = 15 * megabyte
	clusterDisk        = 200 * megabyte
	// With containers, the control plane has the network of pods and the cluster's DNS server, and a
	// worker has a kubelet, kube-proxy and containerd. Pods come in addition.
	podNetworkMemory       = 40 * megabyte
	containersWorkerMemory = 150 * megabyte
)

// memoryToFreeze is how much memory must be available so that a machine is frozen: machines that are frozen keep
// their memory, which other programs may need.
const memoryToFreeze = 1024 * megabyte

// capacityRetryDelay is the delay before capacity is checked again: no notification exists for a
// program that ends.
const capacityRetryDelay = 30 * time.Second

// Unlimited is the value of a resource whose remaining amount is unknown.
const Unlimited int64 = math.MaxInt64

// Resources are the resources available on this computer, in bytes.
type Resources struct {
	Memory, Disk int64
}

// need is what some machines require, in bytes.
type need struct {
	memory, disk int64
}

func (n need) addNeed(m need) need { return need{n.memory + m.memory, n.disk + m.disk} }

// ClusterSize is what determines the need of a new cluster.
type ClusterSize struct {
	// Workers is the number of worker machines.
	Workers int
	// Containers is true if the workers run the containers of pods.
	Containers bool
}

// needOfCluster returns what a new cluster needs.
func needOfCluster(size ClusterSize) need {
	sum := needOfMachine(machine.Config{Role: machine.ControlPlane, Containers: size.Containers})
	worker := needOfMachine(machine.Config{Role: machine.Worker, Containers: size.Containers})
	return need{memory: sum.memory + int64(size.Workers)*worker.memory, disk: clusterDisk}
}

// needOfMachine returns what a machine needs to run.
func needOfMachine(c machine.Config) need {
	switch {
	case c.RunsContainers():
		return need{memory: containersWorkerMemory}
	case c.Role == machine.Worker:
		return need{memory: workerMemory}
	case c.Containers:
		return need{memory: controlPlaneMemory + podNetworkMemory}
	default:
		return need{memory: controlPlaneMemory}
	}
}

// checkMemoryToFreeze returns an error with a cloud.DepthRefusedError for each machine if this computer has too little
// memory to keep them frozen. The caller must hold s.mu.
func (s *Store) checkMemoryToFreeze(ms []observedMachine) error {
	left, err := s.availableResources("")
	if err != nil || left.Memory >= memoryToFreeze {
		return err
	}
	var errs []error
	for _, m := range ms {
		errs = append(errs, cloud.RefuseDepth(cloud.DepthFreeze, m.Name,
			fmt.Sprintf("a frozen machine keeps its memory, and this computer has only %s available", formatRounded(left.Memory))))
	}
	return errors.Join(errs...)
}

// neededToStart returns what the machines in ms that are not running need.
func neededToStart(ms []observedMachine) need {
	var sum need
	for _, m := range ms {
		if m.phase == phaseAbsent {
			sum = sum.addNeed(needOfMachine(m.Config))
		}
	}
	return sum
}

// countNeedFits returns how many times n fits into left, and a sentence that names the limiting
// resource. The numbers in it are rounded, so that the text does not change with every page of
// memory.
func countNeedFits(left Resources, n need) (int, string) {
	memory, disk := timesAvailable(left.Memory, n.memory), timesAvailable(left.Disk, n.disk)
	if memory <= disk {
		return memory, fmt.Sprintf("%d MB of memory are needed for each and %s are available: hibernate or delete clusters, or stop other programs",
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

// formatRounded formats bytes in whole gigabytes, rounded down, or in hundreds of megabytes below
// one gigabyte.
func formatRounded(bytes int64) string {
	mb := max(bytes, 0) / megabyte
	if mb >= 1000 {
		return fmt.Sprintf("about %d GB", mb/1000)
	}
	return fmt.Sprintf("about %d MB", mb/100*100)
}

// subtractNeed returns the resources that remain when n is used as well.
func (r Resources) subtractNeed(n need) Resources {
	if r.Memory != Unlimited {
		r.Memory -= n.memory
	}
	if r.Disk != Unlimited {
		r.Disk -= n.disk
	}
	return r
}

// CountClusterFits returns how many more clusters of the given size fit on this computer, math.MaxInt if that is unknown, and what limits them. If the resources cannot be
// measured, n is 0 and why gives the reason.
func (s *Store) CountClusterFits(size ClusterSize) (n int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left, err := s.availableResources("")
	if err != nil {
		return 0, err.Error()
	}
	return countNeedFits(left, needOfCluster(size))
}

// ReserveResources reserves resources for a cluster that is about to be created, until
// ReleaseResources or DestroyCluster. It is idempotent. If there is no capacity, the error is
// fault.Capacity with a message for users.
func (s *Store) ReserveResources(infraID string, size ClusterSize) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := needOfCluster(size)
	if err := s.checkCapacity(infraID, n); err != nil {
		return err
	}
	s.reserved[infraID] = n
	return nil
}

// ReleaseResources releases the reservation that ReserveResources made, if any.
func (s *Store) ReleaseResources(infraID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reserved, infraID)
}

// checkCapacity returns a fault.Capacity if n does not fit for the cluster. The caller must hold
// s.mu.
func (s *Store) checkCapacity(infraID string, n need) error {
	if n == (need{}) {
		return nil
	}
	left, err := s.availableResources(infraID)
	if err != nil {
		return err
	}
	if times, why := countNeedFits(left, n); times == 0 {
		return fault.NewCapacity(capacityRetryDelay, "not enough room for cluster %s on this computer: %s", infraID, why)
	}
	return nil
}

// availableResources returns the resources that this computer has available for the cluster:
// without the reservations of other clusters, and without the resources that recently started
// machines were promised but do not use yet. The caller must hold s.mu.
func (s *Store) availableResources(infraID string) (Resources, error) {
	have, err := s.measure(s.dir)
	if err != nil {
		return Resources{}, fmt.Errorf("measuring the free resources of this computer: %w", err)
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
