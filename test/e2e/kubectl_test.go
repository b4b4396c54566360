package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// result is how a command ended.
type result struct {
	out, err string
	code     int
}

// all is everything it printed.
func (r result) all() string { return r.err + r.out }

// run runs the binary on the hub, with text as its input. On a busy computer a hub may not complete a TLS handshake within
// kubectl's ten seconds: kubectl, which has sent nothing then, runs again, except to create something.
func (h *hub) run(t *testing.T, input string, args ...string) result {
	t.Helper()
	began := time.Now()
	r := h.runOnce(t, input, args...)
	for r.code != 0 && args[0] == "kubectl" && !slices.Contains(args, "create") && !slices.Contains(args, "--kubeconfig") &&
		strings.Contains(r.err, "TLS handshake timeout") && time.Since(began) < patience {
		r = h.runOnce(t, input, args...)
	}
	return r
}

func (h *hub) runOnce(t *testing.T, input string, args ...string) result {
	t.Helper()
	cmd := h.command(t, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running hotspare %s: %v", strings.Join(args, " "), err)
	}
	return result{out: out.String(), err: errs.String(), code: cmd.ProcessState.ExitCode()}
}

func (h *hub) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(patient(t), binary, args...)
	cmd.Env = environment("HOTSPARE_DATA_DIR=" + h.dir)
	return cmd
}

// hotspare returns what a command prints that must succeed.
func (h *hub) hotspare(t *testing.T, args ...string) string {
	t.Helper()
	r := h.run(t, "", args...)
	if r.code != 0 {
		t.Fatalf("hotspare %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.all())
	}
	return r.out
}

// kubectl returns what a kubectl command prints that must succeed.
func (h *hub) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return h.hotspare(t, append([]string{"kubectl"}, args...)...)
}

// apply hands a manifest to kubectl apply.
func (h *hub) apply(t *testing.T, manifest string, flags ...string) result {
	t.Helper()
	return h.run(t, manifest, append([]string{"kubectl", "apply", "-f", "-"}, flags...)...)
}

// refused checks that a command failed with a message that has all these parts.
func refused(t *testing.T, r result, parts ...string) {
	t.Helper()
	if r.code == 0 {
		t.Errorf("it was accepted:\n%s", r.all())
	}
	says(t, r.all(), parts...)
}

// says checks that a text has all these parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("it does not say %q:\n%s", part, text)
		}
	}
}

// eventsSay waits until the events of a namespace that have a reason say all parts. Events are written after what they
// are about, and at most 25 in a second.
func (h *hub) eventsSay(t *testing.T, ns, reason string, parts ...string) {
	t.Helper()
	eventually(t, "events of reason "+reason, func(context.Context) error {
		events := h.kubectl(t, "get", "events", "-n", ns, "--field-selector", "reason="+reason)
		for _, part := range parts {
			if !strings.Contains(events, part) {
				return fmt.Errorf("none says %q:\n%s", part, events)
			}
		}
		return nil
	})
}
