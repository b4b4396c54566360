package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

type edit func(*corev1.Pod)

func pod(edits ...edit) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "1"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, e := range edits {
		e(p)
	}
	return p
}

func ofJob(p *corev1.Pod) {
	yes := true
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", Controller: &yes}}
}

func deleted(p *corev1.Pod) { p.DeletionTimestamp = &noon }

func phase(phase corev1.PodPhase) edit { return func(p *corev1.Pod) { p.Status.Phase = phase } }

func since(d time.Duration) edit {
	return func(p *corev1.Pod) { p.Status = *runningStatus(p, metav1.NewTime(noon.Add(-d))) }
}

func calledUnready(p *corev1.Pod) {
	setPodReady(&p.Status, corev1.ConditionFalse, "NodeNotReady", noon)
}

func restarts(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }

// describe returns the step as text.
func describe(s step) string {
	switch {
	case s.remove:
		return "remove"
	case s.wait > 0:
		return fmt.Sprintf("wait %v", s.wait)
	case s.status == nil:
		return "nothing"
	}
	var conditions []string
	for _, c := range s.status.Conditions {
		conditions = append(conditions, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	return fmt.Sprintf("%s %s", s.status.Phase, strings.Join(conditions, " "))
}

func TestNext(t *testing.T) {
	const up = "Running Initialized=True ContainersReady=True Ready=True"
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a new pod runs":                            {pod(), up},
		"a running pod is left alone":               {pod(since(time.Hour)), "nothing"},
		"one that was called unready is ready":      {pod(since(time.Hour), calledUnready), up},
		"one that is to go goes":                    {pod(since(time.Hour), deleted), "remove"},
		"one goes that never ran":                   {pod(deleted), "remove"},
		"one that has failed stays failed":          {pod(phase(corev1.PodFailed)), "nothing"},
		"a Job's pod runs first":                    {pod(ofJob), up},
		"it takes its moment":                       {pod(ofJob, since(jobLength/4)), "wait 750ms"},
		"then it succeeds":                          {pod(ofJob, since(jobLength)), "Succeeded Initialized=True ContainersReady=False Ready=False"},
		"it does so when it was called unready":     {pod(ofJob, since(time.Hour), calledUnready), "Succeeded Initialized=True ContainersReady=False Ready=False"},
		"then it is left alone":                     {pod(ofJob, phase(corev1.PodSucceeded)), "nothing"},
		"a Job's pod that others started ends, too": {pod(ofJob, phase(corev1.PodRunning)), "Succeeded ContainersReady=False Ready=False"},
		"one that restarts never ends":              {pod(ofJob, restarts, since(time.Hour)), "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.pod.DeepCopy()
			if got := describe(decidePodStep(c.pod, noon)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if !equality.Semantic.DeepEqual(before, c.pod) {
				t.Error("the pod was changed, which others share")
			}
		})
	}
}

func TestContainers(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	p := pod(func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}}
	})
	s := runningStatus(p, noon)
	if s.InitContainerStatuses[0].State.Terminated == nil || s.InitContainerStatuses[1].State.Running == nil {
		t.Errorf("an init container has ended, a sidecar runs: %v", s.InitContainerStatuses)
	}
	p.Status = *s
	s = succeededStatus(p, metav1.NewTime(noon.Add(time.Second)))
	for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
		if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			t.Errorf("%s has not ended well: %v", c.Name, c.State)
		}
	}
	if got := s.ContainerStatuses[0].State.Terminated; !got.StartedAt.Equal(&noon) {
		t.Errorf("it forgot when it started: %v", got)
	}
}

func TestIP(t *testing.T) {
	a, b := pod(), pod(func(p *corev1.Pod) { p.UID = "2" })
	host := pod(func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	if podIPAddress(a) == podIPAddress(b) || !strings.HasPrefix(podIPAddress(a), "10.1") || podIPAddress(host) != "127.0.0.1" {
		t.Errorf("%s %s %s", podIPAddress(a), podIPAddress(b), podIPAddress(host))
	}
}
