// Package runner runs the Jobs of installers as processes on this computer, for a hub that has no
// nodes. It does what a Job controller and a kubelet do, but only for Jobs with hotspare's label.
//
// A pod is a folder, DIR/<pod>, with what it mounts and its log. Images are ignored: the program is
// this one, and the installer is the configured one. The log is kept after the pod has ended.
package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// nodeName is the node name that this computer uses.
const nodeName = "hotspare-up"

// Runner runs the Jobs of a hub.
type Runner struct {
	// Hub reads and writes the hub with the permissions of a node and a Job controller.
	Hub client.Client
	// Dir contains the folders of the pods.
	Dir string
	// Launch starts a pod.
	Launch func(ctx context.Context, p Pod) (Process, error)
	// Period is how often the Jobs are reconciled; 0: one second.
	Period time.Duration
	Clock  clock.PassiveClock

	running map[types.UID]Process
}

// Process is a running pod.
type Process interface {
	// Stop makes the pod end soon.
	Stop()
	// Done is closed when the pod has ended, with everything that it started.
	Done() <-chan struct{}
	// Err returns how the pod ended: nil for success.
	Err() error
}

// Run runs Jobs until ctx ends, then stops the pods and waits for them.
func (r *Runner) Run(ctx context.Context) error {
	if r.Period == 0 {
		r.Period = time.Second
	}
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	r.running = map[types.UID]Process{}
	log := logr.FromContextOrDiscard(ctx)
	ticker := time.NewTicker(r.Period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			r.stopAllPods(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
			if err := r.SyncOnce(ctx); err != nil && ctx.Err() == nil {
				log.Error(err, "running the Jobs of installers") // the next pass retries
			}
		}
	}
}

// finalWriteTimeout bounds the writes after ctx has ended.
const finalWriteTimeout = 5 * time.Second

// stopAllPods stops all pods and records how they ended.
func (r *Runner) stopAllPods(ctx context.Context) {
	for _, p := range r.running {
		p.Stop()
	}
	for _, p := range r.running {
		<-p.Done()
	}
	ctx, cancel := context.WithTimeout(ctx, finalWriteTimeout)
	defer cancel()
	if pods, err := r.listPods(ctx); err == nil {
		for i := range pods {
			_ = r.syncPod(ctx, &pods[i], nil) // the next start finds it
		}
	}
}

// SyncOnce reconciles all Jobs and pods once.
func (r *Runner) SyncOnce(ctx context.Context) error {
	if r.running == nil {
		r.running = map[types.UID]Process{}
	}
	pods, err := r.listPods(ctx)
	if err != nil {
		return err
	}
	var jobs batchv1.JobList
	if err := r.Hub.List(ctx, &jobs, client.HasLabels{hivev1.LabelInstaller}); err != nil {
		return fmt.Errorf("listing Jobs: %w", err)
	}
	owners := map[types.UID]*batchv1.Job{}
	for i := range jobs.Items {
		owners[jobs.Items[i].UID] = &jobs.Items[i]
	}
	var errs []error
	for i := range pods {
		errs = append(errs, ignoreRaceErrors(r.syncPod(ctx, &pods[i], owners)))
	}
	r.stopDeletedPods(pods)
	for i := range jobs.Items {
		errs = append(errs, ignoreRaceErrors(r.syncJob(ctx, &jobs.Items[i], pods)))
	}
	return errors.Join(errs...)
}

// ignoreRaceErrors drops errors that mean that another client wrote or deleted the object first:
// the next pass sees the new state.
func ignoreRaceErrors(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (r *Runner) listPods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.Hub.List(ctx, &list, client.HasLabels{hivev1.LabelInstaller}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName != nodeName }), nil
}

// stopDeletedPods stops processes whose pods were deleted by force.
func (r *Runner) stopDeletedPods(pods []corev1.Pod) {
	for uid, p := range r.running {
		if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.UID == uid }) {
			continue
		}
		p.Stop()
		select {
		case <-p.Done():
			delete(r.running, uid)
		default:
		}
	}
}

func isPodFinished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// syncPod does for a pod what a kubelet does. owners are the Jobs; with nil it starts nothing.
func (r *Runner) syncPod(ctx context.Context, pod *corev1.Pod, owners map[types.UID]*batchv1.Job) error {
	p, known := r.running[pod.UID]
	if known {
		if pod.DeletionTimestamp != nil {
			p.Stop()
		}
		select {
		case <-p.Done():
		default:
			return nil
		}
		if err := r.patchPodTerminated(ctx, pod, p.Err()); err != nil {
			return err
		}
		delete(r.running, pod.UID)
		return r.deleteTerminatingPod(ctx, pod)
	}
	switch {
	case isPodFinished(pod):
		return r.deleteTerminatingPod(ctx, pod)
	case pod.Status.Phase == corev1.PodRunning:
		ended, err := StopOrphan(r.podDir(pod))
		if err != nil || !ended {
			return err
		}
		return errors.Join(r.patchPodTerminated(ctx, pod, errors.New("hotspare stopped while the pod ran")), r.deleteTerminatingPod(ctx, pod))
	case pod.DeletionTimestamp != nil:
		return r.deleteTerminatingPod(ctx, pod)
	case owners == nil || owners[controllerUID(pod)] == nil:
		return nil
	}
	return r.startPod(ctx, pod)
}

func controllerUID(pod *corev1.Pod) types.UID {
	if c := metav1.GetControllerOf(pod); c != nil {
		return c.UID
	}
	return ""
}

func (r *Runner) podDir(pod *corev1.Pod) string { return filepath.Join(r.Dir, pod.Name) }

// startPod records that a pod runs, then starts it. In the opposite order, a pod started just
// before a crash would be started a second time.
func (r *Runner) startPod(ctx context.Context, pod *corev1.Pod) error {
	spec, err := r.preparePod(ctx, pod)
	if err != nil {
		return r.patchPodTerminated(ctx, pod, err)
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = ptr.To(metav1.NewTime(r.Clock.Now()))
	if err := r.Hub.Status().Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	p, err := r.Launch(ctx, spec)
	if err != nil {
		return r.patchPodTerminated(ctx, pod, err)
	}
	r.running[pod.UID] = p
	return nil
}

// patchPodTerminated records how a pod ended.
func (r *Runner) patchPodTerminated(ctx context.Context, pod *corev1.Pod, how error) error {
	before := pod.DeepCopy()
	end := corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(r.Clock.Now()), Reason: "Completed"}
	pod.Status.Phase = corev1.PodSucceeded
	if how != nil {
		pod.Status.Phase = corev1.PodFailed
		end.ExitCode, end.Reason, end.Message = 1, "Error", how.Error()
	}
	container := pod.Spec.Containers[0]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: container.Name, Image: container.Image, State: corev1.ContainerState{Terminated: &end},
	}}
	if err := r.Hub.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("recording the outcome of pod %s: %w", pod.Name, err)
	}
	return CleanPodDir(r.podDir(pod))
}

// deleteTerminatingPod completes the deletion of a pod.
func (r *Runner) deleteTerminatingPod(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil {
		return nil
	}
	return r.Hub.Delete(ctx, pod, client.GracePeriodSeconds(0))
}
