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
	"hotspare.io/hotspare/internal/install/scrub"
)

// seen is what a Job and its pods tell.
type seen struct {
	name   string
	exists bool
	// ended since endedAt; late: because it took too long.
	ended   bool
	endedAt time.Time
	late    bool
	// message is what the Job says of a failure, last what its last pod said.
	message, last string
	// living is how many pods have not ended, also of a Job that is gone, alive their names.
	living int
	alive  []string
	// trouble is what keeps a pod from beginning, as fault.Wait.
	trouble error
}

// look reads a Job and its pods. What has come of it stands in the state.
func (w work) look(ctx context.Context, v verb) (seen, error) {
	job, names, err := w.find(ctx, v)
	if err != nil {
		return seen{}, err
	}
	s := seen{name: names[0], exists: job != nil}
	if job == nil {
		job = &batchv1.Job{}
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed {
			continue
		}
		s.ended, s.endedAt, s.message = true, c.LastTransitionTime.Time, c.Message
		s.late = c.Reason == batchv1.JobReasonDeadlineExceeded
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
		if over(pod) {
			s.last = lastWords(pod)
			continue
		}
		s.living++
		s.alive = append(s.alive, pod.Name)
		if why := hindrance(pod); why != "" {
			s.trouble = &install.NotLaunchedError{Err: fault.Waiting(poll, "%s", why)}
		}
	}
	return s, nil
}

func over(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// wait is fault.Wait with what hinders the Job, or else what it does.
func (s seen) wait(does string) error {
	if s.trouble != nil {
		return s.trouble
	}
	return fault.Waiting(poll, "Job %s %s", s.name, does)
}

// why says why a Job ended without a word in the state.
func (s seen) why() string {
	why := "it ended and left no word of what came of it"
	if s.message != "" {
		why = strings.TrimSuffix(s.message, ".")
	}
	text := fmt.Sprintf("Job %s failed: %s", s.name, why)
	if s.last != "" {
		text += "; its last pod said: " + s.last
	}
	return text
}

// logged is a line of an installer's log. What it says matters, not when, nor how loud.
var logged = regexp.MustCompile(`^(?:time=\S+ )?level=\S+ msg=("(?:[^"\\]|\\.)*")$`)

// said is what the last line of a log says.
func said(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if parts := logged.FindStringSubmatch(line); parts != nil {
		if text, err := strconv.Unquote(parts[1]); err == nil {
			line = text
		}
	}
	return scrub.Text(line)
}

// maxWords bounds what is repeated of a pod's last words.
const maxWords = 500

// lastWords are the last line that a pod left.
func lastWords(pod corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if end := c.State.Terminated; end != nil && end.Message != "" {
			words := said(end.Message)
			return strings.ToValidUTF8(words[:min(len(words), maxWords)], "")
		}
	}
	return ""
}

// pulls are what a kubelet says while it cannot get an image. It alternates, and the
// message should not.
var pulls = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}

// broken are what it says of a container that cannot be made.
var broken = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// hindrance is what keeps a pod from beginning, and what to do about it; "" if nothing does.
func hindrance(pod corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return fmt.Sprintf("pod %s finds no node: %s", pod.Name, c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		wait := c.State.Waiting
		switch {
		case wait == nil:
		case slices.Contains(pulls, wait.Reason):
			return fmt.Sprintf("pod %s cannot pull image %s: see that it exists and that the pull secret reaches it", pod.Name, c.Image)
		case slices.Contains(broken, wait.Reason):
			return fmt.Sprintf("pod %s cannot begin: %s", pod.Name, scrub.Text(wait.Message))
		}
	}
	return ""
}

// drop deletes a Job and lets its pods end.
func (w work) drop(ctx context.Context, v verb) error {
	job, _, err := w.find(ctx, v)
	if err != nil || job == nil {
		return err
	}
	err = w.hub.Delete(ctx, job, client.PropagationPolicy("Background"), client.Preconditions{UID: &job.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}

// ofInfraID selects what makes what an infraID marks.
func ofInfraID(p install.Place, infraID string) []client.ListOption {
	return []client.ListOption{client.InNamespace(p.Cluster.Namespace), client.MatchingLabels{hivev1.LabelInfraID: labelValue(infraID)}}
}

// stop ends the Jobs that make what an infraID marks. Those that have ended are left
// for people to read.
func (e *Executor) stop(ctx context.Context, p install.Place, infraID string) error {
	var jobs batchv1.JobList
	if err := e.hub.List(ctx, &jobs, ofInfraID(p, infraID)...); err != nil {
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

// silent returns nil when no pod makes anything of an infraID any more.
func (e *Executor) silent(ctx context.Context, p install.Place, infraID string) error {
	var pods corev1.PodList
	if err := e.hub.List(ctx, &pods, ofInfraID(p, infraID)...); err != nil {
		return fmt.Errorf("listing the pods of %s: %w", infraID, err)
	}
	for _, pod := range pods.Items {
		if !over(pod) {
			return fault.Waiting(poll, "pod %s, which makes %s, has not ended yet; if its node is gone for good, delete the pod by force", pod.Name, infraID)
		}
	}
	return nil
}
