package remote

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/gate"
)

// gatePodPrefix is the prefix of the names of pods of gates.
const gatePodPrefix = "hotspare-gate-"

// checkPod checks a gate by a pod in namespace default: it creates the pod, and deletes it when the gate has
// passed. A pod of an earlier run says nothing about this one, and is replaced.
func (sc *spokeClient) checkPod(ctx context.Context, g v1alpha1.Gate, run string) (gate.Answer, error) {
	want := newGatePod(g, run)
	pods := sc.core.Pods(want.Namespace)
	pod, err := pods.Get(ctx, want.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return sc.createGatePod(ctx, want)
	case err != nil:
		return gate.Answer{}, fmt.Errorf("reading pod %s: %w", want.Name, err)
	case pod.DeletionTimestamp != nil:
		return failf("an earlier pod %s is being deleted", want.Name), nil
	case pod.Labels[v1alpha1.LabelGate] != run:
		return failf("pod %s is of an earlier run, and is replaced", want.Name), sc.deleteGatePod(ctx, pod)
	}
	answer := judgeGatePod(pod, len(want.Spec.Containers[0].Command) > 0)
	if answer.Passed || pod.Status.Phase == corev1.PodFailed {
		return answer, sc.deleteGatePod(ctx, pod) // another pod is the next attempt
	}
	return answer, nil
}

func (sc *spokeClient) createGatePod(ctx context.Context, want *corev1.Pod) (gate.Answer, error) {
	_, err := sc.core.Pods(want.Namespace).Create(ctx, want, metav1.CreateOptions{})
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return failf("pod %s cannot be created: %s", want.Name, DescribeFailure(err)), nil
	case err != nil && !apierrors.IsAlreadyExists(err):
		return gate.Answer{}, fmt.Errorf("creating pod %s: %w", want.Name, err)
	}
	return failf("pod %s has not run yet", want.Name), nil
}

func (sc *spokeClient) deleteGatePod(ctx context.Context, pod *corev1.Pod) error {
	options := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	err := sc.core.Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	return nil
}

// deleteGatePods deletes the pods of gates that are not of a run and its version of the gates; an empty run deletes those of
// all. It returns why it could not. A gate that was removed, or has another name now, leaves a pod that nothing else deletes.
func (sc *spokeClient) deleteGatePods(ctx context.Context, run string) (trouble string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	selector := v1alpha1.LabelGate
	if run != "" {
		selector += "," + v1alpha1.LabelGate + "!=" + run
	}
	list, err := sc.core.Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return DescribeFailure(err)
	}
	for i := range list.Items {
		if err := sc.deleteGatePod(ctx, &list.Items[i]); err != nil {
			return DescribeFailure(err)
		}
	}
	return ""
}

// judgeGatePod returns what a pod says about its gate.
func judgeGatePod(pod *corev1.Pod, ends bool) gate.Answer {
	switch phase := pod.Status.Phase; {
	case phase == corev1.PodSucceeded && ends, phase == corev1.PodRunning && !ends:
		return passed
	case phase == corev1.PodFailed, phase == corev1.PodSucceeded:
		return failf("pod %s has ended: %s", pod.Name, describeEnd(pod))
	case phase == corev1.PodRunning:
		return failf("pod %s runs, and has not ended yet", pod.Name)
	default:
		return failf("pod %s does not run yet%s", pod.Name, describePending(pod))
	}
}

func describeEnd(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("exit code %d", t.ExitCode)
		}
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	return "no exit code is known"
}

// describePending returns why a pod does not run, with the reasons that Kubernetes gives, which are stable.
func describePending(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			return ": " + w.Reason
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return ": " + c.Reason
		}
	}
	return ""
}

// newGatePod returns the pod of a gate. It complies with the restricted Pod Security Standard, so that no
// cluster refuses it.
func newGatePod(g v1alpha1.Gate, run string) *corev1.Pod {
	spec := v1alpha1.GatePod{Image: defaultGateDNSImage}
	if g.Pod != nil {
		spec = *g.Pod
	}
	if g.Type == v1alpha1.GateDNSAnswers {
		// nslookup of busybox ignores the search list of resolv.conf; nc resolves a name as other programs do.
		spec.Command = []string{"nc", "-z", "-w", "5", "kubernetes.default.svc", "443"}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: gatePodPrefix + g.Name, Labels: map[string]string{v1alpha1.LabelGate: run},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptr.To[int64](0), AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65534), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "gate", Image: spec.Image, Command: spec.Command,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
