//go:build browser

package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// hub is a hotspare up process that the tests started, with its console.
type hub struct {
	dir     string
	console string // its URL, without a path
	flags   []string

	up     *exec.Cmd
	ended  chan struct{}
	output transcript
}

// startOwnHub starts a hub for one test.
func startOwnHub(t *testing.T, flags ...string) *hub {
	t.Helper()
	h, err := startHub(filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.stop(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func startHub(dir string, flags ...string) (*hub, error) {
	h := &hub{dir: dir, flags: flags}
	if err := h.start(); err != nil {
		return nil, fmt.Errorf("starting a hub: %w", err)
	}
	return h, nil
}

// link matches the link that hotspare console prints.
var link = regexp.MustCompile(`https?://\S+`)

// start runs hotspare up until it is ready.
func (h *hub) start() error {
	h.output = transcript{news: make(chan struct{}, 1)}
	h.up, h.ended = exec.Command(binary, append([]string{"up", "--data-dir", h.dir, "--containers=false"}, h.flags...)...), make(chan struct{})
	h.up.Env = environment()
	h.up.Stdout, h.up.Stderr = &h.output, &h.output
	// If the tests are killed, the process ends, too.
	h.up.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := h.up.Start(); err != nil {
		return err
	}
	go func(up *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		_ = up.Wait() // how it ended is in ProcessState
	}(h.up, h.ended)
	limit := time.After(timeout)
	for {
		select {
		case <-h.output.news:
			if strings.Contains(h.output.String(), "ready in ") {
				return h.findConsole()
			}
		case <-h.ended:
			return fmt.Errorf("hotspare up ended: %s\n%s", h.up.ProcessState, &h.output)
		case <-limit:
			return errors.Join(fmt.Errorf("hotspare up was not ready after %s\n%s", timeout, &h.output), h.up.Process.Kill())
		}
	}
}

// findConsole sets the address of the console.
func (h *hub) findConsole() error {
	at, err := h.link()
	if err != nil {
		return errors.Join(err, h.stop())
	}
	h.console = at[:strings.Index(at, "/")+2] + host(at)
	return nil
}

// link returns a link that signs a user in once.
func (h *hub) link() (string, error) {
	out, err := h.run("", "console")
	at := link.FindString(out)
	if err == nil && at == "" {
		err = fmt.Errorf("hotspare console prints no link: %q", out)
	}
	return at, err
}

// stop stops the hub. It returns an error if a process remains.
func (h *hub) stop() error {
	_ = h.up.Process.Signal(syscall.SIGCONT) // a test may have suspended it
	_ = h.up.Process.Signal(syscall.SIGTERM) // it may have exited
	select {
	case <-h.ended:
		return waitForExit("hotspare up", h.dir)
	case <-time.After(timeout):
		return errors.Join(fmt.Errorf("hotspare up did not end within %s\n%s", timeout, &h.output), h.up.Process.Kill())
	}
}

// run runs hotspare with text as its standard input.
func (h *hub) run(text string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var complaints bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stderr = environment("HOTSPARE_DATA_DIR="+h.dir), strings.NewReader(text), &complaints
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("hotspare %s: %w\n%s%s", strings.Join(args, " "), err, out, &complaints)
	}
	return string(out), err
}

// hotspare runs hotspare and returns its output. The test fails if the command fails.
func (h *hub) hotspare(tb testing.TB, args ...string) string {
	tb.Helper()
	out, err := h.run("", args...)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// apply creates objects.
func (h *hub) apply(manifests string) error {
	_, err := h.run(manifests, "kubectl", "apply", "-f", "-")
	return err
}

// environment returns this process's environment without the variables that select another hub.
func environment(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBECONFIG=") && !strings.HasPrefix(v, "HOTSPARE_") {
			out = append(out, v)
		}
	}
	return append(out, more...)
}

// transcript collects the output of a process and signals new output.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default:
	}
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
