package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

func TestAClusterLivesInJobs(t *testing.T) {
	l := newLab(t)
	task := l.task()
	l.mustCall(task, recipe.Create)
	pods := l.countPods()
	if raw, err := l.runner.ReadKubeconfig(t.Context(), task); err != nil || !strings.Contains(string(raw), "https://127.0.0.1:6443") {
		t.Errorf("kubeconfig %q, %v", raw, err)
	}
	if n := l.countPods() - pods; n > 0 {
		t.Errorf("%d pods read the kubeconfig that create has returned", n)
	}
	for _, step := range []struct {
		verb recipe.Verb
		want cloud.State
	}{{"", cloud.Running}, {recipe.Stop, cloud.Stopped}, {recipe.Start, cloud.Running}} {
		if step.verb != "" {
			l.mustCall(task, step.verb)
		}
		if ms, err := l.runner.Observe(t.Context(), task); err != nil || !ms.AllIn(step.want) || len(ms) != 2 {
			t.Errorf("after %q: %s, %v", step.verb, ms, err)
		}
	}
	if raw, err := l.runner.ReadKubeconfig(t.Context(), task); err != nil || len(raw) == 0 {
		t.Errorf("after other programs, the kubeconfig is %q, %v", raw, err)
	}
	l.mustCall(task, recipe.Destroy)
	if left := l.w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	if err := l.store.Delete(t.Context(), task.Key()); err != nil {
		t.Fatal(err)
	}
	if l.stateSecret() != nil {
		t.Error("the state was not deleted")
	}
}

func TestAPodMayAccessItsStateOnlyAndNoCredentialIsInItsArguments(t *testing.T) {
	l := newLab(t)
	task := l.task()
	l.mustCall(task, recipe.Create)
	secret := l.stateSecret()
	var role rbacv1.Role
	if !l.exists(&role, secret.Name) {
		t.Fatal("there is no Role")
	}
	want := append([]string{secret.Name}, jobstate.PartNames(secret.Name)...)
	if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].ResourceNames, want) || !slices.Equal(role.Rules[0].Verbs, []string{"get", "patch"}) {
		t.Errorf("rules %+v", role.Rules)
	}
	if l.exists(&corev1.Secret{}, secret.Name+"-record") {
		t.Error("the pod's names overlap with the record")
	}
	for _, j := range l.listJobs() {
		raw, err := json.Marshal(j)
		if err != nil || strings.Contains(string(raw), planted) {
			t.Errorf("Job %s contains the credential, %v", j.Name, err)
		}
		spec := j.Spec.Template.Spec
		if *spec.AutomountServiceAccountToken || spec.SecurityContext.RunAsNonRoot == nil || *j.Spec.BackoffLimit != 0 {
			t.Errorf("Job %s: %+v", j.Name, spec)
		}
		mounted := slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "account" })
		if mounted != (j.Labels[hivev1.LabelInstaller] == "create") {
			t.Errorf("Job %s: mounted %v", j.Name, mounted)
		}
	}
}

// counting is a create that counts its runs in its state folder, slowly.
const counting = `#!/bin/sh -eu
. "$HOTSPARE_RECIPE_DIR/common"
mkdir -p "$home"
n=$(cat "$HOTSPARE_DIR/runs" 2>/dev/null || echo 0)
echo $((n + 1)) >"$HOTSPARE_DIR/runs.new" && mv "$HOTSPARE_DIR/runs.new" "$HOTSPARE_DIR/runs"
mkdir -p "$HOTSPARE_DIR/bin" && printf '#!/bin/sh\n' >"$HOTSPARE_DIR/bin/tool" && chmod 700 "$HOTSPARE_DIR/bin/tool"
ln -sf bin/tool "$HOTSPARE_DIR/link"
[ -x "$HOTSPARE_DIR/link" ] || exit 1
echo Running >"$home/state"
printf 'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]\n' >"$KUBECONFIG"
[ "$n" -gt 0 ] || exit 10
`

func TestTheStateSurvivesAPodThatDiesAfterAnyCallOfTheHub(t *testing.T) {
	for after := 1; after <= 8; after++ {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			l := newLab(t)
			l.w.WriteProgram(t, "create", counting)
			task := l.task()
			l.mu.Lock()
			l.deaths = []int{after}
			l.mu.Unlock()
			l.mustCall(task, recipe.Create)
			dir := t.TempDir()
			packed := l.state().Folder.Inline
			if err := jobstate.UnpackFolder(packed, dir); err != nil {
				t.Fatal(err)
			}
			if raw, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || strings.TrimSpace(string(raw)) < "2" {
				t.Errorf("the second run did not find the state of the first: %q, %v", raw, err)
			}
			if info, err := os.Stat(filepath.Join(dir, "link")); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the program in the state folder is lost: %v, %v", info, err)
			}
			l.mustCall(task, recipe.Destroy)
		})
	}
}

