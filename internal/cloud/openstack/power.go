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
	"slices"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
	"hotspare.io/hotspare/internal/fault"
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
func (p Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	s, seen, err := p.openAndListServers(ctx, ref)
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
func (p Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	s, seen, err := p.openAndListServers(ctx, ref)
	if err != nil {
		return fmt.Errorf("starting servers of %s: %w", ref.InfraID, err)
	}
	defer s.closeIdleConnections()
	return errors.Join(seen.hidden, powerorder.ForEachMachine(ctx, powerorder.MachinesToStart(seen.toCloudMachines()), func(ctx context.Context, name string) error {
		return s.startServer(ctx, seen.servers[name])
	}))
}

// Stop stops the workers and, once none of them runs, the control plane; if ref.Shelve is set, it
// shelves them instead. A server that is starting is left for a later call: Nova refuses to stop
// it. Workers whose stop is denied do not block the control plane: later calls would be denied too.
func (p Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	s, seen, err := p.openAndListServers(ctx, ref)
	if err != nil {
		return fmt.Errorf("stopping servers of %s: %w", ref.InfraID, err)
	}
	defer s.closeIdleConnections()
	var denied nameSet
	stop := func(ctx context.Context, name string) error {
		err := s.stopServer(ctx, seen.servers[name], ref.Shelve)
		if fault.KindOf(err) == fault.Denied {
			denied.addName(name)
		}
		return err
	}
	ms := seen.toCloudMachines()
	first := powerorder.MachinesToStop(ms, seen.hidden == nil)
	errs := []error{seen.hidden, powerorder.ForEachMachine(ctx, first, stop)}
	rest := slices.DeleteFunc(ms, func(m cloud.Machine) bool { return denied.hasName(m.Name) })
	then := slices.DeleteFunc(powerorder.MachinesToStop(rest, seen.hidden == nil), func(name string) bool { return slices.Contains(first, name) })
	return errors.Join(append(errs, powerorder.ForEachMachine(ctx, then, stop))...)
}

// nameSet is a set of names. addName is safe for concurrent use.
type nameSet struct {
	mu   sync.Mutex
	list []string
}

func (n *nameSet) addName(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, name)
}

func (n *nameSet) hasName(name string) bool { return slices.Contains(n.list, name) }

// openAndListServers logs in and lists the cluster's servers. If there is no error, the caller must
// call closeIdleConnections on the session.
func (p Actuator) openAndListServers(ctx context.Context, ref cloud.Ref) (*session, *observation, error) {
	who, err := p.readClusterIdentity(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	s, err := who.openSession(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := p.selected.confirmRegion(s.Region); err != nil {
		s.closeIdleConnections()
		return nil, nil, err
	}
	seen, err := s.listServers(ctx, ref.InfraID, p.selected)
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
	state, _ := srv.machineState()
	switch {
	case state == cloud.Starting, state == cloud.Failed && srv.Status != "ERROR":
		return nil // Nova would refuse: a starting server is stopped once it runs, and Observe reports a failed one
	case shelve && state == cloud.Running:
		err := servers.Shelve(ctx, s.nova, srv.ID).ExtractErr()
		return s.translateOutcome(ctx, powerRequest{doing: "shelving", srv: srv, becoming: cloud.Stopping, want: cloud.Stopped}, err)
	}
	err := servers.Stop(ctx, s.nova, srv.ID).ExtractErr()
	return s.translateOutcome(ctx, powerRequest{doing: "stopping", srv: srv, becoming: cloud.Stopping, want: cloud.Stopped}, err)
}
