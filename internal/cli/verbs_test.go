package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// becoming has the pool settle, and bob released, when it is looked at for the third time.
func becoming(t *testing.T) interceptor.Funcs {
	looks := 0
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		p, is := o.(*hivev1.ClusterPool)
		if looks++; is && looks == 3 {
			if err := c.Get(ctx, key, p); err != nil {
				t.Error(err)
			}
			p.Status.Plan = "settled"
			condition.Set(&p.Status.Conditions, hivev1.PoolProgressing, corev1.ConditionFalse, hivev1.ReasonSettled, "", time.Now())
			if err := c.Status().Update(ctx, p); err != nil {
				t.Error(err)
			}
			if err := c.Delete(ctx, claimOn("dev", "bob", "")); err != nil {
				t.Error(err)
			}
		}
		return c.Get(ctx, key, o, opts...)
	}}
}

func TestPoolWatchTellsEachChangeInALine(t *testing.T) {
	compare(t, "pool-watch", transcript(newRig(t, becoming(t), world()...), []string{"pool watch dev --until-settled"}))
	compare(t, "pool-watch-json", transcript(newRig(t, becoming(t), world()...), []string{"pool watch dev --until-settled -o json"}))
	compare(t, "pool-watch-not", transcript(newRig(t, interceptor.Funcs{}, world()...), []string{
		"pool watch nope", "pool watch dev --timeout 1ns", "pool watch dev --timeout -1s", "pool watch dev -o yaml",
	}))
}

// What a terminal is sent before a screen, and after it.
const cursorHome, eraseBelow = "\x1b[H", "\x1b[J"

func TestPoolWatchOnATerminalDrawsAScreen(t *testing.T) {
	r := newRig(t, becoming(t), world()...)
	r.terminal = true
	if code := r.run("pool", "watch", "dev", "--until-settled"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	got := r.stdout.String()
	if n := strings.Count(got, cursorHome); n < 2 || !strings.HasSuffix(got, eraseBelow) {
		t.Errorf("%d screens were drawn: %q", n, got)
	}
	last := got[strings.LastIndex(got, cursorHome):]
	if !strings.Contains(last, "Plan          settled") || strings.Contains(last, "bob") {
		t.Errorf("the last screen is %q", last)
	}
}

func TestPoolWatchEndsWithThePool(t *testing.T) {
	looks := 0
	gone := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if looks++; looks == 3 {
			if err := c.Delete(ctx, devPool()); err != nil {
				t.Error(err)
			}
		}
		return c.Get(ctx, key, o, opts...)
	}}
	r := newRig(t, gone, world()...)
	if code := r.run("pool", "watch", "dev"); code != 0 || r.stderr.String() != "pool dev was deleted\n" {
		t.Errorf("exit code %d, %q", code, r.stderr.String())
	}
}

func TestLogsOfACluster(t *testing.T) {
	objects := append(localWorld(t), attempt("pet", 0, "level=fatal msg=no\n"), attempt("pet", 1, "level=fatal msg=still no\n"), attempt("other", 0, "not this one\n"))
	r := newRig(t, interceptor.Funcs{}, objects...)
	t.Setenv("HOTSPARE_DATA_DIR", "data")
	installs := filepath.Join("data", "installs", "dev-1aaaa-i")
	if err := os.MkdirAll(installs, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(installs, ".openshift_install.log"), "level=info msg=1\nlevel=info msg=2\nlevel=info msg=3\n")
	write(t, machine.LogPath(folder("master-0")), "begins\nruns\n")
	write(t, machine.LogPath(folder("worker-0")), "")
	compare(t, "cluster-logs", transcript(r, []string{
		"cluster logs alice", "cluster logs dev-1aaaa --tail 1", "cluster logs alice --machine dev-1aaaa-i-master-0", "cluster logs pet", "cluster logs pet --tail 0",
		"cluster logs dev-2bbbb", "cluster logs dev-4dddd", "cluster logs alice --machine nope", "cluster logs pet --machine nope", "cluster logs nope", "cluster logs",
	}))
}

func attempt(cluster string, n int, log string) *hivev1.ClusterProvision {
	return &hivev1.ClusterProvision{
		ObjectMeta: aged("default", fmt.Sprintf("%s-%d", cluster, n), time.Hour),
		Spec:       hivev1.ClusterProvisionSpec{ClusterDeploymentRef: corev1.LocalObjectReference{Name: cluster}, Attempt: n, InstallLog: &log},
	}
}

// The log of an installer's pod is a file where hotspare up ran the pod; otherwise the
// hub is asked for it.
func TestLogsOfAnInstallersPod(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: aged("default", name, time.Minute)}
		p.Labels = map[string]string{hivev1.LabelInstaller: "install"}
		p.Spec = corev1.PodSpec{InitContainers: []corev1.Container{{Name: "hotspare"}}, Containers: []corev1.Container{{Name: "hive"}}}
		return p
	}
	objects := append(localWorld(t), pod("pet-0-here"), pod("pet-0-there"))
	r := newRig(t, interceptor.Funcs{}, objects...)
	t.Setenv("HOTSPARE_DATA_DIR", "data")
	if err := os.MkdirAll(filepath.Join("data", "pods", "pet-0-here"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join("data", "pods", "pet-0-here", "log"), "of a process\n")
	r.podLog = func(_ context.Context, namespace, pod, container string, lines int) ([]byte, error) {
		if container == "hotspare" {
			return nil, errors.New("it has not begun")
		}
		return fmt.Appendf(nil, "%d lines of %s/%s\n", lines, namespace, pod), nil
	}
	compare(t, "cluster-logs-pods", transcript(r, []string{"cluster logs pet --tail 7"}))
}

