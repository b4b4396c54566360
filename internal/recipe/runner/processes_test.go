package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
)

func newTask(t *testing.T, w recipetest.World) runner.Task {
	t.Helper()
	r, err := runner.Catalog{Dir: w.Catalog}.Find(&hivev1.ExecPlatform{Recipe: recipetest.Name})
	if err != nil {
		t.Fatal(err)
	}
	return runner.Task{Recipe: r, Input: recipe.Input{Name: "c", InfraID: "c-12345", With: map[string]string{"workers": "1"}}}
}

func newProcesses(t *testing.T, folder runner.Folder, secrets string) *runner.Processes {
	t.Helper()
	p, err := runner.NewProcesses(folder, runner.Options{SecretDir: secrets})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCredentialsThatAProcessLeftAreRemoved(t *testing.T) {
	folder, secrets := runner.Folder(t.TempDir()), t.TempDir()
	newProcesses(t, folder, secrets) // and is killed
	left, err := filepath.Glob(filepath.Join(secrets, "*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("found %v, %v", left, err)
	}
	if info, err := os.Stat(left[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	next := newProcesses(t, folder, secrets)
	if _, err := os.Stat(left[0]); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", left[0], err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(secrets, "*")); len(left) > 0 {
		t.Errorf("after Close, %v is left", left)
	}
}

func TestAKeyThatIsNoFileNameIsRejected(t *testing.T) {
	w := recipetest.New(t)
	p, task := newProcesses(t, runner.Folder(t.TempDir()), t.TempDir()), newTask(t, w)
	task.Secrets = map[string][]byte{"../escape": []byte("x")}
	if _, err := p.Call(t.Context(), task, recipe.Create); err == nil || !strings.Contains(err.Error(), "escape") {
		t.Errorf("got %v", err)
	}
}

func TestAnInfraIDThatIsNoNameIsRejected(t *testing.T) {
	f := runner.Folder(t.TempDir())
	for _, id := range []string{"", ".", "..", "a/b", "../a", ".trash-a"} {
		if err := f.Delete(t.Context(), runner.Key{InfraID: id}); fault.KindOf(err) != fault.Denied {
			t.Errorf("deleting %q: %v, want fault.Denied", id, err)
		}
		if err := f.WriteRecord(t.Context(), runner.Key{InfraID: id}, runner.Record{}); fault.KindOf(err) != fault.Denied {
			t.Errorf("recording %q: %v, want fault.Denied", id, err)
		}
	}
}

func TestAKubeconfigBecomesIndependentOfFiles(t *testing.T) {
	const head = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://h:1\"%s}}]\nusers: [{name: u, user: {%s}}]\n"
	for name, c := range map[string]struct{ kubeconfig, want, problem string }{
		"files are inlined":    {kubeconfig(head, ", certificate-authority: ca.crt", "token: t"), "certificate-authority-data: Q0E=", ""},
		"a file is missing":    {kubeconfig(head, ", certificate-authority: other.crt", "token: t"), "", "other.crt"},
		"a program is refused": {kubeconfig(head, "", "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}"), "", "ServiceAccount"},
		"a token of a file":    {kubeconfig(head, "", "tokenFile: token"), "", "token"},
	} {
		t.Run(name, func(t *testing.T) {
			w := recipetest.New(t)
			w.WriteProgram(t, "create", "#!/bin/sh -eu\nprintf CA >\"$HOTSPARE_DIR/ca.crt\"\ncat >\"$KUBECONFIG\" <<'END'\n"+c.kubeconfig+"END\n")
			p, task := newProcesses(t, runner.Folder(t.TempDir()), t.TempDir()), newTask(t, w)
			if _, err := p.Call(t.Context(), task, recipe.Create); err != nil {
				t.Fatal(err)
			}
			raw, err := p.ReadKubeconfig(t.Context(), task)
			if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) || !strings.Contains(string(raw), c.want) {
				t.Errorf("got %s, %v", raw, err)
			}
		})
	}
}

func kubeconfig(format, cluster, user string) string {
	return strings.Replace(strings.Replace(format, "%s", cluster, 1), "%s", user, 1)
}

func TestTheLogOfPrepareIsKeptUntilTheClusterHasALog(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "prepare", "#!/bin/sh\necho the region is unknown >&2\n[ -e \"$STANDIN_HOME/let\" ] || exit 1\necho '{\"apiVersion\":\"recipe.hotspare.io/v1\",\"infraID\":\"c-12345\"}'\n")
	folder := runner.Folder(t.TempDir())
	p, task := newProcesses(t, folder, t.TempDir()), newTask(t, w)
	task.Input.UID = "7f3c1d2e"
	path := folder.PrepareLogPath(task.Input.UID)
	for range 2 { // the second replaces the log of the first
		if _, err := p.Prepare(t.Context(), task); err == nil {
			t.Fatal("prepare succeeds")
		}
		if raw, err := os.ReadFile(path); err != nil || strings.Count(string(raw), "the region is unknown") != 1 {
			t.Fatalf("the log of prepare is %q, %v", raw, err)
		}
	}
	newProcesses(t, folder, t.TempDir()) // another process keeps it
	if err := os.WriteFile(filepath.Join(w.Home, "let"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Prepare(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Call(t.Context(), task, recipe.Create); err != nil {
		t.Fatal(err)
	}
	if raw, err := folder.ReadCompleteLog(task.Input.InfraID); err != nil || !strings.Contains(string(raw), "the region is unknown") {
		t.Errorf("the log of the cluster is %q, %v, want that of prepare", raw, err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the log of prepare is still there: %v", err)
	}
}

func TestTheLogOfPrepareOfALostClusterIsRemovedAfterAWeek(t *testing.T) {
	folder := runner.Folder(t.TempDir())
	for uid, age := range map[string]time.Duration{"young": 6 * 24 * time.Hour, "old": 8 * 24 * time.Hour} {
		if err := os.WriteFile(folder.PrepareLogPath(uid), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(folder.PrepareLogPath(uid), time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	newProcesses(t, folder, t.TempDir())
	if _, err := os.Stat(folder.PrepareLogPath("young")); err != nil {
		t.Errorf("the young log: %v", err)
	}
	if _, err := os.Stat(folder.PrepareLogPath("old")); !os.IsNotExist(err) {
		t.Errorf("the old log is still there: %v", err)
	}
}

func TestNoLogOfPrepareLeavesTheFolder(t *testing.T) {
	for _, uid := range []string{"", "../../etc/x", `a\b`, "a/b"} {
		if path := runner.Folder("/data").PrepareLogPath(uid); path != "" {
			t.Errorf("%q has log %s, want none", uid, path)
		}
	}
}
