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

	"hotspare.io/hotspare/internal/spoke/loop"
)

const (
	// renewInterval is how often the node says that it is alive, and looks whether
	// anybody has called it dead.
	renewInterval = 3 * time.Second
	// leaseSeconds is what others may take a silent node for alive.
	leaseSeconds = 16
)

// registration is the node's Node and Lease.
type registration struct {
	bootInfo
	taints []corev1.Taint
	client kubernetes.Interface
	owner  metav1.OwnerReference // the Node, owner of the Lease
}

func newRegistration(o Options, client kubernetes.Interface, port int) *registration {
	return &registration{
		bootInfo: bootInfo{name: o.Name, bootID: string(uuid.NewUUID()), port: int32(port)},
		taints:   o.Taints,
		client:   client,
	}
}

// runHeartbeats shows until ctx ends that the node, which has registered, lives.
func (r *registration) runHeartbeats(ctx context.Context) error {
	signs, ctx := errgroup.WithContext(ctx)
	signs.Go(func() error { return r.syncNodePeriodically(ctx) })
	signs.Go(func() error { return r.renewLease(ctx) })
	return signs.Wait()
}

// waitUntilRegistered brings the Node to the API, and tries until it is there.
func (r *registration) waitUntilRegistered(ctx context.Context) error {
	return loop.RetryUntilSuccess(ctx, renewInterval, r.syncNodeObject)
}

// syncNodePeriodically keeps the Node until ctx ends: kube-controller-manager may have called it
// unready, somebody may have deleted it.
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
