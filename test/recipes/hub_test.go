//go:build realclusters

package recipes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/recipe"
)

var program = flag.String("hotspare", filepath.Join("..", "..", "bin", "hotspare"), "the program hotspare to test")

// commandTimeout is the maximum time of one command.
const commandTimeout = 10 * time.Minute

// hub is a hotspare that runs in the background, with the recipe that is tested. Its data and the
// state of the recipe's clusters are in folders of the test.
type hub struct {
	recipe               *recipe.Recipe
	program, data, state string
	// pid is that of the process; 0 if it does not run.
	pid int
	// isEmpty is true after stop: the hub has no clusters.
	isEmpty bool
}

// newHub returns a hub that does not run yet. A test that fails before it has called stop leaves no
// cluster either: cleanup deletes them.
func newHub(t *testing.T) *hub {
	t.Helper()
	if *folder == "" {
		t.Skip("no -recipe")
	}
	r, err := recipe.Load(*folder)
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(*program)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("run 'make build' first, or set -hotspare: %v", err)
	}
	h := &hub{recipe: r, program: path, data: filepath.Join(t.TempDir(), "data"), state: t.TempDir()}
	t.Setenv("XDG_STATE_HOME", h.state)
	t.Setenv("HOTSPARE_DATA_DIR", h.data)
	t.Setenv("KUBECONFIG", "")
	t.Cleanup(func() { h.cleanUp(t) })
	return h
}

// cleanUp destroys all clusters that a failed test has left, and stops the hub.
func (h *hub) cleanUp(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(h.data); err != nil || h.isEmpty {
		return
	}
	h.start(t)
	ctx := context.WithoutCancel(t.Context())
	for _, args := range [][]string{
		{h.program, "kubectl", "delete", "clusterclaims,clusterpools", "--all"},
		{h.program, "kubectl", "wait", "--for=delete", "clusterdeployments", "--all", "--all-namespaces", "--timeout=10m"},
		{h.program, "down"},
	} {
		if out, err := runCommand(ctx, args...); err != nil {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var pidPattern = regexp.MustCompile(`\(pid (\d+)\)`)

// start starts the hub, and returns when it answers. It does nothing if the hub runs.
func (h *hub) start(t *testing.T) {
	t.Helper()
	if h.pid != 0 {
		return
	}
	out, err := runCommand(context.WithoutCancel(t.Context()), h.program, "up", "--detach", "--recipes", filepath.Dir(h.recipe.Dir))
	found := pidPattern.FindStringSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("starting hotspare: %v\n%s", err, out)
	}
	if h.pid, err = strconv.Atoi(found[1]); err != nil {
		t.Fatal(err)
	}
	ready := time.Now()
	waitFor(t, "an answer of the hub", func() bool {
		out, err = runCommand(context.WithoutCancel(t.Context()), h.program, "kubectl", "get", "clusterpools,clusterclaims")
		if err != nil {
			t.Logf("%s after hotspare is ready: %s", time.Since(ready).Round(time.Millisecond), out)
		}
		return err == nil
	})
}

// stop stops the hub. It has no clusters.
func (h *hub) stop(t *testing.T) {
	t.Helper()
	h.run(t, "down")
	h.pid, h.isEmpty = 0, true
}

// kill kills the hub with SIGKILL, and returns when its process has ended. Programs of recipes continue to run.
func (h *hub) kill(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(h.pid, syscall.SIGKILL); err != nil {
		t.Fatalf("killing hotspare: %v", err)
	}
	waitFor(t, "the end of hotspare", func() bool { return errors.Is(syscall.Kill(h.pid, 0), syscall.ESRCH) })
	h.pid = 0
}

// run runs a command of hotspare and returns what it prints.
func (h *hub) run(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, append([]string{h.program}, args...)...)
}

// show logs what a user sees who runs a command of hotspare.
func (h *hub) show(t *testing.T, args ...string) {
	t.Helper()
	t.Logf("$ hotspare %s\n%s", strings.Join(args, " "), h.run(t, args...))
}

// createPool creates a pool of the recipe's clusters.
func (h *hub) createPool(t *testing.T, name string, size, running int) {
	t.Helper()
	parameters := ""
	for _, name := range slices.Sorted(maps.Keys(with)) {
		parameters += fmt.Sprintf("        %s: %q\n", name, with[name])
	}
	if parameters != "" {
		parameters = "      with:\n" + parameters
	}
	manifest := filepath.Join(t.TempDir(), "pool.yaml")
	text := fmt.Sprintf(`apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata:
  name: %s
spec:
  size: %d
  runningCount: %d
  baseDomain: local.hotspare.io
  imageSetRef:
    name: kubernetes
  platform:
    exec:
      recipe: %s
%s`, name, size, running, h.recipe.Name, parameters)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t, "kubectl", "apply", "-f", manifest)
}

// field returns a field of an object on the hub; "" if the field or the object does not exist.
func (h *hub) field(t *testing.T, path string, object ...string) string {
	t.Helper()
	args := append([]string{"kubectl", "get", "--ignore-not-found", "-o", "jsonpath={" + path + "}"}, object...)
	return strings.TrimSpace(h.run(t, args...))
}

// waitFor polls until reached returns true.
func waitFor(t *testing.T, goal string, reached func() bool) {
	t.Helper()
	deadline := time.Now().Add(commandTimeout)
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", commandTimeout, goal)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// run runs a command and returns its standard output and standard error.
func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := runCommand(t.Context(), args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func runCommand(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second // what runs in the background has inherited the output
	out, err := cmd.CombinedOutput()
	return string(out), err
}
