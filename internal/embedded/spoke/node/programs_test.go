package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// standin is a script that runs instead of hotspare: it writes its arguments, its kubeconfig and
// HOTSPARE_PARENT_PIPE to the file said, and runs until its standard input ends, or fails at once if
// MODE is fail.
const standin = `#!/bin/sh
echo "$@" >> "$HOTSPARE_POD_DIR/../said"
cat "$HOTSPARE_POD_DIR/volumes/hub/kubeconfig" >> "$HOTSPARE_POD_DIR/../said"
echo "$HOTSPARE_PARENT_PIPE" >> "$HOTSPARE_POD_DIR/../said"
case "$MODE" in fail) exit 3;; esac
exec cat
`

type runner struct {
	*processManager
	client *fake.Clientset
	dir    string
}

func newRunner(t *testing.T, p *corev1.Pod) *runner {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "hub"}, Data: map[string][]byte{"kubeconfig": []byte("secret\n")}}
	client := fake.NewClientset(p, secret)
	client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{Token: "token"}}, nil
	})
	dir := filepath.Join(t.TempDir(), "pods")
	all, err := newProcessManager(Options{Pods: dir, Bootstrap: &rest.Config{Host: "https://127.0.0.1:1"}}, client)
	if err != nil {
		t.Fatal(err)
	}
	all.self = filepath.Join(t.TempDir(), "hotspare")
	if err := os.WriteFile(all.self, []byte(standin), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return &runner{processManager: all, client: client, dir: dir}
}

func (r *runner) pod(t *testing.T) *corev1.Pod {
	t.Helper()
	p, err := r.client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// becomes waits until the text of the pod's status starts with want.
func (r *runner) becomes(t *testing.T, want string) {
	t.Helper()
	var got string
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		p := r.pod(t)
		if got = string(p.Status.Phase); len(p.Status.ContainerStatuses) > 0 {
			got = told(&p.Status)
		}
		return strings.HasPrefix(got, want), nil
	})
	if err != nil {
		t.Fatalf("it is %s, and should become %s", got, want)
	}
}

// says waits until the process has printed want, which it does at its start, when its status may
// already be Running.
func (r *runner) says(t *testing.T, want string) {
	t.Helper()
	var got []byte
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		var err error
		if got, err = os.ReadFile(filepath.Join(r.dir, "said")); os.IsNotExist(err) {
			return false, nil
		}
		return len(got) >= len(want), err
	})
	if err != nil || string(got) != want {
		t.Errorf("it was given %q, want %q (%v)", got, want, err)
	}
}

func process(edits ...edit) *corev1.Pod {
	return agentPod(append([]edit{func(p *corev1.Pod) { p.Namespace = "ns" }}, edits...)...)
}

func mode(m string) edit {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: "MODE", Value: m}, corev1.EnvVar{Name: "HOTSPARE_PARENT_PIPE", Value: "0"})
	}
}

func TestAPodIsAProcess(t *testing.T) {
	p := process(mode(""), func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "default"
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "api", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
	})
	r := newRunner(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if s := r.reconcilePod(ctx, p); s != (step{}) {
		t.Errorf("to be done: %+v", s)
	}
	r.becomes(t, "Running, running, ready true, 0 restarts, process://")
	volume := filepath.Join(r.dir, "1", "volumes", "hub", "kubeconfig")
	r.says(t, "agent --file="+volume+" --name=x /etc/hubs/other\nsecret\n1\n")
	for _, f := range []string{volume, filepath.Join(r.dir, "1", "token"), filepath.Join(r.dir, "1", "kubeconfig")} {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, info, err)
		}
	}

	t.Log("when the pod is to go, it goes after its process, and leaves nothing")
	now := metav1.Now()
	goes := p.DeepCopy()
	goes.DeletionTimestamp = &now
	for {
		if s := r.reconcilePod(ctx, goes); s.remove {
			break
		} else if s.wait == 0 {
			t.Fatalf("to be done: %+v", s)
		}
	}
	r.waitForProcesses()
	if _, err := os.Stat(filepath.Join(r.dir, "1")); !os.IsNotExist(err) {
		t.Errorf("its folder is left: %v", err)
	}
}

func TestAProcessThatFailsIsStartedAgain(t *testing.T) {
	p := process(mode("fail"))
	r := newRunner(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	r.reconcilePod(ctx, p)
	r.becomes(t, "Running, waiting: CrashLoopBackOff, before with 3, ready false, 1 restarts")
	r.becomes(t, "Running, waiting: CrashLoopBackOff, before with 3, ready false, 2 restarts")
	cancel()
	r.waitForProcesses()
}

func TestAProcessThatIsNotToStartAgainIsOver(t *testing.T) {
	p := process(mode("fail"), func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever })
	r := newRunner(t, p)
	r.reconcilePod(t.Context(), p)
	r.becomes(t, "Failed, ended with 3, ready false, 0 restarts")
	r.waitForProcesses()
	r.reconcilePod(t.Context(), r.pod(t))
	if got := fmt.Sprint(r.pod(t).Status.Phase); got != "Failed" {
		t.Errorf("it is %s", got)
	}
}

func TestAMissingSecretIsWaitedFor(t *testing.T) {
	p := process(mode(""), func(p *corev1.Pod) { p.Spec.Volumes[0].Secret.SecretName = "later" })
	r := newRunner(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	r.reconcilePod(ctx, p)
	r.becomes(t, "Pending, waiting: CreateContainerConfigError")
	later := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Data: map[string][]byte{"kubeconfig": nil}}
	if _, err := r.client.CoreV1().Secrets("ns").Create(ctx, later, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r.becomes(t, "Running, running, ready true, 0 restarts")
	cancel()
	r.waitForProcesses()
}

func TestAPodThatIsDeletedOnTheSpotTakesItsProcessAlong(t *testing.T) {
	p := process(mode(""))
	r := newRunner(t, p)
	r.reconcilePod(t.Context(), p)
	r.becomes(t, "Running, running")
	r.stopDeletedPod("ns/p")
	r.waitForProcesses()
	r.stopDeletedPod("ns/other")
}
