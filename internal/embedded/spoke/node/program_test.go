package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// agentPod returns a pod that runs as a process, with a volume and the volume of its service
// account.
func agentPod(edits ...edit) *corev1.Pod {
	return pod(append([]edit{func(p *corev1.Pod) {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		p.Spec.Volumes = []corev1.Volume{
			{Name: "hub", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "hub"}}},
		}
		p.Spec.Containers = []corev1.Container{{
			Name: "c", Image: "hotspare.io/local/agent", Args: []string{"--file=/etc/hub/kubeconfig", "--name=x", "/etc/hubs/other"},
			Env:          []corev1.EnvVar{{Name: "CONFIG", Value: "/etc/hub/kubeconfig"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "hub", MountPath: "/etc/hub"}},
		}}
	}}, edits...)...)
}

func image(name string) edit { return func(p *corev1.Pod) { p.Spec.Containers[0].Image = name } }

func TestWhichPodsAreProcesses(t *testing.T) {
	if !isProcessPod(agentPod()) || isProcessPod(pod()) || isProcessPod(pod(image("example.com/hotspare.io/local/agent"))) {
		t.Error("those of hotspare.io/local/ are, and no others")
	}
}

func TestWhatAPodRuns(t *testing.T) {
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"files of volumes are where they are": {
			agentPod(),
			"[agent --file=/pods/1/volumes/hub/kubeconfig --name=x /etc/hubs/other] [CONFIG=/pods/1/volumes/hub/kubeconfig]",
		},
		"the longer mount counts": {
			agentPod(func(p *corev1.Pod) {
				p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "sub", MountPath: "/etc/hub/sub/"})
				p.Spec.Containers[0].Args = []string{"/etc/hub/sub/a", "/etc/hub/b"}
			}),
			"[agent /pods/1/volumes/sub/a /pods/1/volumes/hub/b] [CONFIG=/pods/1/volumes/hub/kubeconfig]",
		},
		"no other command is run":      {agentPod(image("hotspare.io/local/up")), "image hotspare.io/local/up does not exist: choose one of hotspare.io/local/agent"},
		"nor two words":                {agentPod(image("hotspare.io/local/agent up")), "does not exist: choose one of"},
		"nor one with a tag":           {agentPod(image("hotspare.io/local/agent:v1")), "does not exist: choose one of"},
		"nor another container beside": {agentPod(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{}) }), "has exactly one container"},
		"nor one before":               {agentPod(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{}} }), "has exactly one container"},
		"variables have values": {
			agentPod(func(p *corev1.Pod) { p.Spec.Containers[0].Env[0].ValueFrom = &corev1.EnvVarSource{} }),
			"variable CONFIG has valueFrom",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args, env, err := parsePodCommand(c.pod, "/pods/1")
			got := fmt.Sprint(args, " ", env)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBackoff(t *testing.T) {
	var got []string
	pause := time.Duration(0)
	for range 11 {
		pause = nextRestartBackoff(pause, time.Second)
		got = append(got, pause.String())
	}
	if want := "1s 2s 4s 8s 16s 32s 1m4s 2m8s 4m16s 5m0s 5m0s"; strings.Join(got, " ") != want {
		t.Errorf("it waits %v", got)
	}
	if pause = nextRestartBackoff(pause, backoffResetAfter); pause != firstBackoff {
		t.Errorf("after a minute it waits %v", pause)
	}
}

func TestWhoIsStartedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		policy corev1.RestartPolicy
		code   int32
		want   bool
	}{
		"always":                       {corev1.RestartPolicyAlways, 0, true},
		"on failure, when it failed":   {corev1.RestartPolicyOnFailure, 1, true},
		"on failure, when it did not":  {corev1.RestartPolicyOnFailure, 0, false},
		"never, even when it failed":   {corev1.RestartPolicyNever, 1, false},
		"as the default, which always": {"", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shouldRestart(c.policy, c.code); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// told returns a status as text.
func told(s *corev1.PodStatus) string {
	c := s.ContainerStatuses[0]
	state := "running"
	switch {
	case c.State.Waiting != nil:
		state = "waiting: " + c.State.Waiting.Reason
	case c.State.Terminated != nil:
		state = fmt.Sprintf("ended with %d", c.State.Terminated.ExitCode)
	}
	before := ""
	if l := c.LastTerminationState.Terminated; l != nil {
		before = fmt.Sprintf(", before with %d", l.ExitCode)
	}
	return fmt.Sprintf("%s, %s%s, ready %t, %d restarts, %s", s.Phase, state, before, c.Ready, c.RestartCount, c.ContainerID)
}

func TestWhatIsToldOfAProcess(t *testing.T) {
	failed := &corev1.ContainerStateTerminated{ExitCode: 137}
	fine := &corev1.ContainerStateTerminated{}
	for name, c := range map[string]struct {
		status *corev1.PodStatus
		want   string
	}{
		"it runs":                      {processStatus(agentPod(), processRun{pid: 7}, noon), "Running, running, ready true, 0 restarts, process://7"},
		"it runs again":                {processStatus(agentPod(), processRun{pid: 8, restarts: 1, lastTermination: failed}, noon), "Running, running, before with 137, ready true, 1 restarts, process://8"},
		"it cannot run yet":            {waitingStatus(agentPod(), processRun{}, "CreateContainerConfigError", "no Secret", noon), "Pending, waiting: CreateContainerConfigError, ready false, 0 restarts, "},
		"it waits for its next start":  {waitingStatus(agentPod(), processRun{pid: 7, restarts: 1, lastTermination: failed}, "CrashLoopBackOff", "", noon), "Running, waiting: CrashLoopBackOff, before with 137, ready false, 1 restarts, process://7"},
		"it has ended well for good":   {exitedStatus(agentPod(), processRun{pid: 7, lastTermination: fine}, noon), "Succeeded, ended with 0, ready false, 0 restarts, process://7"},
		"it has ended badly for good":  {exitedStatus(agentPod(), processRun{pid: 7, lastTermination: failed}, noon), "Failed, ended with 137, ready false, 0 restarts, process://7"},
		"its address is the machine's": {processStatus(agentPod(), processRun{pid: 7}, noon), "Running"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(c.status); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.status.PodIP != address {
				t.Errorf("its address is %s", c.status.PodIP)
			}
		})
	}
}

func TestRestartsAreCountedFromTheStatus(t *testing.T) {
	p := agentPod()
	if n := restartCount(p); n != 0 {
		t.Errorf("a new pod has had %d", n)
	}
	p.Status = *processStatus(p, processRun{pid: 7, restarts: 4}, noon)
	if n := restartCount(p); n != 5 {
		t.Errorf("one whose fifth process ended with the machine has had %d", n)
	}
}
