// Package azure starts and stops the machines of clusters on Azure.
//
// Machines are virtual machines of the cluster's resource group whose names begin with the infraID
// and a dash, or whose tags mark them as the cluster's, unless tags mark them as another cluster's.
// Those named <infraID>-master-… are the control plane.
package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
)

// Actuator implements cloud.Actuator for Azure.
type Actuator struct {
	secrets   cloud.Secrets
	transport http.RoundTripper
	// selected are the virtual machines to control; nil means those of the infraID.
	selected selection
}

var _ cloud.InstanceSelector = Actuator{}

// New returns an actuator that reads credentials with secrets. It sends all requests, including
// those for tokens, through transport; nil is http.DefaultTransport.
func New(secrets cloud.Secrets, transport http.RoundTripper) Actuator {
	if transport == nil {
		transport = http.DefaultTransport
	}
	return Actuator{secrets: secrets, transport: transport}
}

// Observe returns the virtual machines of the cluster.
func (actuator Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	g, err := actuator.openAndListMachines(ctx, ref)
	if err == nil {
		err = g.hidden
	}
	if err != nil {
		return nil, fmt.Errorf("observing virtual machines of %s: %w", ref.InfraID, err)
	}
	return g.cloudMachines(ref), nil
}

// Start starts the control plane and, once most of it runs, the workers.
func (actuator Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	g, err := actuator.openAndListMachines(ctx, ref)
	if err != nil {
		return fmt.Errorf("starting virtual machines of %s: %w", ref.InfraID, err)
	}
	return errors.Join(g.hidden, powerorder.ForEachMachine(ctx, powerorder.MachinesToStart(g.cloudMachines(ref)), func(ctx context.Context, name string) error {
		at := g.locate(name)
		_, err := g.api.BeginStart(ctx, at.group, at.name, nil)
		return g.translateOutcome("starting", name, err)
	}))
}

// Stop deallocates or hibernates the workers and, once none of them runs, the control plane. A virtual
// machine that is only powered off costs as much as one that runs.
func (actuator Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	g, err := actuator.openAndListMachines(ctx, ref)
	if err != nil {
		return fmt.Errorf("stopping virtual machines of %s: %w", ref.InfraID, err)
	}
	return errors.Join(g.hidden, powerorder.SleepInOrder(ctx, g.cloudMachines(ref), ref.Depth, g.hidden == nil, func(ctx context.Context, name string) error {
		return g.putToSleep(ctx, ref, name)
	}))
}

// openAndListMachines opens the cluster's resource group and reads its machines, or those that are
// selected.
func (actuator Actuator) openAndListMachines(ctx context.Context, ref cloud.Ref) (*group, error) {
	g, err := actuator.openResourceGroup(ctx, ref)
	if err != nil {
		return nil, err
	}
	if actuator.selected != nil {
		g.readSelectedMachines(ctx)
		return g, nil
	}
	return g, g.readGroupMachines(ctx, ref.InfraID)
}

// group is a cluster's resource group, accessed with its service principal, for one call.
type group struct {
	*account
	// name is the resource group; of selected machines, all their resource groups.
	name string
	// selected is nil for the machines of an infraID.
	selected selection
	api      *armcompute.VirtualMachinesClient
	token    string

	machines []machine
	// hidden is the error for machines whose state could not be read; nil if there are none.
	hidden error
}
