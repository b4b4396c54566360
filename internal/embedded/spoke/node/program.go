package node

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// programImage is the prefix of the image of a pod that runs as a process of this program, without
// a container. The name of a command follows it.
const programImage = "hotspare.io/local/"

// commands are the commands that pods may run. A user who can create pods in a local cluster can
// use these commands to act on this computer, so each command only accesses the pod's folder (see
// PodDir).
var commands = []string{"agent"}

// PodDir is an environment variable with the folder of the pod that this process runs for. The
// process may not read files outside of it, even if it is configured to.
const PodDir = "HOTSPARE_POD_DIR"

// isProcessPod reports whether a pod runs as a process.
func isProcessPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return strings.HasPrefix(c.Image, programImage)
	})
}

// parsePodCommand returns the arguments and the environment of a pod's process, with mount paths
// replaced by the real paths of its volumes.
func parsePodCommand(pod *corev1.Pod, dir string) ([]string, []string, error) {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 {
		return nil, nil, fmt.Errorf("a pod with an image of %s has exactly one container", programImage)
	}
	c := pod.Spec.Containers[0]
	name := strings.TrimPrefix(c.Image, programImage)
	if !slices.Contains(commands, name) {
		return nil, nil, fmt.Errorf("image %s does not exist: choose one of %s", c.Image, programImage+strings.Join(commands, ", "+programImage))
	}
	found := mountPathReplacer(c.VolumeMounts, dir)
	args := []string{name}
	for _, a := range c.Args {
		args = append(args, found.Replace(a))
	}
	var env []string
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			return nil, nil, fmt.Errorf("variable %s has valueFrom: local machines support only value", e.Name)
		}
		env = append(env, e.Name+"="+found.Replace(e.Value))
	}
	return args, env, nil
}

// mountPathReplacer returns a replacer of the mount paths of volumes by their real paths.
func mountPathReplacer(mounts []corev1.VolumeMount, dir string) *strings.Replacer {
	mounts = slices.Clone(mounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	var pairs []string
	for _, m := range mounts {
		pairs = append(pairs, strings.TrimSuffix(m.MountPath, "/")+"/", podVolumePath(dir, m.Name)+"/")
	}
	return strings.NewReplacer(pairs...)
}

func podVolumePath(dir, volume string) string { return filepath.Join(dir, "volumes", volume) }

// Backoff before a process that has ended is started again: as in a kubelet, but with shorter first
// delays, because a user may be watching.
const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
	// backoffResetAfter is how long a process must run for its backoff to be reset to firstBackoff.
	backoffResetAfter = time.Minute
)

// nextRestartBackoff returns the backoff that follows last for a process that ran for the duration
// ran.
func nextRestartBackoff(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= backoffResetAfter {
		return firstBackoff
	}
	return min(2*last, lastBackoff)
}

// shouldRestart reports whether a pod's process should be started again after it has ended.
func shouldRestart(policy corev1.RestartPolicy, code int32) bool {
	return policy != corev1.RestartPolicyNever && !(policy == corev1.RestartPolicyOnFailure && code == 0)
}

// processRun is one run of a pod's process.
type processRun struct {
	pid             int
	restarts        int32
	lastTermination *corev1.ContainerStateTerminated // how the previous run ended
}

// restartCount returns the number of earlier runs, according to the pod's status.
func restartCount(pod *corev1.Pod) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if s.ContainerID != "" {
			return s.RestartCount + 1
		}
	}
	return 0
}

// processStatus returns the status of a pod whose process has been running since the given time.
func processStatus(pod *corev1.Pod, l processRun, since metav1.Time) *corev1.PodStatus {
	s := runningStatus(pod, since)
	if pod.Status.StartTime != nil {
		s.StartTime = pod.Status.StartTime
	}
	s.PodIP, s.PodIPs = address, []corev1.PodIP{{IP: address}} // the process uses the host network
	c := &s.ContainerStatuses[0]
	c.RestartCount = l.restarts
	c.ContainerID = fmt.Sprintf("process://%d", l.pid)
	if l.lastTermination != nil {
		c.LastTerminationState = corev1.ContainerState{Terminated: l.lastTermination}
	}
	return s
}

// waitingStatus returns the status of a pod whose process is not running yet.
func waitingStatus(pod *corev1.Pod, l processRun, reason, message string, now metav1.Time) *corev1.PodStatus {
	s := processStatus(pod, l, now)
	c := &s.ContainerStatuses[0]
	c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.Ready, c.Started = false, new(bool)
	if l.pid == 0 {
		c.ContainerID = ""
		if l.restarts == 0 {
			s.Phase = corev1.PodPending
		}
	}
	setPodReady(s, corev1.ConditionFalse, "ContainersNotReady", now)
	return s
}

// exitedStatus returns the status of a pod whose process has ended and is not started again.
func exitedStatus(pod *corev1.Pod, l processRun, now metav1.Time) *corev1.PodStatus {
	s := processStatus(pod, l, now)
	s.Phase = corev1.PodSucceeded
	if l.lastTermination.ExitCode != 0 {
		s.Phase = corev1.PodFailed
	}
	c := &s.ContainerStatuses[0]
	c.LastTerminationState = corev1.ContainerState{}
	c.State = corev1.ContainerState{Terminated: l.lastTermination}
	c.Ready, c.Started = false, new(bool)
	setPodReady(s, corev1.ConditionFalse, "PodCompleted", now)
	return s
}

// processExitState returns how a process ended. As in a shell, the exit code for a signal is 128
// plus its number.
func processExitState(cmd *exec.Cmd, from, to metav1.Time) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{StartedAt: from, FinishedAt: to, Reason: "Completed", Message: "see machine.log"}
	state := cmd.ProcessState
	if state == nil {
		t.ExitCode, t.Reason = 128, "ContainerCannotRun"
		return t
	}
	t.ExitCode = int32(state.ExitCode())
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		t.Signal = int32(w.Signal())
		t.ExitCode = 128 + t.Signal
	}
	if t.ExitCode != 0 {
		t.Reason = "Error"
	}
	return t
}
