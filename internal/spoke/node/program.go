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

// programImage and the name of a command are the image of a pod that runs as a process
// of this program, without a container around it.
const programImage = "hotspare.io/local/"

// commands are those that pods may run. Who can make pods in a local cluster acts
// through them on this computer: each keeps to the pod's folder (see PodDir).
var commands = []string{"agent"}

// PodDir is an environment variable: the folder of the pod whose process this is. It may
// read no other files that it is told to.
const PodDir = "HOTSPARE_POD_DIR"

// isProcessPod says whether a pod is to be a process.
func isProcessPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return strings.HasPrefix(c.Image, programImage)
	})
}

// parsePodCommand returns what a pod runs, with the files of its volumes where they really are.
func parsePodCommand(pod *corev1.Pod, dir string) ([]string, []string, error) {
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 {
		return nil, nil, fmt.Errorf("a pod with an image of %s has one container and no other", programImage)
	}
	c := pod.Spec.Containers[0]
	name := strings.TrimPrefix(c.Image, programImage)
	if !slices.Contains(commands, name) {
		return nil, nil, fmt.Errorf("there is no image %s: choose one of %s", c.Image, programImage+strings.Join(commands, ", "+programImage))
	}
	found := mountPathReplacer(c.VolumeMounts, dir)
	args := []string{name}
	for _, a := range c.Args {
		args = append(args, found.Replace(a))
	}
	var env []string
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			return nil, nil, fmt.Errorf("variable %s has valueFrom: local machines know value only", e.Name)
		}
		env = append(env, e.Name+"="+found.Replace(e.Value))
	}
	return args, env, nil
}

// mountPathReplacer replaces where volumes are mounted by where they are.
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

// How long a process that has ended waits for its next start: as a kubelet has it, but
// for the first times, in which somebody may be looking.
const (
	firstBackoff = time.Second
	lastBackoff  = 5 * time.Minute
	// backoffResetAfter is how long a process runs to begin anew with the first.
	backoffResetAfter = time.Minute
)

// nextRestartBackoff is what comes after last, if the process ran so long.
func nextRestartBackoff(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= backoffResetAfter {
		return firstBackoff
	}
	return min(2*last, lastBackoff)
}

// shouldRestart says whether a pod's process is to be started again after its end.
func shouldRestart(policy corev1.RestartPolicy, code int32) bool {
	return policy != corev1.RestartPolicyNever && !(policy == corev1.RestartPolicyOnFailure && code == 0)
}

// processRun is one process of a pod.
type processRun struct {
	pid             int
	restarts        int32
	lastTermination *corev1.ContainerStateTerminated // how the one before ended
}

// restartCount is how many there have been before, by what the pod's status says.
func restartCount(pod *corev1.Pod) int32 {
	for _, s := range pod.Status.ContainerStatuses {
		if s.ContainerID != "" {
			return s.RestartCount + 1
		}
	}
	return 0
}

// processStatus is the status of a pod whose process runs since then.
func processStatus(pod *corev1.Pod, l processRun, since metav1.Time) *corev1.PodStatus {
	s := runningStatus(pod, since)
	if pod.Status.StartTime != nil {
		s.StartTime = pod.Status.StartTime
	}
	s.PodIP, s.PodIPs = address, []corev1.PodIP{{IP: address}} // it is on the host's network
	c := &s.ContainerStatuses[0]
	c.RestartCount = l.restarts
	c.ContainerID = fmt.Sprintf("process://%d", l.pid)
	if l.lastTermination != nil {
		c.LastTerminationState = corev1.ContainerState{Terminated: l.lastTermination}
	}
	return s
}

// waitingStatus is the status of a pod whose process does not run, and will.
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

// exitedStatus is the status of a pod whose process has ended for good.
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

// processExitState is how a process ended. As in a shell, that of a signal is 128 and its number.
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
