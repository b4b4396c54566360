package node

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
)

const (
	// renewInterval is how often the node sends a heartbeat, and checks whether it was marked as
	// not ready.
	renewInterval = 3 * time.Second
	// leaseSeconds is how long a node counts as alive without a heartbeat.
	leaseSeconds = 16
)

// registration maintains the node's Node and Lease.
type registration struct {
	bootInfo
	taints []corev1.Taint
	client kubernetes.Interface
	owner  metav1.OwnerReference // the Node, which owns the Lease
}

func newRegistration(o Options, client kubernetes.Interface, port int) *registration {
	return &registration{
		bootInfo: bootInfo{name: o.Name, bootID: string(uuid.NewUUID()), port: int32(port), simulationCause: o.SimulationCause},
		taints:   o.Taints,
		client:   client,
	}
}

// runHeartbeats sends the heartbeats of a registered node until ctx ends.
func (r *registration) runHeartbeats(ctx context.Context) error {
	signs, ctx := errgroup.WithContext(ctx)
	signs.Go(func() error { return r.syncNodePeriodically(ctx) })
	signs.Go(func() error { return r.renewLease(ctx) })
	return signs.Wait()
}

// waitUntilRegistered creates the Node in the API and retries until it exists.
func (r *registration) waitUntilRegistered(ctx context.Context) error {
	return informerloop.RetryUntilSuccess(ctx, renewInterval, r.syncNodeObject)
}

// syncNodePeriodically maintains the Node until ctx ends: kube-controller-manager may have marked
// it as not ready, or it may have been deleted.
func (r *registration) syncNodePeriodically(ctx context.Context) error {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := r.syncNodeObject(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "will retry")
		}
	}, renewInterval, 0.04, true)
	return nil
}

func (r *registration) syncNodeObject(ctx context.Context) error {
	nodes := r.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, newNode(r.name, r.taints), metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("registering node %s: %w", r.name, err)
	}
	r.owner = metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	status, changed := r.nextNodeStatus(node.Status, metav1.Now())
	if !changed {
		return nil
	}
	node.Status = status
	if _, err := nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("updating status of node %s: %w", r.name, err)
	}
	return nil
}

// renewLease renews the Lease until ctx ends.
func (r *registration) renewLease(ctx context.Context) error {
	owner := r.owner
	lease.NewController(clock.RealClock{}, r.client, r.name, leaseSeconds, nil, renewInterval,
		r.name, corev1.NamespaceNodeLease, func(l *coordinationv1.Lease) error {
			l.OwnerReferences = []metav1.OwnerReference{owner}
			return nil
		}).Run(ctx)
	return nil
}
