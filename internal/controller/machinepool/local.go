package machinepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/machinepool"
	"hotspare.io/hotspare/internal/remote"
)

// machineNamespace is the namespace of OpenShift's Machines.
const machineNamespace = "openshift-machine-api"

// removalTimeout limits the wait for a machine to be removed. If it takes longer, the next pass
// continues to wait.
const removalTimeout = time.Minute

// observedWorkers is the observed state of a cluster whose workers hotspare creates.
type observedWorkers struct {
	workers  install.Workers
	taints   []corev1.Taint
	nodes    map[string]*corev1.Node
	machines map[string]*unstructured.Unstructured
	pods     []corev1.Pod
}

// observeWorkers reads a cluster whose workers hotspare creates, and their machines.
func observeWorkers(
	ctx context.Context, workers install.Workers, spoke client.Client, target install.Target, pool machinepool.Pool,
) (machinepool.WorkerSnapshot, *observedWorkers, error) {
	crew := machinepool.WorkerSnapshot{Pool: pool, InfraID: target.InfraID}
	l := &observedWorkers{
		workers: workers, taints: pool.Taints,
		nodes: map[string]*corev1.Node{}, machines: map[string]*unstructured.Unstructured{},
	}
	made, err := workers.List(target)
	if err != nil {
		return crew, l, err
	}
	for _, w := range made {
		crew.Machines = append(crew.Machines, machinepool.Machine{Name: w.Name, Created: w.Created, Problem: w.Problem, Obstacle: w.Obstacle})
	}
	var nodes corev1.NodeList
	if err := spoke.List(ctx, &nodes); err != nil {
		return crew, l, fmt.Errorf("listing nodes: %w", err)
	}
	var pods corev1.PodList
	if err := spoke.List(ctx, &pods); err != nil {
		return crew, l, fmt.Errorf("listing pods: %w", err)
	}
	l.pods = pods.Items
	busy := countPodsPerNode(pods.Items)
	for i := range nodes.Items {
		n := &nodes.Items[i]
		l.nodes[n.Name] = n
		crew.Nodes = append(crew.Nodes, workerNode(n, busy[n.Name]))
	}
	machines, err := listMachineObjects(ctx, spoke, remote.Machine)
	if err != nil {
		return crew, l, err
	}
	for i := range machines {
		m := &machines[i]
		l.machines[m.GetName()] = m
		crew.Objects = append(crew.Objects, machinepool.MachineObject{Name: m.GetName(), Labels: m.GetLabels()})
	}
	if pool.Range != nil {
		crew.Pending = countPendingPods(pods.Items, pool)
	}
	return crew, l, nil
}

func workerNode(n *corev1.Node, pods int) machinepool.Node {
	out := machinepool.Node{Name: n.Name, Labels: n.Labels, Taints: n.Spec.Taints, Pods: pods}
	out.Ready = slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	if at, err := time.Parse(time.RFC3339, n.Annotations[hivev1.AnnotationEmptySince]); err == nil {
		out.EmptySince = at
	}
	return out
}

// applyWorkerStep carries out one step in a cluster whose workers hotspare creates.
func (t *task) applyWorkerStep(ctx context.Context, s machinepool.Step) error {
	switch s.Verb {
	case machinepool.AddWorker:
		return t.local.workers.Add(t.target, install.Worker{Name: s.Name, Taints: t.local.taints})
	case machinepool.RemoveWorker:
		return t.removeWorker(ctx, s.Name)
	case machinepool.DeleteNode:
		return t.deleteNodeAndMachine(ctx, s.Name)
	case machinepool.UpdateNode:
		return t.patchNode(ctx, s)
	case machinepool.UpdateMachine:
		m := t.local.machines[s.Name]
		after := m.DeepCopy()
		after.SetLabels(s.Labels)
		return ignoreNotFound(t.spoke.Patch(ctx, after, client.MergeFrom(m)))
	}
	return fmt.Errorf("unknown step: %s", s)
}

// removeWorker removes a worker from the cluster. It keeps new pods from the node and deletes
// those on it before the machine stops. It deletes the node last, because a running kubelet would
// only register it again.
func (t *task) removeWorker(ctx context.Context, name string) error {
	if n := t.local.nodes[name]; n != nil {
		if err := t.drainNode(ctx, n); err != nil {
			return err
		}
	}
	stopping, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	if err := t.local.workers.Remove(stopping, t.target, name); err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return fault.NewWait(workersJoiningDelay, "machine %s has not stopped within %s", name, removalTimeout)
		}
		return err
	}
	return t.deleteNodeAndMachine(ctx, name)
}

// drainNode keeps new pods from a node and deletes those on it that can run elsewhere.
func (t *task) drainNode(ctx context.Context, n *corev1.Node) error {
	after := n.DeepCopy()
	if !slices.ContainsFunc(after.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machinepool.LeavingTaint.Key }) {
		after.Spec.Taints = append(after.Spec.Taints, machinepool.LeavingTaint)
		if err := t.spoke.Patch(ctx, after, client.MergeFrom(n)); ignoreNotFound(err) != nil {
			return fmt.Errorf("tainting node %s: %w", n.Name, err)
		}
	}
	for i := range t.local.pods {
		p := &t.local.pods[i]
		if p.Spec.NodeName != n.Name || !occupiesNode(p) {
			continue
		}
		if err := t.spoke.Delete(ctx, p, client.Preconditions{UID: &p.UID}); ignoreNotFound(err) != nil && fault.KindOf(err) != fault.Conflict {
			return fmt.Errorf("deleting pod %s: %w", client.ObjectKeyFromObject(p), err)
		}
	}
	return nil
}

// deleteNodeAndMachine deletes the Node and the Machine of a worker that was removed.
func (t *task) deleteNodeAndMachine(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := ignoreNotFound(t.spoke.Delete(ctx, node)); err != nil {
		return err
	}
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(remote.Machine)
	m.SetNamespace(machineNamespace)
	m.SetName(name)
	return ignoreNotFound(t.spoke.Delete(ctx, m))
}

// patchNode sets a node's labels, its taints, and the time since which it is empty.
func (t *task) patchNode(ctx context.Context, s machinepool.Step) error {
	n := t.local.nodes[s.Name]
	after := n.DeepCopy()
	after.Labels, after.Spec.Taints = s.Node.Labels, s.Node.Taints
	delete(after.Annotations, hivev1.AnnotationEmptySince)
	if at := s.Node.EmptySince; !at.IsZero() {
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		after.Annotations[hivev1.AnnotationEmptySince] = at.UTC().Format(time.RFC3339)
	}
	return ignoreNotFound(t.spoke.Patch(ctx, after, client.MergeFromWithOptions(n, client.MergeFromWithOptimisticLock{})))
}

// ignoreNotFound drops not-found errors: the next pass sees that the object is deleted.
func ignoreNotFound(err error) error { return client.IgnoreNotFound(err) }
