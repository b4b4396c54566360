// Package hub runs the Kubernetes API of `hotspare up`: a control plane in this process, without
// nodes, that keeps its data and its address between starts.
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
	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/embedded/hub/heappacer"
	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/embedded/programpages"
	"hotspare.io/hotspare/internal/listen"
)

// ManagerUser is the user name of hotspare's controllers at the hub. The same manifests as on any
// other cluster grant its permissions.
const ManagerUser = "hotspare-manager"

// The identity of the person who runs the hub. AdminGroup has all permissions, but unlike
// system:masters through a binding, which can be deleted.
const (
	adminUser  = "hotspare-admin"
	AdminGroup = "hotspare:admins"
)

// Settings of the hub's garbage collection, see package heappacer. In a burst of claims on a pool of
// 1,000, the collector takes 38% of the processor time with the idle percentage alone. At 50 claims
// a second, the hub produces 150 MB of garbage a second, and a collection takes a second, in which
// claims queue up on two cores: fewer collections are better, as far as the computer has the memory. The hub
// returns the extra memory when it is idle.
const (
	idleGOGC      = 50
	busyGOGC      = 400
	busyAllocRate = 40 << 20
	// A pool that fills produces up to 900 MB of garbage a second. With busyGOGC, 2,000 clusters of 400 MB were spread over 1.3 GB,
	// which nothing returns later.
	growingGOGC      = 100
	growingAllocRate = 250 << 20
	// The heap of a busy hub grows by a twelfth of the available memory before a collection, within
	// these bounds.
	leastExtraHeap, mostExtraHeap = 750 << 20, 2 << 30
	extraHeapShare                = 12
)

// extraHeap returns how many bytes the heap of a busy hub may grow before a collection. Available is the memory
// of the computer that programs can use; less than 1 if it is not known.
func extraHeap(available int64) uint64 {
	return uint64(min(max(available/extraHeapShare, leastExtraHeap), mostExtraHeap))
}

// Options configure a hub.
type Options struct {
	// Dir contains all data of the hub. It is created if it does not exist.
	Dir string
	// Port is the loopback port of the API. 0 means the port of the last run of the hub in Dir, or
	// else any free port.
	Port int
	// Connections is the maximum number of open connections; 0 means no limit.
	Connections int
	// AvailableMemory is how many bytes of memory programs can use on this computer; 0 if it is not known.
	AvailableMemory int64
	// AuthenticationConfig is the path of an AuthenticationConfiguration, see
	// controlplane.Options.AuthenticationConfig.
	AuthenticationConfig string
	// MutatedGroups are the group versions of controlplane.Options.MutatedGroups.
	MutatedGroups []string
	// Log receives the log of the Kubernetes components.
	Log io.Writer
}

// A Hub runs from Start to Stop. Its methods are safe for concurrent use.
type Hub struct {
	*controlplane.ControlPlane
	lock  *flock.Lock
	ca    *pki.CA
	admin *rest.Config
}

// controllers are the controllers that users of an API without nodes need.
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

// Start starts the hub in o.Dir and returns when its API is ready. ctx bounds only the call. The
// error is a *flock.HeldError if a hub is already running on o.Dir, and a
// *controlplane.PortTakenError if another program uses its port.
func Start(ctx context.Context, o Options) (*Hub, error) {
	lock, err := flock.Acquire(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("starting a hub on %s: %w", o.Dir, err)
	}
	h := &Hub{lock: lock}
	if err := h.startControlPlane(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the hub on %s: %w", o.Dir, err), lock.Release())
	}
	heappacer.Pacer{
		Calm: idleGOGC, Busy: busyGOGC, Rate: busyAllocRate, Extra: extraHeap(o.AvailableMemory),
		Growing: growingGOGC, GrowingRate: growingAllocRate,
		Release: programpages.ReleaseAndLog,
	}.Start()
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
		listener = listen.LimitConnections(listener, o.Connections)
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
		Untracked:            isPoolCluster,
		MutatedGroups:        o.MutatedGroups,
		AuthenticationConfig: o.AuthenticationConfig,
		Log:                  o.Log,
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

// grantAdminAccess waits until the API is ready and grants access to the administrator.
func (h *Hub) grantAdminAccess(ctx context.Context) error {
	if err := h.WaitUntilReady(ctx); err != nil {
		return err
	}
	h.admin = h.ControlPlane.ClientConfig(adminUser, AdminGroup)
	return bindAdminGroup(ctx, h.ControlPlane.ClientConfig("hotspare-bootstrap", "system:masters"), h.admin)
}

// AdminConfig returns the config with which the person who runs the hub reaches it. The caller owns
// the returned config.
func (h *Hub) AdminConfig() *rest.Config {
	return rest.CopyConfig(h.admin)
}

// CACertPEM returns the CA certificate of the hub's serving certificate, in PEM.
func (h *Hub) CACertPEM() []byte { return h.ca.CertPEM() }

// Stop stops the hub and returns when its folder is unlocked. It may be called once.
func (h *Hub) Stop() error {
	h.ControlPlane.Stop()
	return h.lock.Release()
}

// isPoolCluster reports whether o is a ClusterDeployment that a pool created. These are most of the
// objects of a hub, are written a dozen times each, and only by controllers.
func isPoolCluster(o *unstructured.Unstructured) bool {
	if o.GroupVersionKind().GroupKind() != hivev1.GroupVersion.WithKind("ClusterDeployment").GroupKind() {
		return false
	}
	pool, found, err := unstructured.NestedString(o.Object, "spec", "clusterPoolRef", "poolName")
	return err == nil && found && pool != ""
}
