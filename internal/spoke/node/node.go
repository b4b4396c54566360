// Package node is a node of a local cluster, as far as the API can tell: it joins
// as a kubelet does, with a bootstrap credential and certificate requests; it
// renews its certificates; it keeps its Node and Lease; and it says of its pods
// that they run. They are not containers. Those whose image is a command of this
// program are processes of it.
package node

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// pollInterval of things that do not tell when they change: the first answer of
// the API, and the certificates of client-go's manager.
const pollInterval = 100 * time.Millisecond

// userPrefix precedes the name of a node in its user name.
const userPrefix = "system:node:"

// Options say which node to be.
type Options struct {
	// Name of the node.
	Name string
	// Dir is where its certificates are kept from one start to the next.
	Dir string
	// Pods is where pods that are processes have their folders. It is emptied.
	Pods string
	// Bootstrap is how to ask the cluster for a first certificate.
	Bootstrap *rest.Config
	// Taints the node registers with.
	Taints []corev1.Taint
	// Alive, if not nil, is handed what keeps the node's signs of life until its
	// context ends, and calls it as long, and as often, as there are to be any.
	Alive func(ctx context.Context, signs func(context.Context) error) error
}

func (o Options) runWhileAlive(ctx context.Context, signs func(context.Context) error) error {
	if o.Alive == nil {
		return signs(ctx)
	}
	return o.Alive(ctx, signs)
}

// Run is the node until ctx ends. It waits for what it needs, the API and the
// approval of its certificates, for as long as it takes.
func Run(ctx context.Context, o Options) error {
	identity, err := newIdentity(ctx, o)
	if err != nil {
		return fmt.Errorf("preparing node %s: %w", o.Name, err)
	}
	defer identity.stop()
	if err := identity.waitForCertificate(ctx); err != nil {
		return ignoreCancellation(ctx, err)
	}
	klog.FromContext(ctx).Info("joined", "node", o.Name)

	server, err := newServer(ctx, o, identity)
	if err != nil {
		return fmt.Errorf("preparing node %s: %w", o.Name, err)
	}
	defer server.close()
	r := newRegistration(o, identity.client, server.listenPort())
	if err := o.runWhileAlive(ctx, r.waitUntilRegistered); err != nil {
		return ignoreCancellation(ctx, err)
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return server.serveTLS(ctx) })
	work.Go(func() error { return identity.closeStaleConnections(ctx) })
	work.Go(func() error { return o.runWhileAlive(ctx, r.runHeartbeats) })
	work.Go(func() error { return reconcilePods(ctx, o, identity.client) })
	return work.Wait()
}

// ignoreCancellation returns err unless ctx has ended, which is how a node is stopped.
func ignoreCancellation(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was told to stop
	}
	return err
}
