// Package hub is the Kubernetes API that `hotspare up` brings: a control plane in
// this process, without nodes, that keeps its data and its address from one
// start to the next.
package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controlplane"
	"hotspare.io/hotspare/internal/controlplane/flock"
	"hotspare.io/hotspare/internal/hub/heap"
	"hotspare.io/hotspare/internal/loopback"
	"hotspare.io/hotspare/internal/pki"
)

// ManagerUser is who hotspare's controllers are at the hub. What they may do is
// granted by the same manifests as on any other cluster.
const ManagerUser = "hotspare-manager"

// Who the person is that runs the hub. AdminGroup may do everything, but unlike
// system:masters by a binding, which can be taken away.
const (
	adminUser  = "hotspare-admin"
	AdminGroup = "hotspare:admins"
)

// How the hub breathes, see package heap. In a burst of claims on a pool of 1,000 the
// collector takes 38% of the processor time with the calm percentage alone. At 50 claims
// a second it makes 150 MB of garbage a second, and to collect it takes a second, in which
// claims queue up on two cores: the rarer, the better. What it took it gives back when calm.
const (
	idleGOGC      = 50
	busyGOGC      = 250
	busyAllocRate = 40 << 20
	busyExtraHeap = 750 << 20
)

// Options say where a hub is.
type Options struct {
	// Dir keeps everything the hub knows. It is made if it does not exist.
	Dir string
	// Port is the loopback port of the API. 0 stands for the one that the hub in
	// Dir had last time, or else for any that is free.
	Port int
	// Connections is how many may be open at a time; 0 is any number.
	Connections int
	// Log takes what Kubernetes' components have to say.
	Log io.Writer
}

// A Hub runs from Start to Stop. Its methods may be called by several goroutines.
type Hub struct {
	*controlplane.ControlPlane
	lock  *flock.Lock
	ca    *pki.CA
	admin *rest.Config
}

// controllers are what users of an API without nodes would miss.
var controllers = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"certificatesigningrequest-signing-controller",
	"certificatesigningrequest-cleaner-controller",
	"root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller",
}

// Start starts the hub in o.Dir and returns when its API can be used. ctx bounds
// the call only. The error is a *flock.HeldError if a hub runs on o.Dir already,
// and a *controlplane.PortTakenError if another program has its port.
func Start(ctx context.Context, o Options) (*Hub, error) {
	lock, err := flock.Acquire(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("starting a hub on %s: %w", o.Dir, err)
	}
	h := &Hub{lock: lock}
	if err := h.startControlPlane(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the hub on %s: %w", o.Dir, err), lock.Release())
	}
	heap.Pacer{Calm: idleGOGC, Busy: busyGOGC, Rate: busyAllocRate, Extra: busyExtraHeap}.Start()
	return h, nil
}

func (h *Hub) startControlPlane(ctx context.Context, o Options) error {
	keys := filepath.Join(o.Dir, "pki")
	if err := pki.EnsureCluster(keys, "hotspare", time.Now()); err != nil {
		return err
	}
	var err error
	if h.ca, err = pki.LoadCA(keys, pki.ClusterCA); err != nil {
		return err
	}
	listener, err := listenOnLastPort(o.Dir, o.Port)
	if err != nil {
		return err
	}
	if o.Connections > 0 {
		listener = loopback.LimitConnections(listener, o.Connections)
	}
	h.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		Dir:         o.Dir,
		PKI:         keys,
		Listener:    listener,
		Controllers: controllers,
		ControllerFlags: []string{
			"--cluster-signing-cert-file=" + filepath.Join(keys, pki.ClusterCA+".crt"),
			"--cluster-signing-key-file=" + filepath.Join(keys, pki.ClusterCA+".key"),
		},
		Untracked:    isPoolCluster,
		MutatedGroup: hivev1.GroupVersion.String(),
		Log:          o.Log,
	})
	if err != nil {
		return err
	}
	if err := h.grantAdminAccess(ctx); err != nil {
		h.ControlPlane.Stop()
		return err
	}
	return nil
}

// grantAdminAccess waits for the API and lets the admin in.
func (h *Hub) grantAdminAccess(ctx context.Context) error {
	if err := h.WaitUntilReady(ctx); err != nil {
		return err
	}
	if err := bindAdminGroup(ctx, h.ControlPlane.ClientConfig("hotspare-bootstrap", "system:masters")); err != nil {
		return err
	}
	h.admin = h.ControlPlane.ClientConfig(adminUser, AdminGroup)
	return nil
}

// AdminConfig returns how the person who runs the hub reaches it. The caller owns it.
func (h *Hub) AdminConfig() *rest.Config {
	return rest.CopyConfig(h.admin)
}

// CACertPEM returns the certificate of who signs the hub's own, in PEM.
func (h *Hub) CACertPEM() []byte { return h.ca.CertPEM() }

// Stop stops the hub and returns when its folder is free. It may be called once.
func (h *Hub) Stop() error {
	h.ControlPlane.Stop()
	return h.lock.Release()
}

// isPoolCluster tells the clusters that pools make. They are most of what a hub holds, are
// written a dozen times each, and only by controllers.
func isPoolCluster(o *unstructured.Unstructured) bool {
	if o.GroupVersionKind().GroupKind() != hivev1.GroupVersion.WithKind("ClusterDeployment").GroupKind() {
		return false
	}
	pool, found, err := unstructured.NestedString(o.Object, "spec", "clusterPoolRef", "poolName")
	return err == nil && found && pool != ""
}
