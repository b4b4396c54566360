package recipe

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

func TestTheStateFolderHasALimit(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(outside, make([]byte, 2*MaxState), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ script, want string }{
		"a large file":               {`head -c 2000000 /dev/zero >large`, "left more than 1048576 bytes"},
		"large files together":       {`for i in 1 2 3; do head -c 500000 /dev/zero >$i; done`, "left more than 1048576 bytes"},
		"too many files":             {`seq 10001 | xargs touch`, "left more than 10000 files"},
		"a link to a large file":     {`ln -s ` + outside + ` link`, ""},
		"a link to a large folder":   {`ln -s ` + filepath.Dir(outside) + ` link; ln -s / root`, ""},
		"the folder is deleted":      {`rm -rf "$HOTSPARE_DIR"`, "deleted its state folder"},
		"the folder becomes a link":  {`cd /; rm -rf "$HOTSPARE_DIR"; ln -s ` + filepath.Dir(outside) + ` "$HOTSPARE_DIR"`, "replaced its state folder"},
		"exactly as much as allowed": {`head -c 1000000 /dev/zero >large`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := runScript(t, "", c.script, nil)
			if err != nil || (got.Outcome == Failed) != (c.want != "") || !strings.Contains(got.Problem, c.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAClusterWithTooMuchStateIsDestroyed(t *testing.T) {
	t.Parallel()
	r := directories.load(t)
	run := Run{Recipe: r, Verb: Destroy, Dir: t.TempDir(), Input: Input{InfraID: "c", With: map[string]string{"world": t.TempDir()}}}
	if err := os.WriteFile(filepath.Join(run.Dir, "large"), make([]byte, 2*MaxState), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Do(t.Context()); err != nil || got.Outcome != Done {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestOneVerbOfAClusterRunsAtATime(t *testing.T) {
	t.Parallel()
	r := directories.with(programs{"create": "#!/bin/sh\necho >started\nwhile [ ! -e continue ]; do sleep 0.01; done\n", "logs": "#!/bin/sh\n"}).load(t)
	first := Run{Recipe: r, Verb: Create, Dir: t.TempDir()}
	ended := make(chan error, 1)
	go func() {
		_, err := first.Do(t.Context())
		ended <- err
	}()
	for range 500 {
		if _, err := os.Stat(filepath.Join(first.Dir, "started")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	second := Run{Recipe: r, Verb: Logs, Dir: first.Dir, LockTimeout: time.Millisecond}
	_, err := second.Do(t.Context())
	if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "another program of this cluster is running") {
		t.Errorf("the second verb gets %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := second.Do(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled verb gets %v", err)
	}
	// The second one waits.
	second.LockTimeout = time.Minute
	waited := make(chan error, 1)
	go func() {
		_, err := second.Do(t.Context())
		waited <- err
	}()
	if err := os.WriteFile(filepath.Join(first.Dir, "continue"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-ended, <-waited); err != nil {
		t.Error(err)
	}
}

func TestADaemonDoesNotInheritTheLock(t *testing.T) {
	t.Parallel()
	_, run, err := runScript(t, "", `sleep 100 >/dev/null 2>&1 & echo $! >>pids`, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killRecorded(t, run.Dir) })
	run.LockTimeout = time.Second
	if _, err := run.Do(t.Context()); err != nil {
		t.Errorf("the next verb gets %v", err)
	}
}

// killRecorded kills the processes whose IDs are in the file pids: they would outlive the test, with all
// files that the test binary has inherited.
func killRecorded(t *testing.T, dir string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Error(err)
	}
	for _, field := range strings.Fields(string(raw)) {
		pid, err := strconv.Atoi(field)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Errorf("process %s: %v", field, err)
		}
	}
}

func TestLinksAndPipesInTheStateFolderAreNotFollowed(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(target, path string) error{
		"a link": os.Symlink,
		"a pipe": func(_, path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
			if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{InputFile, KubeconfigFile} {
				if err := make(target, filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
			c := Cluster{Recipe: directories.with(programs{"create": "#!/bin/sh\n"}).load(t), Dir: dir}
			if _, err := c.Call(t.Context(), Create); err != nil {
				t.Error(err)
			}
			if raw, err := os.ReadFile(target); err != nil || string(raw) != "mine" {
				t.Errorf("the target of the link is %q, %v", raw, err)
			}
			if _, err := c.ReadKubeconfig(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeconfig is not a regular file") {
				t.Errorf("got %v", err)
			}
		})
	}
}
