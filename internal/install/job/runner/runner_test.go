package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/install/job/pod"
)

func TestJudge(t *testing.T) {
	now := time.Now()
	begun := func(ago time.Duration) *batchv1.Job {
		j := &batchv1.Job{Spec: batchv1.JobSpec{BackoffLimit: ptr.To(int32(1)), ActiveDeadlineSeconds: ptr.To(int64(60))}}
		j.Status.StartTime = ptr.To(metav1.NewTime(now.Add(-ago)))
		return j
	}
	ended := begun(0)
	ended.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		job  *batchv1.Job
		pods string
		want jobAction
	}{
		"a new Job gets a pod":             {&batchv1.Job{}, "", actionCreatePod},
		"one whose pod runs is left":       {begun(0), "Running", actionNone},
		"also when its pod waits":          {begun(0), "Pending", actionNone},
		"one whose pod succeeded is done":  {begun(0), "Failed Succeeded", actionComplete},
		"after a failure comes another":    {begun(0), "Failed", actionCreatePod},
		"after too many it fails":          {begun(0), "Failed Failed", actionFail},
		"one that takes too long is ended": {begun(2 * time.Minute), "Running", actionTimeOut},
		"one that ended is left":           {ended, "Failed", actionNone},
		"what succeeded late has not been": {begun(2 * time.Minute), "Succeeded", actionComplete},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []corev1.Pod
			for phase := range strings.FieldsSeq(c.pods) {
				pods = append(pods, corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPhase(phase)}})
			}
			if got := decideJobAction(c.job, pods, now); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestVariablesOfAPod(t *testing.T) {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "x"}
	r := &Runner{Hub: fake.NewClientBuilder().WithScheme(s).WithObjects(
		&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte("of the Secret")}},
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "of the ConfigMap"}},
	).Build()}
	ref := corev1.LocalObjectReference{Name: "x"}
	for name, c := range map[string]struct {
		from *corev1.EnvVarSource
		want string
	}{
		"a value":                {nil, "plain"},
		"a key of a Secret":      {&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "k"}}, "of the Secret"},
		"a key of a ConfigMap":   {&corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "k"}}, "of the ConfigMap"},
		"the pod's name":         {&corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}, "x"},
		"an optional one":        {&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "no", Optional: ptr.To(true)}}, "none"},
		"one that is not there":  {&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "no"}}, "error"},
		"what a node would know": {&corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			value, ok, err := r.resolveEnvVar(t.Context(), &corev1.Pod{ObjectMeta: meta}, corev1.EnvVar{Name: "A", Value: "plain", ValueFrom: c.from})
			switch {
			case err != nil:
				value = "error"
			case !ok:
				value = "none"
			}
			if value != c.want {
				t.Errorf("got %q, want %q; %v", value, c.want, err)
			}
		})
	}
}

// A hotspare that was killed has left a pod that may still be ending, and an installer that may
// never end.
func TestWhatAnEarlierHotspareHasLeft(t *testing.T) {
	dir := t.TempDir()
	work := filepath.Join(dir, workName)
	if ended, err := StopOrphan(dir); err != nil || !ended {
		t.Errorf("a pod that never began: %t, %v", ended, err)
	}
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := flock.Acquire(pod.LockPath(work))
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := StopOrphan(dir); err != nil || ended {
		t.Errorf("a pod that is ending: %t, %v", ended, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	left := exec.Command("sleep", "600")
	left.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, pod.PIDFile), []byte(strconv.Itoa(left.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if ended, err := StopOrphan(dir); err != nil || !ended {
		t.Errorf("a pod that has ended: %t, %v", ended, err)
	}
	if err := left.Wait(); err == nil {
		t.Error("its installer was left running")
	}
}

func TestCleanLeavesTheLog(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{logName, "work/cluster/auth/kubeconfig", "credentials/key"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := CleanPodDir(dir); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != logName {
		t.Errorf("left are %v; %v", left, err)
	}
	if err := CleanPodDir(filepath.Join(dir, "none")); err != nil {
		t.Error(err)
	}
}
