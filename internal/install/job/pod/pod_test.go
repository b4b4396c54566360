package pod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/job/installertest"
	"hotspare.io/hotspare/internal/install/job/state"
)

func TestMain(m *testing.M) {
	os.Exit(installertest.RunTests(m))
}

var key = types.NamespacedName{Namespace: "ns", Name: "c1-0"}

const installConfig = `baseDomain: example.com
metadata: {name: c1}
platform: {vsphere: {password: planted-in-the-config}}
pullSecret: '{"auths":{"quay.io":{"auth":"planted-pull-secret"}}}'
`

// planted are secrets that the stand-in prints.
var planted = []string{
	"planted-in-the-config", "planted-pull-secret", "planted-aws-secret", "planted-token", "plant-ed0pw", installertest.PlantedKey,
}

// bench is an API server, a cloud, and pods that use them in this process.
type bench struct {
	t     *testing.T
	api   client.Client
	cloud installertest.Cloud
	exe   string
	out   *safeBuffer
}

type safeBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *safeBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{secret(key.Name, state.State{InstallConfig: []byte(installConfig)}.Encode())}
	for part := range state.MaxParts {
		objects = append(objects, secret(state.PartSecretName(key.Name, part), nil))
	}
	exe, err := installertest.BuildInstaller()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, api: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), cloud: installertest.Cloud(t.TempDir()), exe: exe, out: &safeBuffer{}}
	t.Cleanup(b.check)
	return b
}

func secret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}, Data: data}
}

// check checks what must be true after each test.
func (b *bench) check() {
	if v := b.cloud.ReadViolations(); v != "" {
		b.t.Errorf("the cloud complains:\n%s", v)
	}
	told := b.out.text() + b.state().Log
	for _, s := range planted {
		if strings.Contains(told, s) {
			b.t.Errorf("secret %q was told in\n%s", s, told)
		}
	}
	if b.t.Failed() {
		b.t.Logf("the pods said:\n%s", b.out.text())
	}
}

func (b *bench) store() state.Store { return state.Store{API: b.api, Key: key} }

func (b *bench) state() state.State {
	s, err := b.store().ReadState(context.Background()) // also after the test's end
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bench) options() Options {
	return Options{
		Store: b.store(), Pod: "pod", Installer: b.exe, Work: b.t.TempDir(), Out: b.out,
		Env:   append(os.Environ(), installertest.Env+"="+string(b.cloud), "AWS_SECRET_ACCESS_KEY=planted-aws-secret"),
		Limit: time.Minute, Grace: time.Second, HeartbeatInterval: 20 * time.Millisecond, HeartbeatTimeout: 200 * time.Millisecond,
	}
}

func (b *bench) prepare() {
	b.t.Helper()
	if err := PrepareInstall(b.t.Context(), b.options()); err != nil {
		b.t.Fatal(err)
	}
	if s := b.state(); s.Phase != state.Prepared {
		b.t.Fatalf("not prepared: %s %s\n%s", s.Phase, s.Reason, s.Log)
	}
}

// life is a pod that runs in the background.
type life struct {
	b     *bench
	work  string
	dead  *deadline
	stop  context.CancelFunc
	ended chan error
}

// deadline is an API that a dead pod cannot reach.
type deadline struct {
	state.API
	mu   sync.Mutex
	over bool
}

var errDead = errors.New("a dead pod reaches nobody")

func (d *deadline) alive() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return errDead
	}
	return nil
}

func (d *deadline) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.API.Get(ctx, key, obj, opts...)
}

func (d *deadline) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := d.alive(); err != nil {
		return err
	}
	return d.API.Patch(ctx, obj, p, opts...)
}

// begin starts a pod that runs do.
func (b *bench) begin(do func(context.Context, Options) error, edits ...func(*Options)) *life {
	b.t.Helper()
	o := b.options()
	for _, edit := range edits {
		edit(&o)
	}
	ctx, stop := context.WithCancel(b.t.Context())
	l := &life{b: b, work: o.Work, dead: &deadline{API: b.api}, stop: stop, ended: make(chan error, 1)}
	o.Store.API = l.dead
	go func() { l.ended <- do(ctx, o) }()
	return l
}

