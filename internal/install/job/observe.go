package job

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/redact"
)

// jobStatus is the observed status of a Job and its pods.
type jobStatus struct {
	name   string
	exists bool
	// ended is true since endedAt; late means that the Job exceeded its deadline.
	ended    bool
	endedAt  time.Time
	timedOut bool
	// message is the Job's failure message, lastPodMessage the message of its last pod.
	message, lastPodMessage string
	// livePods is the number of pods that have not ended, including those of a deleted Job; alive
	// lists their names.
	livePods     int
	livePodNames []string
	// launchError says why a pod cannot start, as fault.Wait.
	launchError error
}

// observeJob reads a Job and its pods. The outcome of the Job is in the state, not here.
func (w operation) observeJob(ctx context.Context, v verb) (jobStatus, error) {
	job, names, err := w.findJob(ctx, v)
	if err != nil {
		return jobStatus{}, err
	}
	s := jobStatus{name: names[0], exists: job != nil}
	if job == nil {
		job = &batchv1.Job{}
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed {
			continue
		}
		s.ended, s.endedAt, s.message = true, c.LastTransitionTime.Time, c.Message
		s.timedOut = c.Reason == batchv1.JobReasonDeadlineExceeded
	}
	var pods corev1.PodList
	ofJob, err := labels.NewRequirement(batchv1.JobNameLabel, selection.In, names)
	if err != nil {
		return s, fmt.Errorf("selecting the pods of Job %s: %w", s.name, err)
	}
	err = w.hub.List(ctx, &pods, client.InNamespace(w.Key.Namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*ofJob)})
	if err != nil {
		return s, fmt.Errorf("listing the pods of Job %s: %w", s.name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, pod := range pods.Items {
		if isPodFinished(pod) {
			s.lastPodMessage = lastPodMessage(pod)
			continue
		}
		s.livePods++
		s.livePodNames = append(s.livePodNames, pod.Name)
		if why := findLaunchProblem(pod); why != "" {
			s.launchError = &install.NotLaunchedError{Err: fault.NewWait(pollInterval, "%s", why)}
		}
	}
	return s, nil
}

func isPodFinished(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// newWaitingError returns fault.Wait with the problem that blocks the Job, or else with what the
// Job does.
func (s jobStatus) newWaitingError(does string) error {
	if s.launchError != nil {
		return s.launchError
	}
	return fault.NewWait(pollInterval, "Job %s %s", s.name, does)
}

// failureMessage says why a Job ended without an outcome in the state.
func (s jobStatus) failureMessage() string {
	why := "it ended without reporting an outcome"
	if s.message != "" {
		why = strings.TrimSuffix(s.message, ".")
	}
	text := fmt.Sprintf("Job %s failed: %s", s.name, why)
	if s.lastPodMessage != "" {
		text += "; the last message of its pod: " + s.lastPodMessage
	}
	return text
}

// logLinePattern matches a line of an installer's log. Only the message is used, not the time and
// the level.
var logLinePattern = regexp.MustCompile(`^(?:time=\S+ )?level=\S+ msg=("(?:[^"\\]|\\.)*")$`)

// lastLogMessage returns the message of the last line of a log.
func lastLogMessage(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if parts := logLinePattern.FindStringSubmatch(line); parts != nil {
		if text, err := strconv.Unquote(parts[1]); err == nil {
			line = text
		}
	}
	return redact.Text(line)
}

// maxPodMessage bounds how much of a pod's last message is repeated.
const maxPodMessage = 500

// lastPodMessage returns the last line that a pod left.
func lastPodMessage(pod corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if end := c.State.Terminated; end != nil && end.Message != "" {
			words := lastLogMessage(end.Message)
			return strings.ToValidUTF8(words[:min(len(words), maxPodMessage)], "")
		}
	}
	return ""
}

// imagePullReasons are the reasons that a kubelet reports while it cannot pull an image. The
// kubelet alternates between them; the message should not.
var imagePullReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}

// containerErrorReasons are the reasons that a kubelet reports for a container that it cannot
// create.
var containerErrorReasons = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// findLaunchProblem returns why a pod cannot start and what to do about it; "" if nothing blocks
// it.
func findLaunchProblem(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		wait := c.State.Waiting
		switch {
		case wait == nil:
		case slices.Contains(imagePullReasons, wait.Reason):
			return fmt.Sprintf("pod %s cannot pull image %s: check that the image exists and that the pull secret gives access to it", pod.Name, c.Image)
		case slices.Contains(containerErrorReasons, wait.Reason):
			return fmt.Sprintf("pod %s cannot start: %s", pod.Name, redact.Text(wait.Message))
		}
	}
	return ""
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
		if !isPodFinished(pod) {
			return fault.NewWait(pollInterval, "pod %s, which creates %s, has not ended yet; if its node is permanently lost, delete the pod by force", pod.Name, infraID)
		}
	}
	return nil
}
