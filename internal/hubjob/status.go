package hubjob

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

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/redact"
)

// PollInterval is how often a Job is checked. A change of the state triggers a reconcile; a Job
// that fails without writing the state does not.
const PollInterval = 10 * time.Second

// Status is the observed status of a Job and its pods. The outcome of the work is in the state Secret,
// not here.
type Status struct {
	Name   string
	Exists bool
	// Ended is true since EndedAt; TimedOut means that the Job exceeded its deadline.
	Ended    bool
	EndedAt  time.Time
	TimedOut bool
	// Message is the Job's failure message, LastPodMessage the message of its last pod.
	Message, LastPodMessage string
	// LivePods are the names of the pods that have not ended, including those of a deleted Job.
	LivePods []string
	// ImageID is the ID of the image that a pod runs or has run; empty if it is unknown.
	ImageID string
	// LaunchError is an *install.NotLaunchedError, which says why a pod cannot start; or nil.
	LaunchError error
}

// Observe returns the status of a Job and of the pods of all Jobs with the given names. job is nil if
// none of these Jobs exists; the status then has the first name.
func Observe(ctx context.Context, hub client.Reader, namespace string, job *batchv1.Job, names []string) (Status, error) {
	s := Status{Name: names[0], Exists: job != nil}
	if job != nil {
		s.readConditions(job)
	}
	ofJob, err := labels.NewRequirement(batchv1.JobNameLabel, selection.In, names)
	if err != nil {
		return s, fmt.Errorf("selecting the pods of Job %s: %w", s.Name, err)
	}
	var pods corev1.PodList
	err = hub.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*ofJob)})
	if err != nil {
		return s, fmt.Errorf("listing the pods of Job %s: %w", s.Name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for _, pod := range pods.Items {
		s.readPod(pod)
	}
	return s, nil
}

func (s *Status) readConditions(job *batchv1.Job) {
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed {
			continue
		}
		s.Ended, s.EndedAt, s.Message = true, c.LastTransitionTime.Time, c.Message
		s.TimedOut = c.Reason == batchv1.JobReasonDeadlineExceeded
	}
}

func (s *Status) readPod(pod corev1.Pod) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.ImageID != "" {
			s.ImageID = c.ImageID
		}
	}
	if IsPodFinished(pod) {
		s.LastPodMessage = lastPodMessage(pod)
		return
	}
	s.LivePods = append(s.LivePods, pod.Name)
	if why := findLaunchProblem(pod); why != "" {
		s.LaunchError = &install.NotLaunchedError{Err: fault.NewWait(PollInterval, "%s", why)}
	}
}

// IsPodFinished reports whether all containers of a pod have ended.
func IsPodFinished(p corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// NewWaitingError returns fault.Wait with the problem that blocks the Job, or else with what the
// Job does.
func (s Status) NewWaitingError(does string) error {
	if s.LaunchError != nil {
		return s.LaunchError
	}
	return fault.NewWait(PollInterval, "Job %s %s", s.Name, does)
}

// FailureMessage says why a Job ended without an outcome in the state.
func (s Status) FailureMessage() string {
	why := "it ended without reporting an outcome"
	if s.Message != "" {
		why = strings.TrimSuffix(s.Message, ".")
	}
	text := fmt.Sprintf("Job %s failed: %s", s.Name, why)
	if s.LastPodMessage != "" {
		text += "; the last message of its pod: " + s.LastPodMessage
	}
	return text
}

// logLinePattern matches a line of an installer's log. Only the message is used, not the time and
// the level.
var logLinePattern = regexp.MustCompile(`^(?:time=\S+ )?level=\S+ msg=("(?:[^"\\]|\\.)*")$`)

// LastLogMessage returns the message of the last line of a log, without secrets.
func LastLogMessage(log string) string {
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

// lastPodMessage returns the last line that a pod left, or the reason why the kernel or a kubelet ended
// it.
func lastPodMessage(pod corev1.Pod) string {
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		switch end := c.State.Terminated; {
		case end == nil:
		case end.Message != "":
			words := LastLogMessage(end.Message)
			return strings.ToValidUTF8(words[:min(len(words), maxPodMessage)], "")
		case end.Reason == "OOMKilled":
			return "it needed more memory than its limit (OOMKilled)"
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
