// Package gcp starts and stops the machines of clusters on Google Cloud.
//
// Machines are instances of the service account's project whose names begin with the cluster's
// infraID and a dash, unless their labels mark them as another cluster's. Those named
// <infraID>-master-… are the control plane.
package gcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/api/compute/v1"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
)

// Actuator implements cloud.Actuator for Google Compute Engine.
type Actuator struct {
	secrets cloud.Secrets
	options Options
	// selected are the instances to control; nil selects them by the infraID.
	selected selection
}

// Options configure Google's cloud or another one with the same API.
type Options struct {
	// Endpoint is the URL of the API; empty is Google's, in the universe that the key names.
	Endpoint string
	// Transport sends all requests; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

var _ cloud.InstanceSelector = Actuator{}

// New returns an actuator that reads credentials with secrets.
func New(secrets cloud.Secrets, o Options) Actuator {
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	return Actuator{secrets: secrets, options: o}
}

// settings are the fields of spec.platform.gcp that this package reads.
type settings struct {
	Region string `json:"region"`
	// DiscardLocalSSD is a decision that only the user can make: stopping loses the data.
	DiscardLocalSSD *bool `json:"discardLocalSsdOnHibernate"`
}

func parsePlatformSettings(ref cloud.Ref) (settings, error) {
	var s settings
	if ref.Platform.GCP == nil || len(ref.Platform.GCP.Raw) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(ref.Platform.GCP.Raw, &s); err != nil {
		return s, fault.NewDenied("reading spec.platform.gcp of ClusterDeployment %s: %w: set region to a string and discardLocalSsdOnHibernate to true or false",
			ref.Cluster, err)
	}
	return s, nil
}

// Observe returns the instances of the cluster. If a zone of its region cannot be listed, it
// returns an error: the state of the machines there is unknown.
func (a Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	_, seen, err := a.openAndListInstances(ctx, ref)
	if err == nil {
		err = seen.hidden
	}
	if err != nil {
		return nil, fmt.Errorf("observing instances of %s: %w", ref.InfraID, err)
	}
	return seen.toCloudMachines(ref), nil
}

// Start starts the control plane and, once most of it runs, the workers. It resumes suspended
// instances.
func (a Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	project, seen, err := a.openAndListInstances(ctx, ref)
	if err != nil {
		return fmt.Errorf("starting instances of %s: %w", ref.InfraID, err)
	}
	return errors.Join(seen.hidden, powerorder.ForEachMachine(ctx, powerorder.MachinesToStart(seen.toCloudMachines(ref)), func(ctx context.Context, name string) error {
		return project.startInstance(ctx, seen.instances[name])
	}))
}

// Stop stops or suspends the workers and, once none of them runs, the control plane.
func (a Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	project, seen, err := a.openAndListInstances(ctx, ref)
	if err != nil {
		return fmt.Errorf("stopping instances of %s: %w", ref.InfraID, err)
	}
	return errors.Join(seen.hidden, powerorder.SleepInOrder(ctx, seen.toCloudMachines(ref), ref.Depth, seen.hidden == nil, func(ctx context.Context, name string) error {
		return project.putToSleep(ctx, ref, name, seen.instances[name])
	}))
}

// openAndListInstances opens the cluster's project and lists its instances.
func (a Actuator) openAndListInstances(ctx context.Context, ref cloud.Ref) (*project, *observation, error) {
	set, err := parsePlatformSettings(ref)
	if err != nil {
		return nil, nil, err
	}
	project, err := a.openProject(ctx, ref, set)
	if err != nil {
		return nil, nil, err
	}
	if a.selected != nil {
		seen, err := project.listSelectedInstances(ctx, ref.InfraID, a.selected)
		return project, seen, err
	}
	seen, err := project.listInstances(ctx, ref.InfraID)
	return project, seen, err
}

// project is a Compute Engine client with one cluster's service account, for one call.
type project struct {
	*credentials
	settings
	token string
	api   *compute.Service
}

func (p *project) startInstance(ctx context.Context, i *compute.Instance) error {
	do := p.api.Instances.Start(p.ID, zoneName(i), i.Name).Context(ctx).Do
	switch i.Status {
	case "SUSPENDED":
		do = p.api.Instances.Resume(p.ID, zoneName(i), i.Name).Context(ctx).Do
	case "STOPPED", "TERMINATED":
	default:
		return nil // REPAIRING: it recovers automatically, and Google rejects a start
	}
	op, err := do()
	return p.translateOutcome("starting", i, op, err)
}

func (p *project) stopInstance(ctx context.Context, i *compute.Instance) error {
	if i.Status == "REPAIRING" {
		return nil // Observe reports it; there is nothing running to stop
	}
	call := p.api.Instances.Stop(p.ID, zoneName(i), i.Name)
	switch {
	case p.DiscardLocalSSD != nil:
		call = call.DiscardLocalSsd(*p.DiscardLocalSSD)
	case hasLocalSSD(i):
		return fault.NewDenied("stopping instance %s: it has a local SSD, whose data a stop may lose, so Google requires a decision: "+
			"set spec.platform.gcp.discardLocalSsdOnHibernate of ClusterDeployment %s to true to discard it, or to false to keep it where the machine type allows that",
			i.Name, p.cluster)
	}
	op, err := call.Context(ctx).Do()
	if i.Status == "SUSPENDED" && isClientError(err) {
		return p.startInstance(ctx, i) // Google does not stop it in this state: a later call does, once it runs
	}
	return p.translateOutcome("stopping", i, op, err)
}

func hasLocalSSD(i *compute.Instance) bool {
	for _, d := range i.Disks {
		if d.Type == "SCRATCH" {
			return true
		}
	}
	return false
}
