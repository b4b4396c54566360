package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
)

// reconcilePods manages the lifecycle of the pods that are bound to the node. When it returns, all
// of their processes have ended.
func reconcilePods(ctx context.Context, o Options, client kubernetes.Interface) error {
	programs, err := newProcessManager(o, client)
	if err != nil {
		return err
	}
	defer programs.waitForProcesses()
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", o.Name))
	informerloop.RunWithDeletions(ctx, source, &corev1.Pod{}, func(ctx context.Context, pod *corev1.Pod) (time.Duration, error) {
		if isProcessPod(pod) {
			return applyPodStep(ctx, client, pod, programs.reconcilePod(ctx, pod))
		}
		return applyPodStep(ctx, client, pod, decidePodStep(pod, metav1.Now()))
	}, programs.stopDeletedPod)
	return nil
}

func applyPodStep(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, s step) (time.Duration, error) {
	pods := client.CoreV1().Pods(pod.Namespace)
	var err error
	switch {
	case s.remove:
		err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64),
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		})
	case s.status != nil:
		pod = pod.DeepCopy()
		pod.Status = *s.status
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	}
	// If the pod has changed, the watch delivers its new version; a deleted pod needs no update.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return 0, fmt.Errorf("updating pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return s.wait, nil
}
