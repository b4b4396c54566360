package local

import (
	"context"

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
)

// Changes returns a channel that receives the infraID of a cluster when one of its machines has
// started or stopped running.
func (p Actuator) Changes() <-chan string { return p.Store.changes }

// Observe returns the machines with the infraID of ref. The error of Observe, Start and Stop is
// fault.Denied if these machines were created for another ClusterDeployment.
func (p Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	if ctx.Err() != nil {
		return nil, interruptedError(ctx, "observing machines of", ref.InfraID)
	}
	if err := p.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return nil, err
	}
	return p.Store.ObserveCluster(ref.InfraID)
}

// Start starts the control plane, then the workers.
func (p Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, "starting machines of", ref.InfraID)
	}
	if err := p.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return err
	}
	return p.Store.StartCluster(ref.InfraID)
}

// Stop stops the workers, then the control plane.
func (p Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	if ctx.Err() != nil {
		return interruptedError(ctx, "stopping machines of", ref.InfraID)
	}
	if err := p.Store.ConfirmOwner(ref.InfraID, ref.Cluster); err != nil {
		return err
	}
	return p.Store.StopCluster(ref.InfraID)
}
