package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// jobAction is the next action for a Job.
type jobAction string

const (
	actionNone      jobAction = "leave"
	actionCreatePod jobAction = "another pod"
	actionComplete  jobAction = "complete"
	actionFail      jobAction = "fail"
	actionTimeOut   jobAction = "fail: deadline exceeded"
)

// decideJobAction decides the next action for a Job from its pods. A failed pod is replaced
// immediately: installer pods fail when they are interrupted.
func decideJobAction(job *batchv1.Job, pods []corev1.Pod, now time.Time) jobAction {
	finished := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
	if finished || job.DeletionTimestamp != nil {
		return actionNone
	}
	active, failed := 0, 0
	for _, p := range pods {
		switch p.Status.Phase {
		case corev1.PodSucceeded:
			return actionComplete
		case corev1.PodFailed:
			failed++
		default:
			active++
		}
	}
	start, limit := job.Status.StartTime, job.Spec.ActiveDeadlineSeconds
	switch {
	case start != nil && limit != nil && now.Sub(start.Time) > time.Duration(*limit)*time.Second:
		return actionTimeOut
	case failed > int(ptr.Deref(job.Spec.BackoffLimit, 6)):
		return actionFail
	case active > 0:
		return actionNone
	default:
		return actionCreatePod
	}
}

// syncJob does for a Job what a Job controller does.
func (r *Runner) syncJob(ctx context.Context, job *batchv1.Job, all []corev1.Pod) error {
	var pods []corev1.Pod
	for _, p := range all {
		if metav1.IsControlledBy(&p, job) {
			pods = append(pods, p)
		}
	}
	switch decideJobAction(job, pods, r.Clock.Now()) {
	case actionCreatePod:
		return r.createPod(ctx, job)
	case actionComplete:
		return r.finishJob(ctx, job, "", "")
	case actionFail:
		return r.finishJob(ctx, job, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit")
	case actionTimeOut:
		var errs []error
		alive := false
		for i := range pods {
			if isPodFinished(&pods[i]) {
				continue
			}
			alive = true
			errs = append(errs, ignoreRaceErrors(r.Hub.Delete(ctx, &pods[i])))
		}
		if alive {
			return errors.Join(errs...) // a Job has failed only when its pods have ended
		}
		return r.finishJob(ctx, job, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline")
	}
	return nil
}

// createPod creates a pod for a Job.
func (r *Runner) createPod(ctx context.Context, job *batchv1.Job) error {
	if job.Status.StartTime == nil {
		before := job.DeepCopy()
		job.Status.StartTime, job.Status.Active = ptr.To(metav1.NewTime(r.Clock.Now())), 1
		if err := r.Hub.Status().Patch(ctx, job, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("recording that Job %s has started: %w", job.Name, err)
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name + "-" + utilrand.String(5), Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	for key, value := range job.Spec.Template.Labels {
		pod.Labels[key] = value
	}
	pod.Labels[batchv1.JobNameLabel], pod.Labels[hivev1.LabelInstaller] = job.Name, job.Labels[hivev1.LabelInstaller]
	pod.Labels["job-name"] = job.Name // the older name of the label; clients of Hive select by it
	pod.Spec.NodeName = nodeName
	if err := r.Hub.Create(ctx, pod); err != nil {
		return fmt.Errorf("creating a pod of Job %s: %w", job.Name, err)
	}
	return nil
}

// finishJob ends a Job. An empty reason means success.
func (r *Runner) finishJob(ctx context.Context, job *batchv1.Job, reason, message string) error {
	before := job.DeepCopy()
	now := metav1.NewTime(r.Clock.Now())
	job.Status.Active = 0
	first, second := batchv1.JobFailureTarget, batchv1.JobFailed
	if reason == "" {
		first, second = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	for _, typ := range []batchv1.JobConditionType{first, second} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: typ, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: now, LastProbeTime: now,
		})
	}
	if err := r.Hub.Status().Patch(ctx, job, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("recording the outcome of Job %s: %w", job.Name, err)
	}
	return nil
}
