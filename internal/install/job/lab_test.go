package job_test

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/provision"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job"
	"hotspare.io/hotspare/internal/install/job/installertest"
	"hotspare.io/hotspare/internal/install/job/pod"
	"hotspare.io/hotspare/internal/install/job/runner"
	"hotspare.io/hotspare/internal/install/job/state"
	"hotspare.io/hotspare/internal/ownership"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(installertest.RunTests(m))
}

// key is the name of a lab's only cluster.
var key = types.NamespacedName{Namespace: "ns", Name: "c1"}

// planted are secrets that are used and printed, and must not appear anywhere.
var planted = []string{
	"planted-key-id", "planted-aws-secret", "planted-pull-secret", "planted-in-the-config", "planted-token", "planted-hub-token", "plant-ed0pw", installertest.PlantedKey,
}

// lab is an in-memory hub with the provision controller and the executor, a runner in the role of
// Job controller and kubelet, a garbage collector, and a cloud in a folder. The pods run in this
// process; their installers are processes.
type lab struct {
	t        *testing.T
	hub      client.WithWatch
	cloud    installertest.Cloud
	exe      string
	clock    *clocktesting.FakeClock
	options  job.Options
	limits   time.Duration
	lapse    time.Duration
	runner   *runner.Runner
	rec      *provision.Reconciler
	executor *job.Executor
	events   chan string
	out      *record
	pods     string

	mu    sync.Mutex
	lives []*life
	// dies maps a verb to the API call at which its next pod dies.
	dies map[string]death
	// nodeless: nothing runs pods.
	nodeless bool
	// ending: the namespace accepts no new objects.
	ending bool
}

// death says when a pod dies: after its first read, or after its first write.
type death string

const (
	afterReading death = "after reading"
	afterWriting death = "after writing"
)

// record is what pods print.
type record struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.Write(p)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all.String()
}

const installConfig = `baseDomain: example.com
metadata: {name: c1}
platform: {aws: {region: us-east-1}}
proxy: {password: planted-in-the-config}
pullSecret: '{"auths":{"quay.io":{"auth":"planted-pull-secret"}}}'
`

func newLab(t *testing.T) *lab {
	t.Helper()
	exe, err := installertest.BuildInstaller()
	must(t, err)
	l := &lab{
		t: t, exe: exe, cloud: installertest.Cloud(t.TempDir()), out: &record{}, dies: map[string]death{}, pods: t.TempDir(),
		clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), events: make(chan string, 1000),
		lapse:   300 * time.Millisecond,
		options: job.Options{Image: "q/hotspare", InstallerImage: "q/installer"},
	}
	cd := cluster(string(l.cloud))
	plain := fake.NewClientBuilder().WithScheme(kinds(t)).WithObjects(
		cd, secret("pull", hivev1.SecretKeyPullSecret, `{"auths":{"quay.io":{"auth":"planted-pull-secret"}}}`),
		secret("config", hivev1.SecretKeyInstallConfig, installConfig), awsAccount(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kube-root-ca.crt"}, Data: map[string]string{"ca.crt": "CA"}},
	).WithStatusSubresource(&hivev1.ClusterDeployment{}, &hivev1.ClusterProvision{}, &hivev1.ClusterDeprovision{}, &batchv1.Job{}, &corev1.Pod{}).
		WithIndex(&hivev1.ClusterDeployment{}, ownership.ByInfraID, ownership.InfraIDs).Build()
	l.hub = interceptor.NewClient(plain, l.funcs())
	l.restart()
	l.reboot()
	t.Cleanup(l.check)
	return l
}

func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, batchv1.AddToScheme, authenticationv1.AddToScheme, hivev1.AddToScheme} {
		must(t, add(s))
	}
	return s
}

func cluster(cloud string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1"},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: "c1", BaseDomain: "example.com",
			Platform:      hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1","credentialsSecretRef":{"name":"aws"}}`)}},
			PullSecretRef: &corev1.LocalObjectReference{Name: "pull"},
			Provisioning: &hivev1.Provisioning{
				ReleaseImage:           "quay.io/ocp-release:4.18.20-x86_64",
				InstallConfigSecretRef: &corev1.LocalObjectReference{Name: "config"},
				InstallerEnv:           []corev1.EnvVar{{Name: installertest.Env, Value: cloud}},
			},
		},
	}
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

