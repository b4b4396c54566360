package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/hubjob/hubjobtest"
	"hotspare.io/hotspare/internal/install/job/pod"
	jobrunner "hotspare.io/hotspare/internal/install/job/runner"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/recipe/runner/jobs"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobpod"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

const (
	image = "registry.example/recipes:1"
	// planted is the credential, which nobody may read.
	planted = "planted-cloud-credential"
)

var cluster = types.NamespacedName{Namespace: "ns-c", Name: "c"}

// lab is a hub with one node, whose pods run in this process and whose programs are those of the
// stand-in recipe.
type lab struct {
	t   *testing.T
	w   recipetest.World
	hub client.Client

	runner  *jobs.Runner
	store   *jobs.Store
	catalog *jobs.Catalog

	// stopNode stops the node: Jobs get no pods any more.
	stopNode func()

	mu   sync.Mutex
	pods []*podRun
	// deaths contains the number of calls of the hub after which the next pods die; 0 means never.
	deaths []int
	logs   strings.Builder
}

func newLab(t *testing.T, without ...string) *lab {
	t.Helper()
	w := recipetest.New(t, without...)
	var objects []client.Object
	for _, ns := range []string{cluster.Namespace, "pools"} {
		objects = append(objects,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": "CA"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "account"}, Data: map[string][]byte{"password": []byte(planted)}})
	}
	hub, err := hubjobtest.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, w: w, hub: hub}
	l.restart()
	node := &jobrunner.Runner{Hub: hub, Dir: t.TempDir(), Launch: l.launch, Clock: clock.RealClock{}, Period: 3 * time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = node.Run(ctx) // it returns nil
	}()
	l.stopNode = func() {
		stop()
		<-stopped
	}
	t.Cleanup(func() {
		l.stopNode()
		l.check()
	})
	return l
}

// restart replaces the process of hotspare.
func (l *lab) restart() {
	l.runner, l.store, l.catalog = jobs.New(l.hub, jobs.Options{Image: "q/hotspare", Program: "/hotspare", Poll: 3 * time.Millisecond})
}

// check checks what must hold after each test.
func (l *lab) check() {
	for _, e := range l.w.ReadEvents(l.t, cluster.Name) {
		if strings.HasPrefix(e, "BROKEN") {
			l.t.Error(e)
		}
	}
	if strings.Contains(l.logs.String(), planted) {
		l.t.Error("the log of a pod contains a credential")
	}
	if l.t.Failed() {
		l.t.Log(l.logs.String())
	}
}

// podRun is a pod that runs in this process.
type podRun struct {
	verb   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	api    *mortal
}

func (p *podRun) Stop()                 { p.cancel() }
func (p *podRun) Done() <-chan struct{} { return p.done }
func (p *podRun) Err() error            { return p.err }

// kill ends a pod as a power failure does: it writes nothing more, and its program is killed.
func (p *podRun) kill() {
	p.api.die()
	p.cancel()
	<-p.done
}

// mortal is the API of a pod that may die.
type mortal struct {
	hubjob.API
	cancel context.CancelFunc
	mu     sync.Mutex
	dead   bool
	left   int
}

var errDead = errors.New("this pod is dead")

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

// call makes a call, unless the pod is dead. The last call before its death succeeds on the hub.
func (m *mortal) call(do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	err := do()
	if m.left--; m.left == 0 {
		m.dead = true
		m.cancel()
		return errDead
	}
	return err
}

func (m *mortal) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return m.call(func() error { return m.API.Get(ctx, key, o, opts...) })
}

func (m *mortal) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return m.call(func() error { return m.API.Patch(ctx, o, p, opts...) })
}

type lockedWriter struct{ l *lab }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	return w.l.logs.Write(p)
}

var _ io.Writer = lockedWriter{}

