// Package openstack starts and stops the machines of clusters on OpenStack.
//
// Machines are the servers of the project that the installer has marked with the cluster's infraID:
// by metadata openshiftClusterID, or by a tag of that name. A matching name alone is not enough.
// Those named <infraID>-master-… are the control plane.
package openstack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
)

// Actuator implements cloud.Actuator for Nova. The cluster's clouds.yaml selects the cloud.
type Actuator struct {
	secrets        cloud.Secrets
	authorities    *cabundle.Source
	requestTimeout time.Duration // per request
	// selected are the servers to control; nil means those of the infraID.
	selected selection
}

var _ cloud.InstanceSelector = Actuator{}

// New returns an actuator that reads credentials with secrets. It uses nothing from the environment
// or files, except the proxy settings that Go programs use and the CAs that the system trusts.
// Every connection also trusts the certificates of authorities.
func New(secrets cloud.Secrets, authorities *cabundle.Source) Actuator {
	return Actuator{secrets: secrets, authorities: authorities, requestTimeout: powerorder.RequestTimeout}
}

// Observe returns the servers of the cluster. If part of the cloud is down, it returns an error:
// the state of the servers there is unknown.
func (a Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	s, seen, err := a.openAndListServers(ctx, ref)
	if err == nil {
		defer s.closeIdleConnections()
		err = seen.hidden
	}
	if err != nil {
		return nil, fmt.Errorf("observing servers of %s: %w", ref.InfraID, err)
	}
	return seen.toCloudMachines(), nil
}

// Start starts the control plane and, once most of it runs, the workers. It unshelves shelved
// servers, and resumes paused and suspended ones.
func (a Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	s, seen, err := a.openAndListServers(ctx, ref)
	if err != nil {
		return fmt.Errorf("starting servers of %s: %w", ref.InfraID, err)
	}
	defer s.closeIdleConnections()
	return errors.Join(seen.hidden, powerorder.ForEachMachine(ctx, powerorder.MachinesToStart(seen.toCloudMachines()), func(ctx context.Context, name string) error {
		return s.startServer(ctx, seen.servers[name])
	}))
}

// Stop stops, pauses or suspends the workers and, once none of them runs, the control plane; if ref.Shelve is
// set, it shelves those that it would stop. A server that is starting is left for a later call: Nova
// refuses to stop it. A paused or suspended server that should sleep more deeply is woken, and put to
// sleep by a later call: Nova stops only running servers.
func (a Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	s, seen, err := a.openAndListServers(ctx, ref)
	if err != nil {
		return fmt.Errorf("stopping servers of %s: %w", ref.InfraID, err)
	}
	defer s.closeIdleConnections()
	return errors.Join(seen.hidden, powerorder.SleepInOrder(ctx, seen.toCloudMachines(), ref.Depth, seen.hidden == nil, func(ctx context.Context, name string) error {
		return s.putToSleep(ctx, ref, name, seen.servers[name])
	}))
}

// openAndListServers logs in and lists the cluster's servers. If there is no error, the caller must
// call closeIdleConnections on the session.
func (a Actuator) openAndListServers(ctx context.Context, ref cloud.Ref) (*session, *observation, error) {
	who, err := a.readClusterIdentity(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	s, err := who.openSession(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := a.selected.confirmRegion(s.Region); err != nil {
		s.closeIdleConnections()
		return nil, nil, err
	}
	seen, err := s.listServers(ctx, ref.InfraID, a.selected)
	if err != nil {
		s.closeIdleConnections()
	}
	return s, seen, err
}

func (s *session) startServer(ctx context.Context, srv *server) error {
	var err error
	switch srv.Status {
	case "SHUTOFF":
		err = servers.Start(ctx, s.nova, srv.ID).ExtractErr()
	case "SHELVED", "SHELVED_OFFLOADED":
		err = servers.Unshelve(ctx, s.nova, srv.ID, servers.UnshelveOpts{}).ExtractErr()
	case "PAUSED":
		err = servers.Unpause(ctx, s.nova, srv.ID).ExtractErr()
	case "SUSPENDED":
		err = servers.Resume(ctx, s.nova, srv.ID).ExtractErr()
	default:
		return nil // it has failed: Nova does not start such servers, and Observe reports what to do
	}
	return s.translateOutcome(ctx, powerRequest{doing: "starting", srv: srv, becoming: cloud.Starting, want: cloud.Running}, err)
}

func (s *session) stopServer(ctx context.Context, srv *server, shelve bool) error {
	if state, _ := srv.machineState(); shelve && state == cloud.Running {
		err := servers.Shelve(ctx, s.nova, srv.ID).ExtractErr()
		return s.translateOutcome(ctx, powerRequest{doing: "shelving", srv: srv, becoming: cloud.Stopping, want: cloud.Stopped}, err)
	}
	err := servers.Stop(ctx, s.nova, srv.ID).ExtractErr()
	return s.translateOutcome(ctx, powerRequest{doing: "stopping", srv: srv, becoming: cloud.Stopping, want: cloud.Stopped}, err)
}