func awsAccount() *corev1.Secret {
	s := secret("aws", "aws_access_key_id", "planted-key-id")
	s.Data["aws_secret_access_key"] = []byte("planted-aws-secret")
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// funcs make the in-memory hub behave like a hub: it sets UIDs, lets pods end before they are
// deleted, and deletes objects whose owner is deleted.
func (l *lab) funcs() interceptor.Funcs {
	const kubelet = "lab/kubelet"
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if l.ending {
				err := apierrors.NewForbidden(batchv1.Resource("jobs"), obj.GetName(), errors.New("the namespace is being deleted"))
				err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
				return err
			}
			obj.SetUID(uuid.NewUUID())
			obj.SetCreationTimestamp(metav1.NewTime(l.clock.Now()))
			if _, ok := obj.(*corev1.Pod); ok {
				controllerutil.AddFinalizer(obj, kubelet)
			}
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
			var how client.DeleteOptions
			how.ApplyOptions(opts)
			if how.GracePeriodSeconds != nil && *how.GracePeriodSeconds == 0 {
				if err := c.Delete(ctx, obj); err != nil {
					return err
				}
				if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
					return client.IgnoreNotFound(err)
				}
				controllerutil.RemoveFinalizer(obj, kubelet)
				return c.Update(ctx, obj)
			}
			if err := c.Delete(ctx, obj); err != nil {
				return err
			}
			return l.collect(ctx, obj.GetUID())
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption) error {
			sub.(*authenticationv1.TokenRequest).Status.Token = "planted-hub-token"
			return nil
		},
	}
}

