package node

import (
	"hash/fnv"
	"net"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// jobLength is how long a pod of a Job runs before it succeeds.
const jobLength = time.Second

// A step is the next action for a pod. At most one field is set.
type step struct {
	// remove requests the final deletion of the pod.
	remove bool
	// status is the new status of the pod.
	status *corev1.PodStatus
	// wait is the delay before the pod is reconciled again.
	wait time.Duration
}

// decidePodStep returns the next step for a pod of this node. A pod is Running as soon as the node
// sees it; a pod of a Job succeeds after jobLength; a pod with a deletion timestamp is removed
// immediately.
func decidePodStep(pod *corev1.Pod, now metav1.Time) step {
	switch {
	case pod.DeletionTimestamp != nil:
		return step{remove: true}
	case pod.Status.Phase == corev1.PodPending:
		return step{status: runningStatus(pod, now)}
	case pod.Status.Phase != corev1.PodRunning:
		return step{}
	case runsToCompletion(pod):
		return decideJobPodStep(pod, now)
	case !isPodReady(pod):
		return step{status: readyAgainStatus(pod, now)}
	}
	return step{}
}

func decideJobPodStep(pod *corev1.Pod, now metav1.Time) step {
	if start := pod.Status.StartTime; start != nil && now.Sub(start.Time) < jobLength {
		return step{wait: jobLength - now.Sub(start.Time)}
	}
	return step{status: succeededStatus(pod, now)}
}

func isPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// readyAgainStatus returns the status of a pod that kube-controller-manager has marked as not ready
// while its node was unreachable.
func readyAgainStatus(pod *corev1.Pod, now metav1.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	setPodReady(s, corev1.ConditionTrue, "", now)
	return s
}

// runsToCompletion reports whether the pod ends on its own.
func runsToCompletion(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job" && owner.APIVersion == batchv1.SchemeGroupVersion.String() &&
		pod.Spec.RestartPolicy != corev1.RestartPolicyAlways
}

func runningStatus(pod *corev1.Pod, now metav1.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.Phase = corev1.PodRunning
	s.StartTime = &now
	s.HostIP = address
	s.HostIPs = []corev1.HostIP{{IP: address}}
	s.PodIP = podIPAddress(pod)
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	s.InitContainerStatuses = nil
	for _, c := range pod.Spec.InitContainers {
		state := terminatedState(now, now)
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = runningState(now)
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, containerStatus(pod, c, state))
	}
	s.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(pod, c, runningState(now)))
	}
	setPodCondition(s, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setPodReady(s, corev1.ConditionTrue, "", now)
	return s
}

func succeededStatus(pod *corev1.Pod, now metav1.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.Phase = corev1.PodSucceeded
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if list[i].State.Running == nil {
				continue
			}
			list[i].State = terminatedState(list[i].State.Running.StartedAt, now)
			list[i].Ready = false
			list[i].Started = new(bool)
		}
	}
	setPodReady(s, corev1.ConditionFalse, "PodCompleted", now)
	return s
}

func containerStatus(pod *corev1.Pod, c corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
	up := state.Running != nil
	return corev1.ContainerStatus{
		Name:        c.Name,
		Image:       c.Image,
		ImageID:     c.Image,
		ContainerID: "none://" + string(pod.UID) + "/" + c.Name,
		State:       state,
		Ready:       true, // a successfully completed init container is ready, too
		Started:     &up,
	}
}

func runningState(at metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
}

func terminatedState(from, to metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", StartedAt: from, FinishedAt: to,
	}}
}

func setPodReady(s *corev1.PodStatus, value corev1.ConditionStatus, reason string, now metav1.Time) {
	setPodCondition(s, corev1.ContainersReady, value, reason, now)
	setPodCondition(s, corev1.PodReady, value, reason, now)
}

func setPodCondition(s *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, reason string, now metav1.Time) {
	c := corev1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: now}
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			s.Conditions[i] = c
			return
		}
	}
	s.Conditions = append(s.Conditions, c)
}

// podIPAddress returns an address for the pod, derived from its UID: no allocation is recorded, and
// the address is not reachable.
func podIPAddress(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork {
		return address
	}
	return derivePodIP(pod.UID)
}

// derivePodIP returns an address in 10.128.0.0/14, OpenShift's default for pods.
func derivePodIP(uid types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // writing to a hash never fails
	sum := h.Sum(nil)
	return net.IPv4(10, 128|sum[0]&3, sum[1], sum[2]).String()
}
