package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quickly is how soon a start that cannot succeed ends, and one that is told to stop.
const quickly = time.Minute

func TestADamagedHubSaysSo(t *testing.T) { //nolint:tparallel // each is short
	h := own(t)
	if err := h.down(); err != nil {
		t.Fatal(err)
	}
	database := filepath.Join("hub", "etcd", "member", "snap", "db")
	logs := filepath.Join("hub", "etcd", "member", "wal", "*.wal")
	for name, damage := range map[string]func(dir string) error{
		"a log that was cut":      func(dir string) error { return truncateAll(filepath.Join(dir, logs), 10000) },
		"a log that is empty":     func(dir string) error { return truncateAll(filepath.Join(dir, logs), 0) },
		"a database that was cut": func(dir string) error { return os.Truncate(filepath.Join(dir, database), 100<<10) },
		"a database of garbage": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, database), []byte(strings.Repeat("garbage", 100000)), 0o600)
		},
		"an empty database": func(dir string) error { return os.Truncate(filepath.Join(dir, database), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir, os.DirFS(h.dir)); err != nil {
				t.Fatal(err)
			}
			if err := damage(dir); err != nil {
				t.Fatal(err)
			}
			code, said := failing(t, "up", "--data-dir", dir)
			if code != 1 || !strings.Contains(said, "it cannot be read (") || !strings.Contains(said, "restore a backup, or remove the folder") {
				t.Errorf("exit code %d\n%s", code, said)
			}
			if strings.Contains(said, "goroutine ") {
				t.Errorf("it panics:\n%s", said)
			}
		})
	}
}

func TestTooFewFilesAreNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	said, err := exec.Command("bash", "-c", `ulimit -n 256; exec "$@"`, "bash", binary, "up", "--data-dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(said), "can open 256 files, and hotspare needs 640") || strings.Contains(string(said), "remove") {
		t.Errorf("%v\n%s", err, said)
	}
}

// A hub that starts can be told to stop at any time.
func TestAStartThatIsToldToStopEnds(t *testing.T) {
	inParallel(t, 1)
	for _, after := range []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second} {
		up := exec.Command(binary, "up", "--data-dir", filepath.Join(t.TempDir(), "data"))
		if err := up.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- up.Wait() }()
		time.Sleep(after) // a start has no steps to wait for
		if err := up.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		select {
		case <-ended:
			t.Logf("told after %s, it ended in %s", after, time.Since(began))
		case <-time.After(quickly):
			t.Errorf("told after %s, it has not ended in %s", after, quickly)
			_ = up.Process.Kill() // it is to be gone
		}
	}
}

func failing(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("it goes on for %s: %v\n%s", patience, err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func truncateAll(pattern string, size int64) error {
	names, err := filepath.Glob(pattern)
	for _, name := range names {
		if err == nil {
			err = os.Truncate(name, size)
		}
	}
	return err
}