// collect deletes what an object owned.
func (l *lab) collect(ctx context.Context, owner types.UID) error {
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		if err := l.hub.List(ctx, list); err != nil {
			return err
		}
		for _, o := range items(list) {
			owned := slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
			if owned && o.GetDeletionTimestamp() == nil {
				if err := client.IgnoreNotFound(l.hub.Delete(ctx, o)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func items(list client.ObjectList) []client.Object {
	var out []client.Object
	switch l := list.(type) {
	case *corev1.SecretList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *batchv1.JobList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *corev1.PodList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *corev1.ServiceAccountList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *rbacv1.RoleList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *rbacv1.RoleBindingList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	}
	return out
}

// restart gives the hub a new manager without any state in memory.
func (l *lab) restart() {
	l.options.Clock = l.clock
	if l.limits > 0 {
		l.options.InstallLimit = l.limits
	}
	l.executor = job.New(l.hub, l.options)
	l.rec = &provision.Reconciler{
		Client: l.hub, Live: l.hub, Executors: install.Registry{"aws": l.executor},
		Clock: l.clock, Events: &events.FakeRecorder{Events: l.events},
	}
}

// reboot gives the pods a new node.
func (l *lab) reboot() {
	l.runner = &runner.Runner{Hub: l.hub, Dir: l.pods, Launch: l.launch, Clock: l.clock}
}

// life is a pod that runs in this process.
type life struct {
	verb   string
	dir    string
	api    *mortal
	cancel context.CancelFunc
	done   chan struct{}
	once   sync.Once
	err    error
	// returned is closed when the program of the pod has returned, and its installer has ended.
	returned chan struct{}
}

func (l *life) Stop()                 { l.cancel() }
func (l *life) Done() <-chan struct{} { return l.done }
func (l *life) Err() error            { return l.err }

func (l *life) end(err error) {
	l.once.Do(func() {
		l.err = err
		if !l.api.alive() {
			l.err = errors.New("killed")
		}
		close(l.done)
	})
}

// kill ends a pod as a power failure does: it writes nothing more, and its installer is killed.
func (l *life) kill() {
	l.api.die()
	if raw, err := os.ReadFile(filepath.Join(l.dir, "work", pod.PIDFile)); err == nil {
		if group, err := strconv.Atoi(string(raw)); err == nil {
			_ = syscall.Kill(-group, syscall.SIGKILL) // it may have ended
		}
	}
	l.cancel()
	<-l.returned
	l.end(errors.New("killed"))
}

// mortal is the API of a pod that may die: after that no call returns.
type mortal struct {
	state.API
	life *life
	mu   sync.Mutex
	how  death
	dead bool
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

func (m *mortal) alive() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.dead
}

// last ends the pod in the middle of a call.
func (m *mortal) last(ctx context.Context) error {
	m.die()
	m.life.end(errors.New("killed"))
	<-ctx.Done()
	return errors.New("dead pods hear nothing")
}

func (m *mortal) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !m.alive() {
		return m.last(ctx)
	}
	err := m.API.Get(ctx, key, obj, opts...)
	if m.how == afterReading {
		return m.last(ctx)
	}
	return err
}

func (m *mortal) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	if !m.alive() {
		return m.last(ctx)
	}
	err := m.API.Patch(ctx, obj, p, opts...)
	if m.how == afterWriting {
		return m.last(ctx)
	}
	return err
}

// launch starts a pod.
func (l *lab) launch(_ context.Context, p runner.Pod) (runner.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	verb := p.Args[1]
	ctx, cancel := context.WithCancel(l.t.Context())
	one := &life{verb: verb, dir: p.Dir, cancel: cancel, done: make(chan struct{}), returned: make(chan struct{})}
	one.api = &mortal{API: l.hub, life: one, how: l.dies[verb]}
	delete(l.dies, verb)
	l.lives = append(l.lives, one)
	cmd := pod.NewCommand(pod.Host{
		Connect: func(dir string) (state.API, error) {
			if raw, err := os.ReadFile(filepath.Join(dir, "token")); err != nil || string(raw) != "planted-hub-token" {
				return nil, fmt.Errorf("token: %q, %w", raw, err)
			}
			return one.api, nil
		},
		Env:               append(slices.Clone(p.Env), "PATH="+os.Getenv("PATH")),
		HeartbeatInterval: 20 * time.Millisecond, HeartbeatTimeout: l.lapse, Grace: 2 * time.Second,
	})
	args := append(slices.Clone(p.Args[1:]), "--installer", l.exe)
	if verb == "resolve" {
		args = append(args, "--from", l.cloudFile("image-references"))
	}
	cmd.SetArgs(args)
	cmd.SetOut(l.out)
	cmd.SetErr(l.out)
	go func() {
		defer cancel()
		err := cmd.ExecuteContext(ctx)
		close(one.returned)
		one.end(err)
	}()
	return one, nil
}

func (l *lab) cloudFile(name string) string { return filepath.Join(string(l.cloud), name) }

// pod returns the running pod of a verb.
func (l *lab) pod(verb string) *life {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range slices.Backward(l.lives) {
		if one.verb == verb {
			return one
		}
	}
	l.t.Fatalf("there has been no pod that runs %s", verb)
	return nil
}

// step runs the node and the controller once.
func (l *lab) step() {
	l.t.Helper()
	if !l.nodeless {
		if err := l.runner.SyncOnce(l.t.Context()); err != nil {
			l.t.Logf("runner: %v", err)
		}
	}
	if _, err := l.rec.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		l.t.Logf("pass: %v", err)
	}
	l.clock.Step(2 * time.Second)
}

// until runs steps until a condition is true.
func (l *lab) until(what string, so func() bool) {
	l.t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		if so() {
			return
		}
		l.step()
		<-time.After(4 * time.Millisecond)
	}
	l.t.Fatalf("never: %s\n%s", what, l.story())
}

func (l *lab) cd() *hivev1.ClusterDeployment {
	l.t.Helper()
	var cd hivev1.ClusterDeployment
	err := l.hub.Get(context.Background(), key, &cd) // also after the test's end
	if apierrors.IsNotFound(err) {
		return nil
	}
	must(l.t, err)
	return &cd
}

func (l *lab) installed() bool {
	cd := l.cd()
	return cd != nil && cd.Spec.Installed && cd.Status.InstalledTimestamp != nil
}

func (l *lab) gone() bool { return l.cd() == nil }

func (l *lab) hangs(place string) func() bool { return func() bool { return l.cloud.IsHungAt(place) } }

