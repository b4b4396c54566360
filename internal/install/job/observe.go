package job

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/install"
)

// observeJob reads a Job and its pods. The outcome of the Job is in the state, not here.
func (w operation) observeJob(ctx context.Context, v verb) (hubjob.Status, error) {
	job, names, err := w.findJob(ctx, v)
	if err != nil {
		return hubjob.Status{}, err
	}
	return hubjob.Observe(ctx, w.hub, w.Key.Namespace, job, names)
}

// deleteJob deletes a Job and lets its pods end.
func (w operation) deleteJob(ctx context.Context, v verb) error {
	job, _, err := w.findJob(ctx, v)
	if err != nil || job == nil {
		return err
	}
	err = w.hub.Delete(ctx, job, client.PropagationPolicy("Background"), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}

// selectByInfraID selects the Jobs and pods that create what an infraID marks.
func selectByInfraID(p install.ClusterTarget, infraID string) []client.ListOption {
	return []client.ListOption{client.InNamespace(p.Cluster.Namespace), client.MatchingLabels{hivev1.LabelInfraID: infraIDLabelValue(infraID)}}
}

// stopRunningJobs deletes the running Jobs that create what an infraID marks. Jobs that have ended
// are kept for people to read.
func (e *Executor) stopRunningJobs(ctx context.Context, p install.ClusterTarget, infraID string) error {
	var jobs batchv1.JobList
	if err := e.hub.List(ctx, &jobs, selectByInfraID(p, infraID)...); err != nil {
		return fmt.Errorf("listing the Jobs of %s: %w", infraID, err)
	}
	for i := range jobs.Items {
		ended := slices.ContainsFunc(jobs.Items[i].Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
		})
		if ended {
			continue
		}
		err := e.hub.Delete(ctx, &jobs.Items[i], client.PropagationPolicy("Background"))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Job %s: %w", jobs.Items[i].Name, err)
		}
	}
	return nil
}

// confirmPodsEnded returns nil when no pod creates anything with an infraID any more.
func (e *Executor) confirmPodsEnded(ctx context.Context, p install.ClusterTarget, infraID string) error {
	var pods corev1.PodList
	if err := e.hub.List(ctx, &pods, selectByInfraID(p, infraID)...); err != nil {
		return fmt.Errorf("listing the pods of %s: %w", infraID, err)
	}
	for _, pod := range pods.Items {
		if !hubjob.IsPodFinished(pod) {
			return fault.NewWait(hubjob.PollInterval, "pod %s, which creates %s, has not ended yet; if its node is permanently lost, delete the pod by force", pod.Name, infraID)
		}
	}
	return nil
}
