package recipe

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// survivor is a shell command that ignores SIGTERM, writes its process ID to the file pids, and runs
// until it is killed.
const survivor = `trap "" TERM HUP; echo $$ >pids; while :; do sleep 0.05; done`

// readPID reads the process ID that a script has written.
func readPID(t *testing.T, dir string) int {
	t.Helper()
	for range 500 {
		raw, err := os.ReadFile(filepath.Join(dir, "pids"))
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && bad == nil {
			return pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the script has written no process ID")
	return 0
}

func TestAKilledVerbLeavesNoProcessInAnotherSession(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"setsid":                  `setsid sh -c '` + survivor + `' & sleep 1000`,
		"setsid and a new parent": `(setsid sh -c '` + survivor + `' >/dev/null 2>&1 &) ; sleep 1000`,
		"setsid below setsid":     `setsid sh -c "setsid sh -c '` + strings.NewReplacer(`"`, `\"`, `$`, `\$`).Replace(survivor) + `' & sleep 1000" & sleep 1000`,
		"the program exits with 0 upon SIGTERM": `setsid sh -c '` + survivor + `' >/dev/null 2>&1 &
			trap "exit 0" TERM; while :; do sleep 0.05; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, run, err := runScript(t, "timeouts: {create: 3s}\n", script, nil)
			if err != nil || got.Outcome != Failed {
				t.Errorf("got %+v, %v", got, err)
			}
			waitForEnd(t, readPID(t, run.Dir))
		})
	}
}

func TestACanceledVerbLeavesNoProcessInAnotherSession(t *testing.T) {
	t.Parallel()
	r := directories.with(programs{"create": "#!/bin/sh\nsetsid sh -c '" + survivor + "' & sleep 1000\n"}).load(t)
	ctx, cancel := context.WithCancel(t.Context())
	run := Run{Recipe: r, Verb: Create, Dir: t.TempDir(), StopGrace: time.Millisecond}
	ended := make(chan error, 1)
	go func() {
		_, err := run.Do(ctx)
		ended <- err
	}()
	pid := readPID(t, run.Dir)
	cancel()
	if err := <-ended; err == nil {
		t.Error("a canceled run has no error")
	}
	waitForEnd(t, pid)
}

func TestAVerbThatSucceedsKeepsItsDaemons(t *testing.T) {
	t.Parallel()
	_, run, err := runScript(t, "", `setsid sh -c '`+survivor+`' >/dev/null 2>&1 &`, nil)
	if err != nil {
		t.Fatal(err)
	}
	pid := readPID(t, run.Dir)
	// A later verb of the same cluster is killed, and does not own the daemon.
	stop := run
	stop.Recipe = directories.with(programs{"stop": "#!/bin/sh\nsleep 1000\n", FileName: directories[FileName] + "timeouts: {stop: 3s}\n"}).load(t)
	stop.Verb = Stop
	if got, err := stop.Do(t.Context()); err != nil || got.Outcome != Failed {
		t.Errorf("got %+v, %v", got, err)
	}
	if isZombie(pid) {
		t.Error("the daemon has ended")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the daemon has ended: %v", err)
	}
}

func TestTheNextRunKillsWhatAKilledHotspareLeft(t *testing.T) {
	t.Parallel()
	_, run, err := runScript(t, "", `echo "$HOTSPARE_RUN" >marker; setsid sh -c '`+survivor+`' >/dev/null 2>&1 &`, nil)
	if err != nil {
		t.Fatal(err)
	}
	pid := readPID(t, run.Dir)
	if _, err := os.Stat(filepath.Join(run.Dir, markerFile)); err == nil {
		t.Error("a run that has ended left its marker")
	}
	// The marker of a run that has not ended.
	if err := os.Rename(filepath.Join(run.Dir, "marker"), filepath.Join(run.Dir, markerFile)); err != nil {
		t.Fatal(err)
	}
	run.Verb, run.Input.With["world"] = Destroy, t.TempDir()
	if got, err := run.Do(t.Context()); err != nil || got.Outcome != Done {
		t.Errorf("got %+v, %v", got, err)
	}
	waitForEnd(t, pid)
}

func TestAForkBombIsStopped(t *testing.T) {
	t.Parallel()
	got, _, err := runScript(t, "", `for i in $(seq 40); do setsid sleep 1000 & done; echo started >&2; wait`, func(r *Run) { r.MaxProcesses = 20 })
	if err != nil || got.Outcome != Failed || got.Problem != "create started more than 20 processes; its last line: started" {
		t.Errorf("got %+v, %v", got, err)
	}
}
