package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A demo on a hub that runs shows all its parts, and leaves nothing there.
func TestTheDemoOnARunningHub(t *testing.T) {
	h := shared(t)
	const most = 20 * time.Minute // alone it takes a minute and a half
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "demo")
	cmd.Env = environment("HOTSPARE_DATA_DIR="+h.dir, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	says(t, string(out),
		"in namespace hotspare-demo.", " pool create demo --size 2 --running 1 -n hotspare-demo", "Skipped: ", "--containers=false",
		"claim first has cluster demo-", "control-plane", "has fault disk-lost", "claim second has cluster demo-",
		" is hibernating\n", " is running\n", "Commands to try next:")
	broken, rescued := named(out, `local break (\S+) disk-lost`), named(out, `claim second has cluster (\S+)`)
	if broken == "" || broken == rescued {
		t.Errorf("cluster %q was broken, and the claim was given %q", broken, rescued)
	}
	// Where commands take seconds, the broken cluster may be destroyed before the pool is explained.
	_, explained, _ := strings.Cut(string(out), "explain pool demo ")
	explained, _, _ = strings.Cut(explained, "8. ")
	if strings.Contains(explained, broken) && !strings.Contains(explained, "it does not start: ") && !strings.Contains(explained, "deleting 1") {
		t.Errorf("the pool does not say why cluster %s is not used", broken)
	}
	eventually(t, "its namespace is gone", func(ctx context.Context) error {
		err := h.Get(ctx, client.ObjectKey{Name: "hotspare-demo"}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
	if left := h.hotspare(t, "cluster", "list", "-n", "hotspare-demo", "-o", "name"); left != "" {
		t.Errorf("clusters are left: %s", left)
	}
}

// named is what a pattern finds in a text; "" when that is nothing.
func named(text []byte, pattern string) string {
	if m := regexp.MustCompile(pattern).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// A demo that starts a hub of its own takes that away again when it is interrupted, and
// when it is killed, at least its processes.
func TestADemoThatIsCutShortLeavesNothing(t *testing.T) { //nolint:tparallel // its hubs start one after the other
	inParallel(t, 1)
	for name, c := range map[string]struct {
		signal syscall.Signal
		code   int
		swept  bool
	}{
		"interrupted": {syscall.SIGINT, 130, true},
		"killed":      {syscall.SIGKILL, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			said := &transcript{news: make(chan struct{}, 1)}
			cmd := exec.CommandContext(patient(t), binary, "demo")
			cmd.Env = environment("HOME="+tmp, "TMPDIR="+tmp)
			cmd.Stdout, cmd.Stderr = said, said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a cluster of the demo is being installed", func(context.Context) error {
				if !bytes.Contains([]byte(said.String()), []byte(": Installing")) {
					return errors.New(said.String())
				}
				return nil
			})
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // how it ended is in ProcessState
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d, want %d\n%s", code, c.code, said)
			}
			eventually(t, "its processes end", func(context.Context) error {
				left, err := processesOf(tmp)
				if err == nil && len(left) > 0 {
					err = fmt.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
				}
				return err
			})
			if left, err := filepath.Glob(filepath.Join(tmp, "hotspare-demo-*")); err != nil || c.swept && len(left) > 0 {
				t.Errorf("folders are left: %v, %v", left, err)
			}
		})
	}
}

func TestADemoNamesWhatItCannotUse(t *testing.T) {
	cmd := exec.CommandContext(patient(t), binary, "demo", "--data-dir", t.TempDir())
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("it plays without a hub")
	}
	says(t, string(out), "no hub is running on", "up --detach")
}
