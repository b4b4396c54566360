package machinepool

import (
	"maps"
	"runtime"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"hotspare.io/hotspare/internal/machinepool"
)

// occupiesNode reports whether a pod keeps its node from being empty, because it would have to
// run elsewhere. Pods of DaemonSets and completed pods do not.
func occupiesNode(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return p.DeletionTimestamp == nil && !mirror && (owner == nil || owner.Kind != "DaemonSet") &&
		p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// countPodsPerNode counts, for each node, the pods that occupy it.
func countPodsPerNode(pods []corev1.Pod) map[string]int {
	out := map[string]int{}
	for i := range pods {
		if pods[i].Spec.NodeName != "" && occupiesNode(&pods[i]) {
			out[pods[i].Spec.NodeName]++
		}
	}
	return out
}

// countPendingPods counts the pods for which the scheduler has found no node and that could run
// on one more node of the pool.
func countPendingPods(pods []corev1.Pod, pool machinepool.Pool) int64 {
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: pool.Taints}}
	node.Name = "new"
	node.Labels = map[string]string{
		corev1.LabelHostname: node.Name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
		"node-role.kubernetes.io/worker": "",
	}
	maps.Copy(node.Labels, pool.Labels)
	var n int64
	for i := range pods {
		if p := &pods[i]; p.Spec.NodeName == "" && occupiesNode(p) && isUnschedulable(p) && toleratesTaints(p, pool.Taints) && matchesNodeAffinity(p, node) {
			n++
		}
	}
	return n
}

func isUnschedulable(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func matchesNodeAffinity(p *corev1.Pod, node *corev1.Node) bool {
	match, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(node)
	return err == nil && match
}

// toleratesTaints reports whether a pod tolerates all taints that keep pods away.
func toleratesTaints(p *corev1.Pod, taints []corev1.Taint) bool {
	for _, t := range taints {
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool { return toleratesTaint(o, t) }) {
			return false
		}
	}
	return true
}

// toleratesTaint reports whether a toleration matches a taint.
func toleratesTaint(o corev1.Toleration, t corev1.Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect || o.Key != "" && o.Key != t.Key {
		return false
	}
	switch o.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return o.Key != "" && o.Value == t.Value
	}
	return false
}
