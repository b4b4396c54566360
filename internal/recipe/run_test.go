package recipe

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
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
		if err != nil || got.Outcome != want || got.Code != code || (want == Failed) != strings.Contains(got.Problem, "create exited with code "+strconv.Itoa(code)) || (want == Done || want == InProgress) != (got.Problem == "") {
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
	if err != nil || got.Outcome != Done || !regexp.MustCompile(`^== [-0-9]{10}T[0-9:]{8}Z create c-x7\nto the log\n$`).MatchString(log.String()) {
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
			got, run, err := runScript(t, "timeouts: {create: 3s}\n", script, nil)
			if err != nil || got.Outcome != Failed || !strings.Contains(got.Problem, "create did not end within 3s: exit with code 10 to be called again") {
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

func TestAProgramThatTakesTooLongIsAdvisedToExitWith10IfItMay(t *testing.T) {
	t.Parallel()
	for _, v := range Verbs {
		advised := strings.Contains(timeoutRemedy(v), "exit with code 10")
		if outcomeAllowed := v == Create || v == Destroy || v == Start || v == Stop || v == LoadImage; advised != outcomeAllowed || !strings.Contains(timeoutRemedy(v), "timeouts."+string(v)) {
			t.Errorf("%s: %s", v, timeoutRemedy(v))
		}
	}
}

func TestAnErrorContainsTheLastLineOfTheProgram(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"a failure":              {"echo starting >&2; printf 'the quota is exceeded \\n\\n' >&2; exit 3", "create exited with code 3: the quota is exceeded"},
		"a rejection":            {"echo 'zone x does not exist' >&2; exit 20", "create rejected the request (exit code 20): zone x does not exist"},
		"a lack of capacity":     {"printf 'no hosts' >&2; exit 30", "create reported that the platform has no capacity for the cluster (exit code 30): no hosts"},
		"a rejection in silence": {"exit 20", "create rejected the request (exit code 20): see the log of the cluster for what to change"},
		"a failure in silence":   {"exit 1", "create exited with code 1, and printed no reason to standard error"},
		"a secret":               {"echo 'password: hunter2' >&2; exit 1", "create exited with code 1: password: REDACTED"},
		"a long line":            {"head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "create exited with code 1: " + strings.Repeat("x", maxLastLine) + "…"},
		"a private key":          {"echo '-----BEGIN RSA PRIVATE KEY-----' >&2; echo MIIE >&2; exit 1", "create exited with code 1: REDACTED"},
		"standard output":        {"echo answer; exit 1", "create exited with code 1, and printed no reason to standard error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := runScript(t, "", c.script, nil)
			if err != nil || got.Problem != c.want {
				t.Errorf("got %q, %v, want %q", got.Problem, err, c.want)
			}
		})
	}
}

func TestTheOutputOfLogsIsInTheLogWithoutLimitOrSecrets(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := directories.with(programs{"logs": "#!/bin/sh\necho 'export TOKEN=abc'\nhead -c 3000000 /dev/zero | tr '\\0' '\\n'\necho to standard error >&2\necho the end\n"}).load(t)
	got, err := Run{Recipe: r, Verb: Logs, Dir: t.TempDir(), Log: &log, Input: Input{Name: "c"}}.Do(t.Context())
	if err != nil || got.Outcome != Done || len(got.Answer) > 0 {
		t.Errorf("got %s with %d bytes, %v", got.Outcome, len(got.Answer), err)
	}
	for _, want := range []string{"Z logs c\nexport TOKEN=REDACTED\n", "\nto standard error\n", "\nthe end\n", "[hotspare omitted "} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log", want)
		}
	}
	if log.Len() > maxLogHead+maxLogTail+100 {
		t.Errorf("the log has %d bytes", log.Len())
	}
}

func TestAProgramThatPrintsNothingLeavesNoHeading(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	if _, _, err := runScript(t, "", "", func(r *Run) { r.Log = &log }); err != nil || log.Len() > 0 {
		t.Errorf("the log is %q, %v", log.String(), err)
	}
}

func TestAProgramThatIsBeingWrittenIsCalledAgain(t *testing.T) {
	t.Parallel()
	r := directories.load(t)
	f, err := os.OpenFile(filepath.Join(r.Dir, "create"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run{Recipe: r, Verb: Create, Dir: t.TempDir()}.Do(t.Context())
	if closing := f.Close(); closing != nil || fault.KindOf(err) != fault.Wait || !strings.Contains(err.Error(), "another program is writing it") {
		t.Errorf("got %v, %v, want fault.Wait", err, closing)
	}
}
