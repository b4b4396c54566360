package e2e

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
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// hub is a hotspare up that the tests have started, with a client.
type hub struct {
	client.WithWatch
	dir string // the data folder
	url string
	// flags are those of hotspare up beside its own.
	flags []string
	up    *exec.Cmd
	// ended is closed when the process has.
	ended chan struct{}
	// said is what it has printed.
	said *transcript
}

// own starts a hub for one test, which runs in parallel with others.
func own(t *testing.T, flags ...string) *hub {
	t.Helper()
	turns.announce(1)
	t.Parallel()
	turns.arrive(t, 1)
	return startOwn(t, flags...)
}

// another starts one more hub for a test that runs in parallel with others.
func another(t *testing.T, flags ...string) *hub {
	t.Helper()
	turns.takeHub(t)
	return startOwn(t, flags...)
}

// startOwn starts a hub for which there is room, until t ends.
func startOwn(t *testing.T, flags ...string) *hub {
	t.Helper()
	h, err := start(filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatalf("starting a hub: %v", err)
	}
	t.Cleanup(func() {
		if err := h.down(); err != nil {
			t.Errorf("stopping the hub: %v", err)
		}
		if t.Failed() {
			t.Logf("what the hub printed:\n%s", h.said)
		}
	})
	return h
}

func start(dir string, flags ...string) (*hub, error) {
	h := &hub{dir: dir, flags: flags}
	if err := h.start(); err != nil {
		return nil, err
	}
	config, err := h.config()
	if err != nil {
		return nil, errors.Join(err, h.down())
	}
	config.QPS = -1
	if h.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: kinds()}); err != nil {
		return nil, errors.Join(err, h.down())
	}
	return h, nil
}

func (h *hub) config() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", h.kubeconfig())
}

func (h *hub) kubeconfig() string { return filepath.Join(h.dir, "kubeconfig") }
func (h *hub) machines() string   { return filepath.Join(h.dir, "machines") }
func (h *hub) installs() string   { return filepath.Join(h.dir, "installs") }
func (h *hub) log() string        { return filepath.Join(h.dir, "hotspare.log") }

// kinds is the scheme of the tests' clients.
var kinds = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		panic(err) // a mistake in a package
	}
	return s
})

// readyLine is what hotspare up prints when it can be used.
var readyLine = regexp.MustCompile(`(?m)^ready in .*: (https://\S+)$`)

// start runs hotspare up until it says that it is ready.
func (h *hub) start() error {
	h.said = &transcript{news: make(chan struct{}, 1)}
	up, ended := exec.Command(binary, append([]string{"up", "--data-dir", h.dir}, h.flags...)...), make(chan struct{})
	up.Env = environment()
	up.Stdout, up.Stderr = h.said, h.said
	if err := up.Start(); err != nil {
		return err
	}
	go func() {
		defer close(ended)
		_ = up.Wait() // how it ended is in ProcessState
	}()
	h.up, h.ended = up, ended
	limit := time.After(patience)
	for {
		select {
		case <-h.said.news:
			if found := readyLine.FindStringSubmatch(h.said.String()); found != nil {
				h.url = found[1]
				return nil
			}
		case <-h.ended:
			return fmt.Errorf("hotspare up ended: %s\n%s", up.ProcessState, h.said)
		case <-limit:
			return errors.Join(fmt.Errorf("hotspare up was not ready after %s\n%s", patience, h.said), h.up.Process.Kill())
		}
	}
}

// restart starts the hub again on the same data.
func (h *hub) restart(t *testing.T) {
	t.Helper()
	if err := h.start(); err != nil {
		t.Fatalf("starting the hub again: %v", err)
	}
}

// kill ends the hub as a power cut does, and waits until its machines have noticed.
func (h *hub) kill(t *testing.T) {
	t.Helper()
	if err := h.up.Process.Kill(); err != nil {
		t.Fatalf("killing the hub: %v", err)
	}
	<-h.ended
	eventually(t, "machines end with the hub that was killed", func(context.Context) error { return h.silent() })
}

// down stops the hub with hotspare down; nothing of it may remain. A hub that does
// not run is none the worse.
func (h *hub) down() error {
	cmd := exec.Command(binary, "down", "--data-dir", h.dir)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("hotspare down: %w\n%s", err, out), h.up.Process.Kill())
	}
	select {
	case <-h.ended:
		return h.silent()
	case <-time.After(patience):
		return errors.Join(errors.New("hotspare down has returned, but hotspare up runs on"), h.up.Process.Kill())
	}
}

// silent is an error while processes of the hub run.
func (h *hub) silent() error {
	left, err := processesOf(h.dir)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("processes are left:\n%s", strings.Join(left, "\n"))
	}
	return err
}

// environment is this process's without what would point hotspare to another hub.
func environment(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "KUBECONFIG=") && !strings.HasPrefix(v, "HOTSPARE_") {
			out = append(out, v)
		}
	}
	out = append(out, "HOTSPARE_CONTAINERS=false") // package test/containers tests containers
	return append(out, more...)
}

// transcript collects what a process prints, and tells of news.
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