// A claim that ends while its command runs takes the cluster along: the command should know.
func TestRunEndsItsCommandWhenTheClaimIsGone(t *testing.T) {
	funcs := served(t, "dev-1aaaa")
	var watches atomic.Int32
	funcs.Watch = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
		w, err := c.Watch(ctx, list, opts...)
		if watches.Add(1) == 2 { // the first is of the wait for the cluster
			var claims hivev1.ClusterClaimList
			if err := c.List(ctx, &claims); err != nil {
				t.Error(err)
			}
			for i := range claims.Items {
				if n := claims.Items[i].Name; n != "alice" && n != "bob" {
					if err := c.Delete(ctx, &claims.Items[i]); err != nil {
						t.Error(err)
					}
				}
			}
		}
		return w, err
	}
	r := newRig(t, funcs, world()...)
	if code := r.run("claim", "run", "dev", "--", "sh", "-c", "while :; do :; done"); code != 143 {
		t.Errorf("exit code %d, want that of a command that SIGTERM ended, 143", code)
	}
	if got, want := tidy(r.stderr.String()), "error: claim dev-12345 was released by another user or process and its cluster is being destroyed; stopping the command\n"; !strings.HasSuffix(got, want) {
		t.Errorf("stderr is %q", got)
	}
	r.released()
}

func TestAPluginOfKubectlShowsItsName(t *testing.T) {
	for file, want := range map[string]string{
		"/usr/local/bin/kubectl-hotspare": "kubectl hotspare", "kubectl-hotspare.exe": "kubectl hotspare", "hotspare": "hotspare", "bin/hotspare": "bin/hotspare", "": "hotspare",
	} {
		if got := ProgramName(file); got != want {
			t.Errorf("CalledAs(%q) = %q, want %q", file, got, want)
		}
	}
	r := newRig(t, interceptor.Funcs{}, world()...)
	r.name = "kubectl hotspare"
	compare(t, "plugin", transcript(r, []string{"pool create nope nope", "pool create x --size 1", "claim create --help", "explain claim bob"}))
}

func TestHelpHasNoPathOfThisMachine(t *testing.T) {
	r := newRig(t, interceptor.Funcs{}, world()...)
	r.name = "/opt/tools/hotspare"
	for _, args := range [][]string{{"--help"}, {"claim", "create", "--help"}, {"pool", "--help"}} {
		if code := r.run(args...); code != 0 || strings.Contains(r.stdout.String(), "/opt/tools") || !strings.Contains(r.stdout.String(), "  hotspare ") {
			t.Errorf("%v: exit code %d:\n%s", args, code, r.stdout.String())
		}
	}
	a := &base.App{Options: base.Options{Name: r.name}}
	if got := a.FormatCommand("pool list"); !strings.HasPrefix(got, r.name+" ") {
		t.Errorf("what it proposes cannot be copied: %s", got)
	}
}

func TestCompletionScriptsAreMade(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		r := newRig(t, interceptor.Funcs{})
		if code := r.run("completion", shell); code != 0 || !strings.Contains(r.stdout.String(), "hotspare") {
			t.Errorf("%s: exit code %d: %s", shell, code, r.stderr.String())
		}
	}
}

// A claim that expires while it is extended is not reported as extended, although the hub accepts the
// write: a finalizer keeps the claim until its cluster is destroyed.
func TestExtendSaysThatTheClaimHasEnded(t *testing.T) {
	alice := claimOn("dev", "alice", "dev-1aaaa")
	alice.Finalizers = []string{hivev1.FinalizerClaim}
	objects := []client.Object{devPool(), newCluster("dev-1aaaa", "alice", hivev1.PowerRunning, hivev1.StatusRunning), alice}
	expire := func(ctx context.Context, c client.WithWatch) {
		if err := c.Delete(ctx, claimOn("dev", "alice", "dev-1aaaa")); err != nil {
			t.Error(err)
		}
	}
	tried := 0
	r := newRig(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if tried++; tried == 1 {
				expire(ctx, c)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, objects...)
	if code := r.run("claim", "extend", "alice", "--by", "1h"); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := "error: claim alice cannot be extended: it has been released or has expired, and its cluster is being destroyed; create another claim\n"; r.stderr.String() != want {
		t.Errorf("stderr is %q, want %q", r.stderr.String(), want)
	}
}

func TestExtendRepeatsAWriteThatAnotherOneHasOvertaken(t *testing.T) {
	tried := 0
	r := newRig(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if tried++; tried == 1 {
				var other hivev1.ClusterClaim
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), &other); err != nil {
					t.Error(err)
				}
				other.Spec.Lifetime = base.ToAPIDuration(10 * time.Hour)
				if err := c.Update(ctx, &other); err != nil {
					t.Error(err)
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, world()...)
	if code := r.run("claim", "extend", "alice", "--by", "1h"); code != 0 {
		t.Errorf("exit code %d\n%s", code, r.stderr.String())
	}
	var c hivev1.ClusterClaim
	if err := r.hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "alice"}, &c); err != nil || *c.Spec.Lifetime != "11h" {
		t.Errorf("lifetime is %v, %v; want 11h", *c.Spec.Lifetime, err)
	}
}
