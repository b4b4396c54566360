package recipe

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runScript runs a create that consists of the given lines.
func runScript(t *testing.T, yaml, script string, change func(*Run)) (Result, Run, error) {
	t.Helper()
	r := directories.with(programs{"create": "#!/bin/sh\n" + script, FileName: directories[FileName] + yaml}).load(t)
	run := Run{
		Recipe: r, Verb: Create, Dir: filepath.Join(t.TempDir(), "state"), Secrets: t.TempDir(), StopGrace: 100 * time.Millisecond,
		Input: Input{Namespace: "ns", Name: "c", UID: "u", InfraID: "c-x7", Attempt: 2, With: map[string]string{"workers": "3", "machine-type": "large"}},
	}
	if change != nil {
		change(&run)
	}
	result, err := run.Do(t.Context())
	return result, run, err
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]Outcome{0: Done, 10: InProgress, 20: Invalid, 30: NoRoom, 1: Failed, 2: Failed, 11: Failed, 127: Failed, 255: Failed} {
		got, _, err := runScript(t, "", "exit "+strconv.Itoa(code), nil)
		if err != nil || got.Outcome != want || got.Code != code || (want == Failed) != strings.Contains(got.Problem, "create exited with code "+strconv.Itoa(code)) {
			t.Errorf("code %d: got %+v, %v", code, got, err)
		}
	}
}

func TestWhatAProgramGets(t *testing.T) {
	t.Setenv("HOTSPARE_TOKEN", "s3cret")
	t.Setenv("RECIPE_OTHER", "of somebody else")
	t.Setenv("KUBECONFIG", "/home/me/.kube/config")
	var log bytes.Buffer
	got, run, err := runScript(t, "", `env; pwd; echo to the log >&2`, func(r *Run) { r.Log = &log })
	if err != nil || got.Outcome != Done || log.String() != "to the log\n" {
		t.Fatalf("got %+v, %v, log %q", got, err, log.String())
	}
	answer := "\n" + string(got.Answer)
	for _, want := range []string{
		"HOTSPARE_DIR=" + run.Dir, "HOTSPARE_SECRETS=" + run.Secrets, "HOTSPARE_NAME=c", "HOTSPARE_INFRA_ID=c-x7", "HOTSPARE_RECIPE_DIR=" + run.Recipe.Dir,
		"RECIPE_WORKERS=3", "RECIPE_MACHINE_TYPE=large", "KUBECONFIG=" + run.Dir + "/kubeconfig", run.Dir,
	} {
		if !strings.Contains(answer, "\n"+want+"\n") {
			t.Errorf("%s is missing in %s", want, answer)
		}
	}
	for _, leaked := range []string{"HOTSPARE_TOKEN", "RECIPE_OTHER", "/home/me"} {
		if strings.Contains(answer, leaked) {
			t.Errorf("%s was passed on", leaked)
		}
	}
	raw, err := os.ReadFile(filepath.Join(run.Dir, "input.json"))
	if err != nil {
		t.Fatal(err)
	}
	var input Input
	if err := json.Unmarshal(raw, &input); err != nil || input.Verb != Create || input.APIVersion != APIVersion || input.Attempt != 2 || input.With["workers"] != "3" {
		t.Errorf("got %+v, %v", input, err)
	}
	if info, err := os.Stat(run.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the state folder has mode %v, %v", info.Mode(), err)
	}
}

func TestAProgramThatDoesNotEndIsEnded(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"it hangs":                          `echo $$ > pids; sleep 1000`,
		"it ignores SIGTERM":                `trap "" TERM; echo $$ > pids; while :; do sleep 0.05; done`,
		"a child of it hangs":               `sh -c 'trap "" TERM; echo $$ > pids; while :; do sleep 0.05; done' & wait`,
		"it exits with 0 upon SIGTERM":      `trap "exit 0" TERM; echo $$ > pids; while :; do sleep 0.05; done`,
		"it leaves a child and ends itself": `sh -c 'trap "" TERM; echo $$ > pids; while :; do sleep 0.05; done' & trap "exit 0" TERM; while :; do sleep 0.05; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, run, err := runScript(t, "timeouts: {create: 1s}\n", script, nil)
			if err != nil || got.Outcome != Failed || !strings.Contains(got.Problem, "create did not end within 1s: exit with code 10 to be called again") {
				t.Errorf("got %+v, %v", got, err)
			}
			raw, err := os.ReadFile(filepath.Join(run.Dir, "pids"))
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			waitForEnd(t, pid)
		})
	}
}

// waitForEnd waits until no process has this pid: the kernel ends it a moment after the signal.
func waitForEnd(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		if syscall.Kill(pid, 0) != nil || isZombie(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d goes on", pid)
}

func isZombie(pid int) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err != nil || strings.Contains(string(raw), ") Z ")
}

func TestARunThatIsCancelledIsAnError(t *testing.T) {
	t.Parallel()
	r := directories.with(programs{"create": "#!/bin/sh\nsleep 1000\n"}).load(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	run := Run{Recipe: r, Verb: Create, Dir: t.TempDir(), StopGrace: 100 * time.Millisecond}
	if got, err := run.Do(ctx); err == nil || !strings.Contains(err.Error(), "create of recipe directories was stopped: context canceled") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAProcessInTheBackgroundDoesNotHoldUpItsRecipe(t *testing.T) {
	t.Parallel()
	got, run, err := runScript(t, "", `sleep 1000 & echo $! > pids; echo answer`, nil)
	if err != nil || got.Outcome != Done || string(got.Answer) != "answer\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	raw, err := os.ReadFile(filepath.Join(run.Dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	// It may be the cluster: tools that run clusters as processes start them so.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process in the background is gone: %v", err)
	}
}

func TestTooMuchIsAFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"on standard output":  {`head -c 50000000 /dev/zero`, "printed more than 1048576 bytes"},
		"in the state folder": {`head -c 2000000 /dev/zero > large`, "more than 1048576 bytes in its state folder"},
		"in a deeper folder":  {`mkdir -p a/b; head -c 2000000 /dev/zero > a/b/large`, "more than 1048576 bytes in its state folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := runScript(t, "", c.script, nil)
			if err != nil || got.Outcome != Failed || !strings.Contains(got.Problem, c.want) || len(got.Answer) > MaxAnswer {
				t.Errorf("got %s, %q, %v", got.Outcome, got.Problem, err)
			}
		})
	}
}

func TestAProgramThatCannotRun(t *testing.T) {
	t.Parallel()
	r := directories.with(programs{"create": "#!/no/such/interpreter\n"}).load(t)
	if _, err := (Run{Recipe: r, Verb: Create, Dir: t.TempDir()}).Do(t.Context()); err == nil || !strings.Contains(err.Error(), "starting create of recipe directories") || !strings.Contains(err.Error(), "check that the interpreter in its first line exists") {
		t.Errorf("got %v", err)
	}
	if _, err := (Run{Recipe: r, Verb: Logs, Dir: t.TempDir()}).Do(t.Context()); err == nil || !strings.Contains(err.Error(), "recipe directories has no program logs") {
		t.Errorf("got %v", err)
	}
	got, _, err := runScript(t, "", `kill -9 $$`, nil)
	if err != nil || got.Outcome != Failed || got.Code != -1 || !strings.Contains(got.Problem, "ended by a signal (signal: killed)") {
		t.Errorf("got %+v, %v", got, err)
	}
}
