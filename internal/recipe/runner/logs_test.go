package runner_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/recipetest"
	"hotspare.io/hotspare/internal/recipe/runner"
)

func TestAnotherProcessRunsLogs(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "logs", "#!/bin/sh\necho \"$HOTSPARE_INFRA_ID has $RECIPE_WORKERS worker\"\necho \"with $(cat \"$HOTSPARE_SECRETS/token\")\" >&2\necho \"$HOTSPARE_SECRETS\" >\"$STANDIN_HOME/secrets-folder\"\n")
	secrets := map[string][]byte{"token": []byte("opensesame-77")}
	folder, secretDir := runner.Folder(t.TempDir()), t.TempDir()
	p, task := newProcesses(t, folder, secretDir), newTask(t, w)
	var out bytes.Buffer
	if _, err := folder.RunLogs(t.Context(), task.Input.InfraID, secrets, &out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before create: %v, want fs.ErrNotExist", err)
	}
	if _, err := p.Call(t.Context(), task, recipe.Create); err != nil {
		t.Fatal(err)
	}
	ran, err := folder.RunLogs(t.Context(), task.Input.InfraID, secrets, &out)
	if text := out.String(); err != nil || !ran || !strings.Contains(text, "Z logs c-12345\nc-12345 has 1 worker\n") || !strings.Contains(text, "\nwith REDACTED\n") {
		t.Errorf("got %t, %q, %v", ran, text, err)
	}
	used, err := os.ReadFile(filepath.Join(w.Home, "secrets-folder"))
	if _, missing := os.Stat(strings.TrimSpace(string(used))); err != nil || !strings.HasPrefix(string(used), secretDir) || !os.IsNotExist(missing) {
		t.Errorf("the credentials were in %s: %v, %v", used, missing, err)
	}
	if err := os.Remove(filepath.Join(w.Catalog, recipetest.Name, "logs")); err != nil {
		t.Fatal(err)
	}
	if ran, err := folder.RunLogs(t.Context(), task.Input.InfraID, secrets, &out); err != nil || ran {
		t.Errorf("without the program: %t, %v", ran, err)
	}
}

func TestLogsDoesNotRunDuringAnotherProgram(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "logs", "#!/bin/sh\n")
	w.WriteProgram(t, "create", "#!/bin/sh\ntouch \"$STANDIN_HOME/started\"\nwhile [ ! -e \"$STANDIN_HOME/let\" ]; do sleep 0.01; done\n")
	folder := runner.Folder(t.TempDir())
	p, task := newProcesses(t, folder, t.TempDir()), newTask(t, w)
	ended := make(chan error, 1)
	go func() {
		_, err := p.Call(t.Context(), task, recipe.Create)
		ended <- err
	}()
	waitForFile(t, filepath.Join(w.Home, "started"))
	if _, err := folder.RunLogs(t.Context(), task.Input.InfraID, nil, &bytes.Buffer{}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v, want fault.Conflict", err)
	}
	if err := os.WriteFile(filepath.Join(w.Home, "let"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// waitForFile waits until a program has created a file.
func waitForFile(t *testing.T, path string) []byte {
	t.Helper()
	for range 1000 {
		if raw, err := os.ReadFile(path); err == nil {
			return raw
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s was not created", path)
	return nil
}

func TestTheCompleteLogContainsThePreviousOne(t *testing.T) {
	w := recipetest.New(t)
	folder := runner.Folder(t.TempDir())
	p, task := newProcesses(t, folder, t.TempDir()), newTask(t, w)
	w.WriteProgram(t, "create", "#!/bin/sh\necho first >&2\nyes $(printf %0999d 0) | head -n 1000 >&2\n")
	for range 5 { // 5 MB: the log is replaced once
		if _, err := p.Call(t.Context(), task, recipe.Create); err != nil {
			t.Fatal(err)
		}
	}
	w.WriteProgram(t, "create", "#!/bin/sh\necho last >&2\n")
	if _, err := p.Call(t.Context(), task, recipe.Create); err != nil {
		t.Fatal(err)
	}
	raw, err := folder.ReadCompleteLog(task.Input.InfraID)
	if n := bytes.Count(raw, []byte("\nfirst\n")); err != nil || n != 5 || !bytes.HasSuffix(raw, []byte("\nlast\n")) {
		t.Errorf("the log has %d bytes and %d runs, %v", len(raw), n, err)
	}
	path, err := folder.LogPath(task.Input.InfraID)
	if info, statErr := os.Stat(path); err != nil || statErr != nil || info.Size() > 5<<20 || info.Mode().Perm() != 0o600 {
		t.Errorf("%s is %+v, %v, %v", path, info, err, statErr)
	}
}

func TestReadLogRemovesTheSecretsOfALog(t *testing.T) {
	folder := runner.Folder(t.TempDir())
	path, err := folder.LogPath("c-12345")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a\nkey AbCdEf123456\nuser robot-5519\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets := map[string][]byte{"aws": []byte("[default]\naws_secret_access_key = AbCdEf123456\n"), "gcp.json": []byte(`{"user":"robot-5519"}`)}
	if got := folder.ReadLog(t.Context(), runner.Key{InfraID: "c-12345"}, secrets); got != "a\nkey REDACTED\nuser REDACTED\nb\n" {
		t.Errorf("got %q", got)
	}
}

func TestWithoutCredentialsTheirFolderIsEmpty(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "create", "#!/bin/sh\necho \"<$HOTSPARE_SECRETS>\" >&2\nexit 1\n")
	p, task := newProcesses(t, runner.Folder(t.TempDir()), t.TempDir()), newTask(t, w)
	if _, err := p.Call(t.Context(), task, recipe.Create); err == nil || !strings.HasSuffix(err.Error(), "code 1: <>") {
		t.Errorf("got %v", err)
	}
}

// A process of hotspare that was killed during prepare has left a folder and a program.
func TestAProgramPrepareThatWasLeftIsKilled(t *testing.T) {
	w := recipetest.New(t)
	w.WriteProgram(t, "prepare", "#!/bin/sh\ntrap '' TERM\necho $$ >\"$STANDIN_HOME/pid.new\"\nmv \"$STANDIN_HOME/pid.new\" \"$STANDIN_HOME/pid\"\nwhile :; do sleep 0.05; done\n")
	folder := runner.Folder(t.TempDir())
	p, err := runner.NewProcesses(folder, runner.Options{SecretDir: t.TempDir(), StopGrace: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.Prepare(ctx, newTask(t, w)) // it is killed
	}()
	raw := waitForFile(t, filepath.Join(w.Home, "pid"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	newProcesses(t, folder, t.TempDir())
	<-ended // because its program has ended
	cancel()
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("process %d runs", pid)
	}
	if left, err := filepath.Glob(filepath.Join(string(folder), ".trash-*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}