// says returns a condition of the cluster in one line.
func (l *lab) says(typ string) string {
	cd := l.cd()
	if cd == nil {
		return "gone"
	}
	c := condition.Find(cd.Status.Conditions, typ)
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

func (l *lab) tells(typ, text string) func() bool {
	return func() bool { return strings.Contains(l.says(typ), text) }
}

// attempts returns the reasons why attempts failed, in order, and Complete.
func (l *lab) attempts() string {
	var list hivev1.ClusterProvisionList
	must(l.t, l.hub.List(l.t.Context(), &list))
	slices.SortFunc(list.Items, func(a, b hivev1.ClusterProvision) int { return a.Spec.Attempt - b.Spec.Attempt })
	var out []string
	for _, cp := range list.Items {
		word := string(cp.Spec.Stage)
		if c := condition.Find(cp.Status.Conditions, hivev1.ProvisionFailed); c != nil {
			word = c.Reason
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

func (l *lab) delete(o client.Object) {
	l.t.Helper()
	must(l.t, l.hub.Delete(l.t.Context(), o))
}

// stateSecret returns the state Secret of an attempt or a destruction.
func (l *lab) stateSecret(typ string) *corev1.Secret {
	l.t.Helper()
	var list corev1.SecretList
	must(l.t, l.hub.List(l.t.Context(), &list, client.MatchingLabels{hivev1.LabelSecretType: typ}))
	if len(list.Items) == 0 {
		l.t.Fatalf("there is no Secret of type %s", typ)
	}
	return &list.Items[len(list.Items)-1]
}

func (l *lab) job(verb string) *batchv1.Job {
	l.t.Helper()
	var list batchv1.JobList
	must(l.t, l.hub.List(l.t.Context(), &list, client.MatchingLabels{hivev1.LabelInstaller: verb}))
	if len(list.Items) == 0 {
		l.t.Fatalf("there is no Job that runs %s", verb)
	}
	return &list.Items[len(list.Items)-1]
}

func (l *lab) podOf(verb string) *corev1.Pod {
	l.t.Helper()
	var list corev1.PodList
	must(l.t, l.hub.List(l.t.Context(), &list, client.MatchingLabels{hivev1.LabelInstaller: verb}))
	for i := range list.Items {
		if p := &list.Items[i]; p.Status.Phase == corev1.PodRunning {
			return p
		}
	}
	l.t.Fatalf("no pod runs %s", verb)
	return nil
}

// remove deletes the cluster and runs steps until nothing of it is left.
func (l *lab) remove() {
	l.t.Helper()
	l.delete(l.cd())
	l.until("the cluster is gone", l.gone)
	if left := l.cloud.ListClusters(); len(left) > 0 {
		l.t.Errorf("in the cloud there is still %v", left)
	}
}

// check checks what must be true after each test, whatever happened in it.
func (l *lab) check() {
	l.mu.Lock()
	for _, one := range l.lives {
		one.kill()
	}
	l.mu.Unlock()
	if v := l.cloud.ReadViolations(); v != "" {
		l.t.Errorf("the cloud complains:\n%s", v)
	}
	told := l.story() + l.out.text()
	for _, s := range planted {
		if i := strings.Index(told, s); i >= 0 {
			l.t.Errorf("the secret %q was told: …%s…", s, told[max(0, i-200):min(len(told), i+100)])
		}
	}
	if l.t.Failed() {
		l.t.Logf("%s\nthe pods said:\n%s", l.story(), l.out.text())
	}
}

// story is everything that people can read of the cluster, and secret only if told.
func (l *lab) story() string {
	ctx := context.Background() // also after the test's end
	var out strings.Builder
	for _, list := range []client.ObjectList{
		&hivev1.ClusterDeploymentList{}, &hivev1.ClusterProvisionList{}, &hivev1.ClusterDeprovisionList{}, &batchv1.JobList{}, &corev1.PodList{},
	} {
		if err := l.hub.List(ctx, list); err != nil {
			l.t.Error(err)
		}
		text, err := json.MarshalIndent(list, "", " ")
		if err != nil {
			l.t.Error(err)
		}
		out.Write(text)
	}
	for {
		select {
		case e := <-l.events:
			fmt.Fprintln(&out, e)
		default:
			return out.String()
		}
	}
}

func writeFile(path, content string) error { return os.WriteFile(path, []byte(content), 0o600) }
