// Package node simulates a node of a local cluster for the API: it joins like a kubelet, with a
// bootstrap credential and certificate requests; it renews its certificates; it maintains its Node
// and Lease; and it reports its pods as running. The pods are not containers. A pod whose image is
// a command of this program runs as a process of this program.
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

// pollInterval is the interval for polling state that has no change notification: the first answer
// of the API, and the certificates of client-go's manager.
const pollInterval = 100 * time.Millisecond

// userPrefix is the prefix before the name of a node in its user name.
const userPrefix = "system:node:"

// Options describe the node to run.
type Options struct {
	// Name is the name of the node.
	Name string
	// Dir is where the node's certificates are kept between starts.
	Dir string
	// Pods is the parent of the folders of pods that run as processes. Run empties it.
	Pods string
	// Bootstrap is the config with which the node requests its first certificate from the cluster.
	Bootstrap *rest.Config
	// Taints are the taints that the node registers with.
	Taints []corev1.Taint
	// SimulationCause is why pods are not containers, and what to do about it; "" if that was
	// requested. The node reports it.
	SimulationCause string
	// Alive, if not nil, receives the function that sends the node's heartbeats until its context
	// ends. Alive calls it whenever, and for as long as, the node should send heartbeats.
	Alive func(ctx context.Context, signs func(context.Context) error) error
}

func (o Options) runWhileAlive(ctx context.Context, signs func(context.Context) error) error {
	if o.Alive == nil {
		return signs(ctx)
	}
	return o.Alive(ctx, signs)
}

// Run runs the node until ctx ends. It waits without a limit for the API and for the approval of
// its certificates.
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

// ignoreCancellation returns err, or nil if ctx has ended: a node is stopped by ending ctx.
func ignoreCancellation(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was stopped
	}
	return err
}