// launch starts a pod.
func (l *lab) launch(_ context.Context, p jobrunner.Pod) (jobrunner.Process, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.t.Context()))
	one := &podRun{verb: p.Args[1], cancel: cancel, done: make(chan struct{})}
	one.api = &mortal{API: l.hub, cancel: cancel}
	l.mu.Lock()
	if len(l.deaths) > 0 {
		one.api.left, l.deaths = l.deaths[0], l.deaths[1:]
	}
	l.pods = append(l.pods, one)
	l.mu.Unlock()
	cmd := jobpod.NewCommand(pod.Host{
		Connect: func(dir string) (hubjob.API, error) {
			if raw, err := os.ReadFile(filepath.Join(dir, "token")); err != nil || string(raw) != hubjobtest.Token {
				return nil, fmt.Errorf("token: %q, %w", raw, err)
			}
			return one.api, nil
		},
		Env: p.Env, Grace: time.Millisecond, HeartbeatInterval: 5 * time.Millisecond, HeartbeatTimeout: time.Minute,
	})
	cmd.SetArgs(append(slices.Clone(p.Args[1:]), "--recipes", l.w.Catalog))
	cmd.SetOut(lockedWriter{l})
	cmd.SetErr(lockedWriter{l})
	go func() {
		defer close(one.done)
		defer cancel()
		one.err = cmd.ExecuteContext(ctx)
	}()
	return one, nil
}

// killPods kills the pods that run, and returns their number.
func (l *lab) killPods() int {
	l.mu.Lock()
	pods := slices.Clone(l.pods)
	l.mu.Unlock()
	n := 0
	for _, p := range pods {
		select {
		case <-p.done:
		default:
			p.kill()
			n++
		}
	}
	return n
}

func (l *lab) countPods() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pods)
}

// platform is that of the cluster.
func platform() *hivev1.ExecPlatform { return &hivev1.ExecPlatform{Recipe: recipetest.Name} }

// until calls so until it is true.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		if so() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// task returns the task of the cluster, as soon as its recipe was read.
func (l *lab) task() runner.Task {
	l.t.Helper()
	var r *recipe.Recipe
	until(l.t, "the recipe is read", func() bool {
		var err error
		r, err = l.catalog.FindRecipe(l.t.Context(), runner.Lookup{Platform: platform(), Cluster: cluster, UID: "uid-c", Image: image})
		if err != nil && fault.KindOf(err) != fault.Wait {
			l.t.Fatal(err)
		}
		return err == nil
	})
	return runner.Task{
		Recipe: r, SecretName: "account", Secrets: map[string][]byte{"password": []byte(planted)},
		Input: recipe.Input{Namespace: cluster.Namespace, Name: cluster.Name, UID: "uid-c", InfraID: "c-12345", With: map[string]string{"workers": "1"}},
	}
}

// call calls a verb until it is done.
func (l *lab) call(t runner.Task, v recipe.Verb) error {
	l.t.Helper()
	for range 1000 {
		again, err := l.runner.Call(l.t.Context(), t, v)
		if kind := fault.KindOf(err); again || kind == fault.Wait || kind == fault.Conflict {
			continue
		}
		return err
	}
	return errors.New("it must be called again and again")
}

func (l *lab) mustCall(t runner.Task, v recipe.Verb) {
	l.t.Helper()
	if err := l.call(t, v); err != nil {
		l.t.Fatal(err)
	}
}

// stateSecret returns the state of the cluster's programs; nil if there is none.
func (l *lab) stateSecret() *corev1.Secret {
	l.t.Helper()
	var list corev1.SecretList
	ofState := client.MatchingLabels{hivev1.LabelInfraID: "c-12345", hivev1.LabelSecretType: "recipe-state"}
	if err := l.hub.List(l.t.Context(), &list, client.InNamespace(cluster.Namespace), ofState); err != nil {
		l.t.Fatal(err)
	}
	for i := range list.Items {
		if !strings.Contains(list.Items[i].Name, "-part-") {
			return &list.Items[i]
		}
	}
	return nil
}

func (l *lab) state() jobstate.State {
	l.t.Helper()
	secret := l.stateSecret()
	if secret == nil {
		return jobstate.State{}
	}
	st, err := jobstate.Decode(secret.Data)
	if err != nil {
		l.t.Fatal(err)
	}
	return st
}

func (l *lab) listJobs() []batchv1.Job {
	l.t.Helper()
	var list batchv1.JobList
	if err := l.hub.List(l.t.Context(), &list); err != nil {
		l.t.Fatal(err)
	}
	return list.Items
}

func (l *lab) exists(o client.Object, name string) bool {
	l.t.Helper()
	err := l.hub.Get(l.t.Context(), types.NamespacedName{Namespace: cluster.Namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		l.t.Fatal(err)
	}
	return err == nil
}

func clientKey(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }
