package exec_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe/recipetest"
)

// rig is one process of hotspare with one cluster.
type rig struct {
	*process
	w   recipetest.World
	dir string
	req install.Request
	md  install.Metadata
}

func newRig(t *testing.T, secrets map[string][]byte) *rig {
	t.Helper()
	r := &rig{w: recipetest.New(t), dir: t.TempDir(), req: newRequest("c")}
	r.process = start(t, r.w, r.dir, func(_ context.Context, key types.NamespacedName) (map[string][]byte, error) {
		if secrets == nil || key != (types.NamespacedName{Namespace: "ns-c", Name: "creds"}) {
			return nil, fault.NewDenied("Secret %s in namespace %s does not exist: create it", key.Name, key.Namespace)
		}
		return secrets, nil
	})
	t.Cleanup(func() { r.end() }) // of the process at that time
	if secrets != nil {
		r.req.Platform.Exec.CredentialsSecretRef = &corev1.LocalObjectReference{Name: "creds"}
	}
	return r
}

// install prepares and installs the attempt.
func (r *rig) install(t *testing.T) (install.Result, error) {
	t.Helper()
	if r.md.InfraID == "" {
		var err error
		if r.md, err = waitForMetadata(t, func() (install.Metadata, error) { return r.executor.Prepare(t.Context(), r.req) }); err != nil {
			t.Fatal(err)
		}
	}
	return wait(t, func() (install.Result, error) { return r.executor.Install(t.Context(), r.req, r.md) })
}

// waitForMetadata calls prepare until it no longer waits.
func waitForMetadata(t testing.TB, prepare func() (install.Metadata, error)) (md install.Metadata, err error) {
	t.Helper()
	_, err = wait(t, func() (install.Result, error) {
		var err error
		md, err = prepare()
		return install.Result{Phase: install.Succeeded}, err
	})
	return md, err
}

func TestAClusterIsCreatedWithMetadataThatDestroysIt(t *testing.T) {
	r := newRig(t, nil)
	got, err := r.install(t)
	if err != nil || got.Phase != install.Succeeded || got.APIURL != "https://127.0.0.1:6443" || !strings.Contains(string(got.Kubeconfig), "kind: Config") {
		t.Fatalf("got %+v, %v", got, err)
	}
	var md map[string]any
	if err := json.Unmarshal(r.md.Raw, &md); err != nil || md["infraID"] != r.md.InfraID || md["clusterID"] != r.md.ClusterID || md["clusterName"] != "c" {
		t.Errorf("metadata.json is %s, %v", r.md.Raw, err)
	}
	// Another process, without any state, destroys it.
	r.end()
	other := start(t, r.w, t.TempDir(), nil)
	defer other.end()
	if got, err := wait(t, func() (install.Result, error) { return other.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md) }); err != nil || got.Phase != install.Succeeded {
		t.Errorf("destroying: %+v, %v", got, err)
	}
	if left := r.w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestARejectedRequestIsNotRepeatedUntilItChanges(t *testing.T) {
	r := newRig(t, nil)
	r.w.SetFault(t, "c", "create", 20)
	for range 3 {
		if _, err := r.install(t); fault.KindOf(err) != fault.Denied {
			t.Fatalf("got %v, want fault.Denied", err)
		}
	}
	if n := recipetest.CountEvents(r.w.ReadEvents(t, "c"), "create"); n != 1 {
		t.Errorf("create ran %d times, want once", n)
	}
	r.req.Platform.Exec.With = map[string]hivev1.ExecParameter{"workers": "2"}
	if got, err := r.install(t); err != nil || got.Phase != install.Succeeded {
		t.Errorf("after the change: %+v, %v", got, err)
	}
}

func TestAPlatformWithoutCapacityLimitsThePool(t *testing.T) {
	r := newRig(t, nil)
	r.w.WriteProgram(t, "create", "#!/bin/sh\nexit 30\n")
	md, err := r.executor.Prepare(t.Context(), r.req)
	if err != nil {
		t.Fatal(err)
	}
	r.executor.RetryNoRoom = patience // before the first call
	for {
		_, err = r.executor.Install(t.Context(), r.req, md)
		if err != nil {
			break
		}
	}
	if fault.KindOf(err) != fault.Capacity {
		t.Errorf("install returns %v, want fault.Capacity", err)
	}
	if n, why := r.executor.CountFits(r.req.Platform); n == nil || *n != 0 || !strings.Contains(why, "capacity") {
		t.Errorf("%v clusters fit: %s", n, why)
	}
}

func TestAFailedAttemptReportsTheEndOfTheLogWithoutSecrets(t *testing.T) {
	const secret = "correct-horse-battery"
	r := newRig(t, map[string][]byte{"token": []byte(secret + "\n")})
	r.w.WriteProgram(t, "create", `#!/bin/sh
[ "$(stat -c %a "$HOTSPARE_SECRETS/token")" = 600 ] || echo "the file's mode is wrong"
env | grep -q battery && echo "the secret is in the environment" >&2
echo "$HOTSPARE_SECRETS" >"$STANDIN_HOME/secrets-folder"
echo "login with $(cat "$HOTSPARE_SECRETS/token") refused" >&2
exit 3
`)
	got, err := r.install(t)
	if err != nil || got.Phase != install.Failed {
		t.Fatalf("got %+v, %v", got, err)
	}
	if strings.Contains(got.Log, "battery") || !strings.Contains(got.Log, "refused") || !strings.Contains(got.Log, "code 3") || strings.Contains(got.Log, "environment") {
		t.Errorf("the log is %q", got.Log)
	}
	folder, err := os.ReadFile(filepath.Join(r.w.Home, "secrets-folder"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(folder))); !os.IsNotExist(err) {
		t.Errorf("the credentials are left in %s: %v", folder, err)
	}
	filepath.WalkDir(r.dir, func(path string, _ os.DirEntry, err error) error { // it only reports
		if raw, readErr := os.ReadFile(path); readErr == nil && strings.Contains(string(raw), secret) {
			t.Errorf("%s contains the secret", path)
		}
		return err
	})
}

func TestAMissingSecretIsNamed(t *testing.T) {
	r := newRig(t, nil)
	r.req.Platform.Exec.CredentialsSecretRef = &corev1.LocalObjectReference{Name: "aws"}
	if _, err := r.executor.Prepare(t.Context(), r.req); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "aws") {
		t.Errorf("got %v", err)
	}
}

func TestAnotherClusterCannotUseTheInfraID(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.install(t); err != nil {
		t.Fatal(err)
	}
	thief := newRequest("thief")
	if _, err := r.executor.Install(t.Context(), thief, r.md); fault.KindOf(err) != fault.Denied {
		t.Errorf("installing: %v, want fault.Denied", err)
	}
	if _, err := r.executor.Destroy(t.Context(), thief.ClusterTarget, r.md); fault.KindOf(err) != fault.Denied {
		t.Errorf("destroying: %v, want fault.Denied", err)
	}
}

func TestDestroyThatFailsIsReportedEachTimeAndRepeated(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.install(t); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.w.SetFault(t, "c", "destroy", 7)
		got, err := wait(t, func() (install.Result, error) { return r.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md) })
		if err != nil || got.Phase != install.Failed || !strings.Contains(got.Log, "code 7") {
			t.Errorf("got %+v, %v", got, err)
		}
		r.clock.Step(r.executor.Pause) // a call before that reports the same failure
	}
	if got, err := wait(t, func() (install.Result, error) { return r.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md) }); err != nil || got.Phase != install.Succeeded {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAFailureOfDestroyStartsNoSecondDestructionAtOnce(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.install(t); err != nil {
		t.Fatal(err)
	}
	r.w.WriteProgram(t, "destroy", "#!/bin/sh\necho run >>\"$STANDIN_HOME/destroys\"\nexit 7\n")
	r.executor.Pause = patience // before the first destruction
	for range 3 {
		if got, err := wait(t, func() (install.Result, error) { return r.executor.Destroy(t.Context(), r.req.ClusterTarget, r.md) }); err != nil || got.Phase != install.Failed {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if runs, err := os.ReadFile(filepath.Join(r.w.Home, "destroys")); err != nil || string(runs) != "run\n" {
		t.Errorf("destroy ran %q, %v, want once", runs, err)
	}
}

func TestACreationWithoutMachinesHasFailed(t *testing.T) {
	r := newRig(t, nil)
	r.w.WriteProgram(t, "observe", `#!/bin/sh
echo '{"apiVersion":"recipe.hotspare.io/v1","machines":[]}'
`)
	got, err := r.install(t)
	if err != nil || got.Phase != install.Failed || !strings.Contains(got.Log, "observe lists no machines") {
		t.Errorf("got %+v, %v, want a failure that names observe", got, err)
	}
}

func TestAnObserveThatFailsDestroysNoNewCluster(t *testing.T) {
	r := newRig(t, nil)
	r.w.WriteProgram(t, "observe", "#!/bin/sh\nexit 1\n")
	if got, err := r.install(t); err != nil || got.Phase != install.Succeeded {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAProcessThatIsKilledLeavesNoSecondProgram(t *testing.T) {
	r := newRig(t, nil)
	r.w.WriteProgram(t, "create", "#!/bin/sh -eu\n. \"$HOTSPARE_RECIPE_DIR/common\"\nmkdir -p \"$home/master-0\"\n[ -e \"$STANDIN_HOME/let\" ] || sleep 60\necho Running >\"$home/master-0/state\"\n"+
		"printf 'apiVersion: v1\\nkind: Config\\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}]\\n' >\"$KUBECONFIG\"\n")
	child := startChild(t, r)
	for recipetest.CountEvents(r.w.ReadEvents(t, "c"), "create") == 0 {
		child.checkRuns(t)
	}
	child.kill(t) // the program create sleeps on
	r.end()
	r.process = start(t, r.w, r.dir, nil)
	if err := os.WriteFile(filepath.Join(r.w.Home, "let"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := r.install(t); err != nil || got.Phase != install.Succeeded {
		t.Fatalf("got %+v, %v", got, err)
	}
	events := r.w.ReadEvents(t, "c")
	if recipetest.CountEvents(events, "create") != 2 || recipetest.CountEvents(events, "BROKEN") != 0 {
		t.Errorf("got %v, want create twice, and never two at once", events)
	}
}
