package local

import (
	"context"
	"runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
)

// Actuator implements cloud.Actuator for the local platform: it starts and stops the machines of a Store.
// Its requests are carried out while Store.Run runs.
type Actuator struct {
	Store *Store
}

var (
	_ cloud.Actuator       = Actuator{}
	_ cloud.ChangeNotifier = Actuator{}
	_ cloud.DepthReporter  = Actuator{}
	_ cloud.AddressHolder  = Actuator{}
)

// Changes returns a channel that receives the infraID of a cluster when one of its machines has
// started or stopped running.
func (a Actuator) Changes() <-chan string { return a.Store.changes }

// Observe returns the machines with the infraID of ref. The error of Observe, Start and Stop is
// fault.Denied if these machines were created for another ClusterDeployment.
func (a Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	if ctx.Err() != nil {
		return nil, interruptedError(ctx, "observing machines of", ref.InfraID)
	}
	if err := a.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return nil, err
	}
	ms, err := a.Store.ObserveCluster(ref.InfraID)
	if ref.Depth != cloud.DepthFreeze {
		for i := range ms {
			ms[i].DepthObstacle = ""
		}
	}
	return ms, err
}

// Start starts the control plane, then the workers.
func (a Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, "starting machines of", ref.InfraID)
	}
	if err := a.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return err
	}
	return a.Store.StartCluster(ref.InfraID)
}

// Stop stops or freezes the workers, then the control plane. It refuses to freeze a cluster while this computer has
// little memory.
func (a Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, "stopping machines of", ref.InfraID)
	}
	if err := a.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return err
	}
	depth := ref.SelectDepth(func(d cloud.Depth) bool { return d == cloud.DepthFreeze && canFreeze })
	if depth == cloud.DepthFreeze {
		return a.Store.FreezeCluster(ref.InfraID)
	}
	if ref.Depth == cloud.DepthFreeze { // it was refused: what is frozen already stays so
		return a.Store.StopRunningMachines(ref.InfraID)
	}
	return a.Store.StopCluster(ref.InfraID)
}

// canFreeze reports whether processes of this operating system can be frozen.
const canFreeze = runtime.GOOS == "linux"

// ReportDepths describes depth freeze.
func (a Actuator) ReportDepths(hivev1.Platform) []cloud.DepthSupport {
	freeze := cloud.DepthSupport{
		Depth:  cloud.DepthFreeze,
		Limits: "A frozen local cluster keeps all of its memory, and is stopped when hotspare up ends.",
	}
	if !canFreeze {
		freeze.Obstacle = "Local clusters can be frozen on Linux only: use depth stop."
	}
	return []cloud.DepthSupport{freeze}
}

// HoldAddress implements cloud.AddressHolder.
func (a Actuator) HoldAddress(ctx context.Context, ref cloud.Ref) error {
	if err := a.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return err
	}
	return a.Store.HoldAddress(ctx, ref.InfraID)
}

// DropAddress implements cloud.AddressHolder.
func (a Actuator) DropAddress(ctx context.Context, ref cloud.Ref) error {
	if !a.Store.IsAddressHeld(ref.InfraID) {
		return nil
	}
	if err := a.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return err
	}
	a.Store.DropAddress(ctx, ref.InfraID)
	return nil
}

// CountWaiting implements cloud.AddressHolder.
func (a Actuator) CountWaiting(ref cloud.Ref) int { return a.Store.CountWaiting(ref.InfraID) }