// hanging is a program that runs until it is ended.
const hanging = `#!/bin/sh -eu
. "$HOTSPARE_RECIPE_DIR/common"
mkdir -p "$home"
: >"$STANDIN_HOME/hangs"
while [ ! -e "$STANDIN_HOME/goOn" ]; do sleep 0.01; done
printf 'apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]\n' >"$KUBECONFIG"
`

func (l *lab) hangs() bool {
	_, err := os.Stat(filepath.Join(l.w.Home, "hangs"))
	return err == nil
}

// startCall calls a verb in a process of hotspare that ends when stop is called.
func (l *lab) startCall(task runner.Task, v recipe.Verb) (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan struct{})
	old := l.runner
	go func() {
		defer close(done)
		_, _ = old.Call(ctx, task, v) // it is stopped
	}()
	return func() { cancel(); <-done }
}

func TestAnotherProcessOfHotspareWaitsForTheSameProgram(t *testing.T) {
	l := newLab(t)
	l.w.WriteProgram(t, "create", hanging)
	task := l.task()
	stop := l.startCall(task, recipe.Create)
	until(t, "create runs", l.hangs)
	stop()
	l.restart()
	if err := os.WriteFile(filepath.Join(l.w.Home, "goOn"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.mustCall(task, recipe.Create)
	if n := recipetest.CountEvents(l.w.ReadEvents(t, cluster.Name), "create"); n != 1 {
		t.Errorf("create has run %d times", n)
	}
}

func TestDestroyEndsTheCreateOfAnotherProcess(t *testing.T) {
	l := newLab(t)
	l.w.WriteProgram(t, "create", hanging)
	task := l.task()
	stop := l.startCall(task, recipe.Create)
	until(t, "create runs", l.hangs)
	stop()
	l.restart()
	l.mustCall(task, recipe.Destroy) // the stand-in reports if both run at the same time
	if left := l.w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func TestAPodThatWasReplacedEndsItsProgram(t *testing.T) {
	l := newLab(t)
	l.w.WriteProgram(t, "create", hanging)
	task := l.task()
	stop := l.startCall(task, recipe.Create)
	until(t, "create runs", l.hangs)
	stop()
	l.editState(func(s *jobstate.State) { s.Run.Token = "another" })
	l.mu.Lock()
	last := l.pods[len(l.pods)-1]
	l.mu.Unlock()
	select {
	case <-last.done:
	case <-time.After(time.Minute):
		t.Fatal("the pod still runs its program")
	}
	if !errors.Is(last.err, jobstate.ErrOvertaken) {
		t.Errorf("it ended with %v", last.err)
	}
}

func TestAPodThatAlwaysDiesFailsTheVerb(t *testing.T) {
	l := newLab(t)
	task := l.task()
	l.mu.Lock()
	l.deaths = []int{3, 3, 3}
	l.mu.Unlock()
	err := l.call(task, recipe.Create)
	var failed *recipe.VerbError
	if !errors.As(err, &failed) || failed.Outcome != recipe.Failed || !strings.Contains(err.Error(), "interrupted 3 times in a row: Job c-recipe-") {
		t.Errorf("got %v", err)
	}
	l.mustCall(task, recipe.Destroy)
}

func TestBadProgramsFailWithAReason(t *testing.T) {
	script := func(lines string) string { return "#!/bin/sh\n" + lines + "\n" }
	for name, tt := range map[string]struct{ verb, script, want string }{
		"garbage on standard output":  {"observe", script("echo garbage"), `printed "garbage`},
		"nothing on standard output":  {"observe", script(":"), "printed nothing"},
		"too much on standard output": {"observe", script("head -c 3000000 /dev/zero"), "printed more than 1048576 bytes"},
		"a state folder over 1 MiB":   {"create", script(`head -c 1100000 /dev/urandom >"$HOTSPARE_DIR/large"`), "left more than 1048576 bytes"},
		"a request that is wrong":     {"create", script("exit 20"), "rejected the request"},
		"no room":                     {"create", script("exit 30"), "no capacity"},
		"a credential in its output":  {"observe", script(`cat "$HOTSPARE_SECRETS/password"`), "printed"},
		"no kubeconfig":               {"create", script(":"), "wrote no file kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.w.WriteProgram(t, tt.verb, tt.script)
			task := l.task()
			var err error
			if tt.verb == "observe" {
				_, err = l.runner.Observe(t.Context(), task)
			} else if err = l.call(task, recipe.Verb(tt.verb)); err == nil {
				_, err = l.runner.ReadKubeconfig(t.Context(), task)
			}
			var failed *recipe.VerbError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), planted) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestALargeStateIsKeptInParts(t *testing.T) {
	l := newLab(t)
	l.w.WriteProgram(t, "create", strings.Replace(counting, "mkdir -p \"$home\"\n",
		"mkdir -p \"$home\"\n[ -e \"$HOTSPARE_DIR/large\" ] || head -c 1000000 /dev/urandom >\"$HOTSPARE_DIR/large\"\ncksum <\"$HOTSPARE_DIR/large\" >>\"$STANDIN_HOME/sums\"\n", 1))
	task := l.task()
	l.mustCall(task, recipe.Create)
	if f := l.state().Folder; f.Parts != 2 || len(f.Inline) > 0 {
		t.Errorf("%d parts, %d bytes inline", f.Parts, len(f.Inline))
	}
	raw, err := os.ReadFile(filepath.Join(l.w.Home, "sums"))
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if err != nil || len(lines) != 2 || lines[0] != lines[1] {
		t.Errorf("the runs found %q, %v", lines, err)
	}
}

func TestWhatAPodWritesIsNotTrusted(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*jobstate.State)
		want   string
	}{
		"an unknown outcome": {func(s *jobstate.State) { s.Outcome.Result = "Perfect" }, "an outcome that hotspare does not write"},
		"no outcome":         {func(s *jobstate.State) { s.Outcome.Result = "" }, "an outcome that hotspare does not write"},
		"a credential":       {func(s *jobstate.State) { s.Outcome = jobstate.Outcome{Result: recipe.Failed, Problem: planted} }, "recipe standin:"},
		"machines in no state": {func(s *jobstate.State) {
			s.Answer = []byte(`{"apiVersion":"recipe.hotspare.io/v1","machines":[{"name":"a","state":"x"}]}`)
		}, `in state "x"`},
		"garbage": {func(s *jobstate.State) { s.Answer = []byte("garbage") }, "garbage"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			// The program of a recipe has the rights of its pod: it changes the state after the pod.
			l.w.WriteProgram(t, "observe", hanging)
			task := l.task()
			failed := make(chan error, 1)
			go func() {
				_, err := l.runner.Observe(t.Context(), task)
				failed <- err
			}()
			until(t, "observe runs", l.hangs)
			l.editState(func(s *jobstate.State) {
				s.Run.Phase, s.Outcome = jobstate.Ended, jobstate.Outcome{Result: recipe.Done}
				tt.change(s)
			})
			err := <-failed
			var verb *recipe.VerbError
			if !errors.As(err, &verb) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), planted) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAKubeconfigThatRefersToAFileOfHotspareIsRejected(t *testing.T) {
	l := newLab(t)
	task := l.task()
	l.mustCall(task, recipe.Create)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-hotspare"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reference := range []string{"client-key: " + token, "client-certificate: " + token, "tokenFile: " + token} {
		l.editState(func(s *jobstate.State) {
			s.Kubeconfig = []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://127.0.0.1}}]\nusers: [{name: u, user: {" + reference + "}}]\n")
		})
		if raw, err := l.runner.ReadKubeconfig(t.Context(), task); err == nil || !strings.Contains(err.Error(), "user u of the kubeconfig refers to a file") {
			t.Errorf("%s: got %q, %v", reference, raw, err)
		}
	}
}

// editState changes the state of the cluster, which its pod writes, too.
func (l *lab) editState(change func(*jobstate.State)) {
	l.t.Helper()
	store := jobstate.Store{API: l.hub, Key: clientKey(l.stateSecret())}
	for {
		_, err := store.EditState(l.t.Context(), func(s *jobstate.State) error { change(s); return nil })
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			l.t.Fatal(err)
		}
	}
}

// stallPod adds a pod that cannot pull its image to a Job.
func (l *lab) stallPod(j batchv1.Job) {
	l.t.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: j.Namespace, Name: j.Name + "-x", Labels: map[string]string{batchv1.JobNameLabel: j.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&j, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}, Spec: corev1.PodSpec{NodeName: "another", Containers: []corev1.Container{{Name: "recipe", Image: image}}}}
	if err := l.hub.Create(l.t.Context(), p); err != nil {
		l.t.Fatal(err)
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "recipe", Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}}
	if err := l.hub.Status().Update(l.t.Context(), p); err != nil {
		l.t.Fatal(err)
	}
}

