package hostfacts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"hotspare.io/hotspare/internal/doctor"
)

func TestVersionsOfPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		content program
		version string
		err     string
	}{
		"one that asks for the flag":       {program("#!/bin/sh\n[ \"$*\" = --version ] && echo v1.6\n"), "v1.6", ""},
		"one that fails":                   {program("#!/bin/sh\necho v1.6\nexit 3\n"), "", "exit status 3"},
		"one that prints nothing":          {program("#!/bin/sh\n"), "", ""},
		"one that prints to another place": {program("#!/bin/sh\necho v1.6 >&2\n"), "", ""},
		"one that is killed":               {program("#!/bin/sh\nkill -9 $$\n"), "", "signal: killed"},
		"one for another machine":          {program("\x7fELF garbage"), "", "exec format error"},
		"one without its interpreter":      {program("#!/no/such/shell\n"), "", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, map[string]any{"usr/bin/runc": c.content})
			want := map[string]doctor.Program{doctor.Runc: {Path: "/usr/bin/runc", Version: c.version, Err: c.err}}
			if diff := cmp.Diff(want, h.readPrograms(t.Context())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAProgramThatNeverEndsIsKilledWithItsChildren(t *testing.T) {
	for name, script := range map[string]string{
		"it waits for a child":  "sleep 600 &\necho $! >\"${0%/*}/child\"\nwait\n",
		"it ignores signals":    "trap '' TERM INT HUP\nsleep 600 &\necho $! >\"${0%/*}/child\"\nwait\n",
		"it writes without end": "yes &\necho $! >\"${0%/*}/child\"\nwait\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, map[string]any{"usr/bin/containerd": program("#!/bin/sh\n" + script), "usr/bin/runc": prints("runc version 1.1.5")})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			child := filepath.Join(h.root, "usr/bin/child")
			go func() { // the caller gives up as soon as the child runs
				waitFor(ctx, func() bool { return pidIn(child) > 0 })
				cancel(context.Canceled)
			}()
			p := h.readPrograms(ctx)[doctor.Containerd]
			if p.Err != "context canceled" || p.Version != "" {
				t.Errorf("%+v", p)
			}
			pid := pidIn(child)
			if pid == 0 {
				t.Fatal("the program did not start its child")
			}
			t.Cleanup(func() {
				if t.Failed() {
					_ = unix.Kill(pid, unix.SIGKILL) // it may be gone
				}
			})
			if !waitFor(t.Context(), func() bool { return !isRunning(pid) }) {
				t.Errorf("its child %d still runs", pid)
			}
		})
	}
}

func TestAProgramThatHangsHasAFewSeconds(t *testing.T) {
	h := newHost(t, map[string]any{"usr/bin/containerd": program("#!/bin/sh\nexec sleep 600\n")})
	h.timeout = 20 * time.Millisecond
	want := map[string]doctor.Program{doctor.Containerd: {Path: "/usr/bin/containerd", Err: "no answer after 20ms"}}
	if diff := cmp.Diff(want, h.readPrograms(t.Context())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if versionTimeout != 5*time.Second {
		t.Errorf("the documented time is 5 s, not %s", versionTimeout)
	}
}

// waitFor waits until a condition is met, for some seconds at most, and reports whether it is.
func waitFor(ctx context.Context, met func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// pidIn returns the process ID in a file; 0 if there is none yet.
func pidIn(path string) int {
	raw, err := os.ReadFile(path)
	var pid int
	if n, scanErr := fmt.Sscanf(string(raw), "%d\n", &pid); err != nil || scanErr != nil || n != 1 || !strings.HasSuffix(string(raw), "\n") {
		return 0
	}
	return pid
}

// isRunning reports whether a process exists and is no zombie.
func isRunning(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(raw), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func TestRelativeFoldersOfThePathAreSkipped(t *testing.T) {
	h := newHost(t, map[string]any{"runc": prints("v1"), "bin/runc": prints("v2")})
	t.Chdir(h.root)
	h.searchPath = ".::bin:relative"
	if got := h.findProgram("runc"); got != "" {
		t.Errorf("found %s", got)
	}
	h.searchPath += ":/bin"
	if got := h.findProgram("runc"); got != "/bin/runc" {
		t.Errorf("found %q", got)
	}
}

func TestOutputOfAProgramIsCut(t *testing.T) {
	h := newHost(t, map[string]any{"usr/bin/runc": program("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x\n")})
	if got := h.readPrograms(t.Context())[doctor.Runc]; len(got.Version) != maxFirstBytes || got.Err != "" {
		t.Errorf("%d bytes, error %q", len(got.Version), got.Err)
	}
}
