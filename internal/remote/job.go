package remote

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/internal/bootstrap"
)

// runJob runs a Job, and reports whether it is complete. A Job that has ended keeps its name, so that it does not
// run again, and loses its rights and its environment.
func (a manifestApplier) runJob(ctx context.Context, j bootstrap.Job) bootstrap.Outcome {
	job, err := a.getJob(ctx, j.Name)
	if err != nil {
		return bootstrap.Outcome{Message: "the cluster does not answer: " + describeNoAnswer(err)}
	}
	if job == nil {
		// Once the Job exists, nothing is applied again: it begins only when it has its rights and its environment.
		last := len(j.Manifests) - 1
		for _, part := range [][]bootstrap.Manifest{j.Manifests[:last], j.Manifests[last:]} {
			if applied := a.applyManifests(ctx, part); !applied.Done {
				return applied
			}
		}
		return bootstrap.Outcome{Message: "waiting for Job " + j.Name + ": it has not begun"}
	}
	complete, failure := judgeJob(job)
	if complete || failure != "" {
		if err := a.deleteObjects(ctx, j.Temporary); err != nil {
			return bootstrap.Outcome{Message: "the rights of Job " + j.Name + " cannot be removed: " + describeNoAnswer(err)}
		}
	}
	switch {
	case complete:
		return bootstrap.Outcome{Done: true}
	case failure != "":
		return bootstrap.Outcome{Failed: true, Final: true, Message: fmt.Sprintf("Job %s has failed: %s%s", j.Name, failure, a.describeJobPod(ctx, j.Name))}
	default:
		return bootstrap.Outcome{Message: fmt.Sprintf("waiting for Job %s%s", j.Name, a.describeJobPod(ctx, j.Name))}
	}
}

// getJob returns a Job; nil if there is none.
func (a manifestApplier) getJob(ctx context.Context, name string) (*batchv1.Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var job batchv1.Job
	err := a.readJSON(ctx, "/apis/batch/v1/namespaces/"+bootstrap.JobNamespace+"/jobs/"+name, &job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return &job, err
}

// judgeJob reports whether a Job is complete, and why it has failed; "" if it has not.
func judgeJob(job *batchv1.Job) (complete bool, failure string) {
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return true, ""
		case c.Type == batchv1.JobFailed:
			return false, c.Reason
		}
	}
	return false, ""
}

// hasFailedForGood reports whether an object that has failed is a Job or Pod that never runs again.
func hasFailedForGood(stored *unstructured.Unstructured) bool { return judgeRun(stored).final }

// judgeRun returns whether a Job or Pod has succeeded; other kinds have no end.
func judgeRun(stored *unstructured.Unstructured) manifestState {
	switch stored.GetKind() {
	case "Job":
		var job batchv1.Job
		if err := convertObject(stored, &job); err != nil {
			return manifestState{waiting: "its status cannot be read"}
		}
		complete, failure := judgeJob(&job)
		switch {
		case failure != "":
			return manifestState{failed: "it has failed: " + failure, final: true}
		case !complete:
			return manifestState{waiting: "it is not complete"}
		}
	case "Pod":
		switch phase, _, _ := unstructured.NestedString(stored.Object, "status", "phase"); corev1.PodPhase(phase) {
		case corev1.PodFailed:
			return manifestState{failed: "it has failed", final: true}
		case corev1.PodSucceeded:
		default:
			return manifestState{waiting: "it has not ended"}
		}
	}
	return manifestState{}
}

// describeJobPod says what the newest pod of a Job does, or how it has ended; "" if that is not known.
func (a manifestApplier) describeJobPod(ctx context.Context, job string) string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pods, err := a.core.Pods(bootstrap.JobNamespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job})
	if err != nil || len(pods.Items) == 0 {
		return ""
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	switch newest.Status.Phase {
	case corev1.PodRunning:
		return ": its pod runs"
	case corev1.PodFailed:
		return ": its last pod has ended with " + describeEnd(&newest)
	case corev1.PodSucceeded:
		return ": its pod has ended"
	default:
		return ": its pod does not run yet" + describePending(&newest)
	}
}

// deleteObjects deletes objects, in order. Those that do not exist are deleted.
func (a manifestApplier) deleteObjects(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if err := a.deleteObject(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func (a manifestApplier) deleteObject(ctx context.Context, u *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resource, problem, err := a.findManifestResource(ctx, u)
	if err != nil || problem != "" {
		return err
	}
	err = a.core.RESTClient().Delete().AbsPath(buildObjectPath(u.GetAPIVersion(), resource, u.GetNamespace(), u.GetName())).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", describeManifest(u), err)
	}
	return nil
}
