package runtimesupervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// retryDelay is the delay before the condition is written again, after the API refused it: the kubelet may not have
// registered the node.
const retryDelay = 5 * time.Second

// Health is the current problem of a container runtime. Its methods are safe for concurrent use.
type Health struct {
	mu      sync.Mutex
	problem string
	changed chan struct{} // capacity 1
}

// NewHealth returns the health of a runtime without a problem.
func NewHealth() *Health { return &Health{changed: make(chan struct{}, 1)} }

// Problem returns why the runtime does not run, as a clause; "" if nothing is known.
func (h *Health) Problem() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.problem
}

// SetProblem sets what Problem returns.
func (h *Health) SetProblem(problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problem = problem
	select {
	case h.changed <- struct{}{}:
	default: // Publish has not seen the last change yet
	}
}

// Publish keeps condition ContainerRuntimeUnhealthy of the node until ctx ends. A node gets the condition with its first
// problem.
func (h *Health) Publish(ctx context.Context, client kubernetes.Interface, node string, c clock.Clock) {
	for ctx.Err() == nil {
		var retry <-chan time.Time
		if err := writeCondition(ctx, client, node, h.Problem(), c.Now()); err != nil {
			klog.FromContext(ctx).V(1).Info("the condition of the node is not written yet", "reason", err)
			retry = c.After(retryDelay)
		}
		select {
		case <-ctx.Done():
		case <-h.changed:
		case <-retry:
		}
	}
}

// writeCondition writes the condition of a node, unless that has it already, or needs none.
func writeCondition(ctx context.Context, client kubernetes.Interface, name, problem string, now time.Time) error {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && problem == "" {
		return nil
	}
	if err != nil {
		return err
	}
	next, changed := nextCondition(node.Status.Conditions, problem, metav1.NewTime(now))
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{next}}})
	if err != nil {
		return fmt.Errorf("encoding a condition: %w", err)
	}
	_, err = client.CoreV1().Nodes().PatchStatus(ctx, name, patch)
	return err
}

// nextCondition returns the condition of a node with these conditions, and whether it must be written.
func nextCondition(all []corev1.NodeCondition, problem string, now metav1.Time) (corev1.NodeCondition, bool) {
	next := corev1.NodeCondition{
		Type: machine.ContainerRuntimeUnhealthy, Status: corev1.ConditionFalse, Reason: "ContainerdRuns", Message: "containerd runs",
		LastTransitionTime: now, LastHeartbeatTime: now,
	}
	if problem != "" {
		next.Status, next.Reason, next.Message = corev1.ConditionTrue, "ContainerdEnded", problem
	}
	i := slices.IndexFunc(all, func(c corev1.NodeCondition) bool { return c.Type == next.Type })
	if i < 0 {
		return next, problem != ""
	}
	if all[i].Status == next.Status {
		next.LastTransitionTime = all[i].LastTransitionTime
	}
	return next, all[i].Status != next.Status || all[i].Message != next.Message
}