func TestAnImageThatCannotBePulledIsReported(t *testing.T) {
	l := newLab(t)
	task := l.task()
	l.stopNode()
	stop := l.startCall(task, recipe.Create)
	defer stop()
	ofCreate := func(j batchv1.Job) bool { return j.Labels[hivev1.LabelInstaller] == "create" }
	until(t, "there is a Job", func() bool { return slices.ContainsFunc(l.listJobs(), ofCreate) })
	all := l.listJobs()
	l.stallPod(all[slices.IndexFunc(all, ofCreate)])
	var problem error
	until(t, "the problem is reported", func() bool {
		problem = l.runner.StartProblem(cluster)
		return problem != nil
	})
	if !errors.As(problem, new(*install.NotLaunchedError)) || fault.KindOf(problem) != fault.Wait ||
		!strings.Contains(problem.Error(), "cannot pull image "+image+": check that the image exists and that the pull secret gives access to it") {
		t.Errorf("got %v", problem)
	}
}

func TestPoolsAreChecked(t *testing.T) {
	l := newLab(t)
	pool := func(p hivev1.ExecPlatform) *hivev1.ClusterPool {
		return &hivev1.ClusterPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p", UID: "uid-p"},
			Spec:       hivev1.ClusterPoolSpec{Platform: hivev1.Platform{Exec: &p}},
		}
	}
	check := func(p hivev1.ExecPlatform, image string) (missing []string, version string) {
		until(t, "the recipe is read", func() bool {
			missing, version = l.catalog.CheckPool(t.Context(), pool(p), image)
			return len(missing) == 0 || !strings.Contains(missing[0], "reads recipe")
		})
		return missing, version
	}
	missing, version := check(*platform(), image)
	if len(missing) > 0 || !strings.HasPrefix(version, "1-") {
		t.Errorf("missing %q, version %q", missing, version)
	}
	if _, other := check(*platform(), "registry.example/recipes:2"); other == version || other == "" {
		t.Errorf("another image has version %q too", other)
	}
	wrong := hivev1.ExecPlatform{Recipe: recipetest.Name, With: map[string]hivev1.ExecParameter{"workers": "many"}}
	if missing, _ = check(wrong, image); len(missing) != 1 || !strings.Contains(missing[0], "with.workers") {
		t.Errorf("a wrong parameter: %q", missing)
	}
	missing, _ = check(hivev1.ExecPlatform{Recipe: "k3d"}, image)
	if text := strings.Join(missing, "\n"); !strings.Contains(text, `the image has no recipe "k3d"`) || !strings.Contains(text, "use one of [standin]") {
		t.Errorf("a recipe that the image lacks: %q", missing)
	}
	if missing, version = l.catalog.CheckPool(t.Context(), pool(*platform()), ""); len(missing) > 0 || version != "" {
		t.Errorf("without an image: %q, %q", missing, version)
	}
}