func (l *life) wait() error {
	l.b.t.Helper()
	select {
	case err := <-l.ended:
		return err
	case <-time.After(30 * time.Second):
		l.b.t.Fatal("the pod does not end")
		return nil
	}
}

// kill ends a pod as the loss of its node does: nothing more is written, and the installer is
// killed.
func (l *life) kill() {
	l.b.t.Helper()
	l.dead.mu.Lock()
	l.dead.over = true
	l.dead.mu.Unlock()
	if raw, err := os.ReadFile(filepath.Join(l.work, PIDFile)); err == nil {
		pid, err := strconv.Atoi(string(raw))
		if err != nil {
			l.b.t.Fatal(err)
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended
	}
	l.stop()
	_ = l.wait() // the error of a dead pod does not matter
}

func (b *bench) until(what string, done func() bool) {
	b.t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		if done() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	b.t.Fatalf("never: %s; state %+v", what, b.state().Phase)
}

func want(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNext(t *testing.T) {
	held := state.State{Phase: state.Creating, Holder: "a"}
	up := state.State{Phase: state.Creating, Holder: "a", Bootstrapped: true}
	for name, c := range map[string]struct {
		in     state.State
		silent bool
		want   step
	}{
		"what is prepared is created":                     {state.State{Phase: state.Prepared}, false, claim},
		"what is not prepared is not":                     {state.State{}, false, giveUp},
		"another's create is watched":                     {held, false, watch},
		"also when only the end is waited for":            {up, false, watch},
		"a dead pod's create is given up":                 {held, true, giveUp},
		"what comes up by itself is waited for":           {up, true, adopt},
		"at once, if it was handed over":                  {state.State{Phase: state.Creating, Bootstrapped: true}, false, adopt},
		"what succeeded is left":                          {state.State{Phase: state.Succeeded}, true, leave},
		"what failed is left":                             {state.State{Phase: state.Failed}, true, leave},
		"what is to be destroyed is left":                 {state.State{Phase: state.Abandoned}, true, leave},
		"a create that nobody holds and nobody can await": {state.State{Phase: state.Creating}, false, giveUp},
	} {
		t.Run(name, func(t *testing.T) { want(t, c.want, decideStep(c.in, c.silent)) })
	}
}

func TestAnInstallThatWorks(t *testing.T) {
	b := newBench(t)
	b.prepare()
	want(t, []string(nil), b.cloud.ListClusters())
	must(t, CreateCluster(t.Context(), b.options()))
	s := b.state()
	want(t, "Succeeded https://api.c1.example.com:6443 https://console.apps.c1.example.com 4.18.20",
		fmt.Sprint(s.Phase, " ", s.APIURL, " ", s.WebConsoleURL, " ", s.Version))
	want(t, "plant-ed0pw-aaaaa-bbbbb", s.Password)
	want(t, 0, len(s.InstallConfig))
	want(t, []string{"masters", "network", "workers"}, b.cloud.ListResources(b.cloud.ListClusters()[0]))
	if _, err := b.store().LoadFolder(t.Context(), s); !errors.Is(err, state.ErrDamaged) {
		t.Errorf("the folder with its keys is still stored: %v", err)
	}
	t.Run("a later pod leaves it alone", func(t *testing.T) {
		must(t, CreateCluster(t.Context(), b.options()))
		must(t, PrepareInstall(t.Context(), b.options()))
		want(t, s, b.state())
	})
}

func TestWhatPrepareFindsWrong(t *testing.T) {
	for name, c := range map[string]struct{ fault, reason, says string }{
		"an install-config that the installer does not accept": {"invalid", state.ReasonInvalid, "no such region"},
		"credentials that have expired":                        {"expired", hivev1.ReasonInvalidCredentials, "ExpiredToken"},
		"an installer that leaves no metadata":                 {"no-metadata", state.ReasonPrepare, "without writing metadata.json"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			must(t, b.cloud.InjectFault(c.fault, 9))
			must(t, PrepareInstall(t.Context(), b.options()))
			s := b.state()
			want(t, "Failed "+c.reason, string(s.Phase)+" "+s.Reason)
			lines := strings.Split(strings.TrimSpace(s.Log), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, c.says) {
				t.Errorf("the last line does not say %q: %s", c.says, last)
			}
		})
	}
}

func TestACreateThatFails(t *testing.T) {
	for _, stage := range []string{"network", "bootstrap", "masters", "late"} {
		t.Run("at "+stage, func(t *testing.T) {
			b := newBench(t)
			b.prepare()
			must(t, b.cloud.InjectFault("fail-"+stage, 1))
			must(t, CreateCluster(t.Context(), b.options()))
			s := b.state()
			reason := "QuotaExceeded"
			if stage == "late" {
				reason = "ClusterInitializationFailed"
			}
			want(t, "Failed "+reason, string(s.Phase)+" "+s.Reason)
			want(t, 0, len(s.Kubeconfig))
		})
	}
}

func TestAPodThatIsKilledBeforeItHasClaimed(t *testing.T) {
	b := newBench(t)
	must(t, b.cloud.HangAt("prepare"))
	l := b.begin(PrepareInstall)
	b.until("the installer prepares", func() bool { return b.cloud.IsHungAt("prepare") })
	l.kill()
	want(t, state.New, b.state().Phase)
	must(t, b.cloud.ReleaseHang("prepare"))
	b.prepare()
	must(t, CreateCluster(t.Context(), b.options()))
	want(t, state.Succeeded, b.state().Phase)
	want(t, 1, len(b.cloud.ListClusters()))
}

func TestAPodThatIsKilledWhileItCreates(t *testing.T) {
	b := newBench(t)
	b.prepare()
	must(t, b.cloud.HangAt("masters"))
	l := b.begin(CreateCluster)
	b.until("the installer makes masters", func() bool { return b.cloud.IsHungAt("masters") })
	l.kill()
	must(t, CreateCluster(t.Context(), b.options()))
	s := b.state()
	want(t, "Failed "+state.ReasonInterrupted, string(s.Phase)+" "+s.Reason)
	want(t, 1, len(slices.DeleteFunc(b.cloud.ReadNotes(), func(n string) bool { return !strings.HasPrefix(n, "created") })))
}

func TestAPodThatIsKilledWhileTheClusterComesUp(t *testing.T) {
	b := newBench(t)
	b.prepare()
	must(t, b.cloud.HangAt("late"))
	l := b.begin(CreateCluster)
	b.until("it is written that the cluster comes up", func() bool { return b.state().Bootstrapped })
	l.kill()
	must(t, b.cloud.ReleaseHang("late"))
	must(t, CreateCluster(t.Context(), b.options()))
	want(t, state.Succeeded, b.state().Phase)
	if !slices.Contains(b.cloud.ReadNotes(), "waited") {
		t.Error("it was not waited for")
	}
}

func TestAPodThatIsToldToEnd(t *testing.T) {
	t.Run("while it creates gives the attempt up", func(t *testing.T) {
		b := newBench(t)
		b.prepare()
		must(t, b.cloud.HangAt("masters"))
		l := b.begin(CreateCluster)
		b.until("the installer makes masters", func() bool { return b.cloud.IsHungAt("masters") })
		l.stop()
		must(t, l.wait())
		want(t, "Failed "+state.ReasonInterrupted, string(b.state().Phase)+" "+b.state().Reason)
	})
	t.Run("while the cluster comes up hands it over", func(t *testing.T) {
		b := newBench(t)
		b.prepare()
		must(t, b.cloud.HangAt("late"))
		l := b.begin(CreateCluster)
		b.until("the cluster comes up", func() bool { return b.cloud.IsHungAt("late") })
		l.stop()
		if err := l.wait(); err == nil {
			t.Error("the pod says that it is done")
		}
		want(t, true, b.state().Bootstrapped)
		want(t, "", b.state().Holder)
		must(t, b.cloud.ReleaseHang("late"))
		must(t, CreateCluster(t.Context(), b.options()))
		want(t, state.Succeeded, b.state().Phase)
	})
	t.Run("kills an installer that does not listen", func(t *testing.T) {
		b := newBench(t)
		b.prepare()
		must(t, errors.Join(b.cloud.HangAt("masters"), b.cloud.InjectFault("deaf", 1)))
		l := b.begin(CreateCluster)
		b.until("the installer makes masters", func() bool { return b.cloud.IsHungAt("masters") })
		l.stop()
		must(t, l.wait())
		want(t, state.Failed, b.state().Phase)
	})
}

func TestTwoPodsAtOnce(t *testing.T) {
	b := newBench(t)
	b.prepare()
	must(t, b.cloud.HangAt("masters"))
	patient := func(o *Options) { o.HeartbeatTimeout = 10 * time.Second }
	one, two := b.begin(CreateCluster, patient), b.begin(CreateCluster, patient)
	b.until("the installer makes masters", func() bool { return b.cloud.IsHungAt("masters") })
	for range 3 {
		before := b.state().Heartbeat
		b.until("the holder says that it lives", func() bool { return b.state().Heartbeat != before })
	}
	want(t, state.Creating, b.state().Phase)
	must(t, b.cloud.ReleaseHang("masters"))
	must(t, errors.Join(one.wait(), two.wait()))
	want(t, state.Succeeded, b.state().Phase)
}

func TestAnAttemptThatIsAbandonedStops(t *testing.T) {
	b := newBench(t)
	b.prepare()
	must(t, b.cloud.HangAt("masters"))
	l := b.begin(CreateCluster)
	b.until("the installer makes masters", func() bool { return b.cloud.IsHungAt("masters") })
	_, err := b.store().EditState(t.Context(), func(s *state.State) error { s.MarkEnded(state.Abandoned); return nil })
	must(t, err)
	_ = l.wait() // it was overtaken
	want(t, state.Abandoned, b.state().Phase)
	must(t, CreateCluster(t.Context(), b.options()))
}

func TestAnInstallThatTakesTooLong(t *testing.T) {
	b := newBench(t)
	b.prepare()
	must(t, b.cloud.HangAt("masters"))
	l := b.begin(CreateCluster, func(o *Options) { o.Limit = 500 * time.Millisecond })
	must(t, l.wait())
	s := b.state()
	want(t, "Failed "+state.ReasonTimeout, string(s.Phase)+" "+s.Reason)
	if !strings.HasSuffix(s.Log, "The installer was stopped: it did not finish within 500ms.\n") {
		t.Errorf("log:\n%s", s.Log)
	}
}

func TestAPreparedFolderThatIsDamagedFailsTheAttempt(t *testing.T) {
	b := newBench(t)
	b.prepare()
	must(t, b.api.Update(t.Context(), secret(state.PartSecretName(key.Name, 0), map[string][]byte{"part": []byte("x")})))
	must(t, CreateCluster(t.Context(), b.options()))
	want(t, "Failed "+state.ReasonDamaged, string(b.state().Phase)+" "+b.state().Reason)
	want(t, []string(nil), b.cloud.ListClusters())
}

// Both processes have read the attempt as Prepared; the second one retries its write with what it
// read again.
func TestOnlyOneProcessCanClaim(t *testing.T) {
	b := newBench(t)
	b.prepare()
	seen := b.state()
	one, err := newInstallerRun(b.options())
	must(t, err)
	two, err := newInstallerRun(b.options())
	must(t, err)
	must(t, one.acquireAttempt(t.Context(), seen))
	if err := two.acquireAttempt(t.Context(), seen); !errors.Is(err, errOvertaken) {
		t.Errorf("a second process has claimed it: %v", err)
	}
	want(t, one.holder, b.state().Holder)
}
