package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A disk cannot be filled on every machine, but the size of files can be limited: a write
// beyond it fails as one on a full disk does, with another error.
func TestAHubThatCannotWriteEndsInAMessageAndLosesNothing(t *testing.T) {
	h := own(t, "--hub-only")
	database, err := os.Stat(filepath.Join(h.dir, "hub", "etcd", "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	limit := unix.Rlimit{Cur: uint64(database.Size()) + 1<<20, Max: uint64(database.Size()) + 1<<20}
	if err := unix.Prlimit(h.up.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
	var last *corev1.ConfigMap
	for n := range 500 {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("large-%d", n)}}
		o.Data = map[string]string{"text": strings.Repeat("x", 500_000)}
		if err := h.Create(t.Context(), o); err != nil {
			break
		}
		last = o
	}
	select {
	case <-h.ended:
	case <-time.After(patience):
		t.Fatalf("it runs on:\n%s", h.said)
	}
	said := h.said.String()
	says(t, said, "error: the API server has stopped: a file in "+h.dir, "ulimit -f", "run hotspare up again", "file too large")
	if strings.Contains(said, "goroutine ") || strings.Contains(said, "write error") || h.up.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d:\n%s", h.up.ProcessState.ExitCode(), said)
	}
	if last == nil {
		t.Fatal("nothing could be stored before the limit")
	}
	for _, command := range []string{"status", "pool list"} {
		refused(t, h.run(t, "", strings.Fields(command)...), "does not answer: connection refused", "hotspare up (pid ", "ended ", " ago: the API server has stopped: a file in "+h.dir, "ulimit -f")
	}
	h.restart(t)
	says(t, h.said.String(), "the last run: hotspare up (pid ", "the API server has stopped: a file in "+h.dir)
	get(t, h, last)
}