func TestRandomHistories(t *testing.T) {
	histories := 3
	seed := uint64(time.Now().UnixNano())
	if testing.Short() {
		histories = 1
	}
	t.Logf("seed %d", seed)
	for i := range histories {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		t.Run(fmt.Sprint(i), func(t *testing.T) { runHistory(t, random) })
	}
}

// runHistory calls verbs of a cluster while pods and processes of hotspare are killed at random.
func runHistory(t *testing.T, random *rand.Rand) {
	l := newLab(t)
	task := l.task()
	l.call(task, recipe.Create) // a pod is not killed often enough to fail it
	for range 6 {
		v := []recipe.Verb{recipe.Create, recipe.Stop, recipe.Start}[random.IntN(3)]
		l.mu.Lock()
		l.deaths = []int{random.IntN(9)}
		l.mu.Unlock()
		stop := l.startCall(task, v)
		for range random.IntN(4) {
			<-time.After(time.Duration(random.IntN(15)) * time.Millisecond)
			if random.IntN(2) == 0 {
				l.killPods()
			}
		}
		stop() // the Job is left to the next call
		if random.IntN(3) == 0 {
			l.restart()
		}
	}
	l.mustCall(task, recipe.Destroy)
	if left := l.w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("leaked %v: %v", left, l.w.ReadEvents(t, cluster.Name))
	}
	events := l.w.ReadEvents(t, cluster.Name)
	if recipetest.CountEvents(events, "destroyed") < 1 {
		t.Errorf("never destroyed: %v", events)
	}
}
