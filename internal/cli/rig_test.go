package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/doctor"
	"hotspare.io/hotspare/internal/remote"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// eager is a clock that stands still and whose timers have all fired.
type eager struct{ *clocktesting.FakeClock }

func (e eager) NewTimer(time.Duration) clock.Timer {
	t := e.FakeClock.NewTimer(time.Hour)
	fired := make(chan time.Time, 1)
	fired <- now
	return firedTimer{t, fired}
}

type firedTimer struct {
	clock.Timer
	c <-chan time.Time
}

func (f firedTimer) C() <-chan time.Time { return f.c }

// rig is a command line with a hub in memory.
type rig struct {
	t              *testing.T
	hub            client.WithWatch
	stdout, stderr safeBuffer
	stdin          io.Reader
	terminal       bool
	width          int
	versionErr     error
	name           string
	identity       func(kubeconfig []byte) (remote.Identity, error)
	machines       func(cd *hivev1.ClusterDeployment) ([]string, error)
	podLog         func(ctx context.Context, namespace, pod, container string, lines int) ([]byte, error)
	facts          doctor.Facts
	others         map[string]client.WithWatch // API servers other than the hub, by URL
	mayNot         bool                        // the hub answers every SelfSubjectAccessReview with no
}

// newRig holds these objects; with may change what the hub does.
func newRig(t *testing.T, with interceptor.Funcs, objects ...client.Object) *rig {
	t.Helper()
	t.Setenv("KUBECONFIG", kubeconfigFile(t))
	t.Setenv("HOTSPARE_DATA_DIR", "")
	t.Setenv("NO_COLOR", "")
	t.Setenv("TMPDIR", t.TempDir())
	r := &rig{t: t, stdin: &bytes.Buffer{}}
	with.Create = r.answerReviews(with.Create)
	r.hub = fake.NewClientBuilder().WithScheme(base.Scheme).WithObjects(objects...).WithInterceptorFuncs(with).
		WithStatusSubresource(&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).Build()
	return r
}

type createFunc = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error

// answerReviews answers SelfSubjectAccessReviews, and leaves other objects to create, or to the hub.
func (r *rig) answerReviews(create createFunc) createFunc {
	return func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
			review.Status.Allowed = !r.mayNot
			return nil
		}
		if create != nil {
			return create(ctx, c, o, opts...)
		}
		return c.Create(ctx, o, opts...)
	}
}

func kubeconfigFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, `{"apiVersion":"v1","kind":"Config","current-context":"hotspare",
"clusters":[{"name":"hotspare","cluster":{"server":"https://127.0.0.1:36443"}}],
"users":[{"name":"admin","user":{}}],
"contexts":[{"name":"hotspare","context":{"cluster":"hotspare","user":"admin"}}]}`)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs one command line and returns its exit code.
func (r *rig) run(args ...string) int {
	r.t.Helper()
	return r.runIn(r.t.Context(), args...)
}

func (r *rig) runIn(ctx context.Context, args ...string) int {
	r.t.Helper()
	r.stdout.Reset()
	r.stderr.Reset()
	o := base.Options{
		Stdin: r.stdin, Stdout: &r.stdout, Stderr: &r.stderr,
		Clock:      eager{clocktesting.NewFakeClock(now)},
		IsTerminal: func(any) bool { return r.terminal },
		Width:      func(any) int { return r.width },
		Name:       r.name,
	}
	o.FindMachines = func(_ context.Context, _ *rest.Config, cd *hivev1.ClusterDeployment) ([]string, error) {
		return r.machines(cd)
	}
	a := base.NewApp(o)
	a.ReadIdentity = func(_ context.Context, kubeconfig []byte) (remote.Identity, error) { return r.identity(kubeconfig) }
	a.ReadFacts = func(_ context.Context, dataFolder string) doctor.Facts {
		f := r.facts
		f.DataFolder.Path = dataFolder
		return f
	}
	a.Dial = func(config *rest.Config) (*base.Hub, error) {
		api := r.hub
		if other := r.others[config.Host]; other != nil {
			api = other
		}
		return &base.Hub{WithWatch: api, FetchPodLog: r.podLog, FetchVersion: func(context.Context) (string, error) { return "v1.36.3", r.versionErr }}, nil
	}
	cmd := newRootCommand(a)
	cmd.SetArgs(args)
	return Execute(ctx, cmd)
}

// safeBuffer may be written by a child's output and by us at a time.
type safeBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *safeBuffer) Bytes() []byte { return []byte(b.String()) }

func (b *safeBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}
