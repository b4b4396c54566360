package hivetypes

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience bounds every wait.
const patience = 5 * time.Minute

// hub is a hotspare up with a client that has Hive's types, and nothing of hotspare's.
type hub struct {
	client.WithWatch
	config *rest.Config
	dir    string
}

// start runs the built binary, and stops it when the test ends.
func start(t *testing.T) *hub {
	t.Helper()
	binary := os.Getenv("HOTSPARE_BINARY")
	if binary == "" {
		binary = filepath.Join("..", "..", "bin", "hotspare")
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("this test drives the built binary: run 'make build' first, or set HOTSPARE_BINARY (%v)", err)
	}
	h := &hub{dir: filepath.Join(t.TempDir(), "data")}
	said := &output{}
	up := exec.Command(binary, "up", "--data-dir", h.dir, "--containers=false")
	up.Stdout, up.Stderr = said, said
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(binary, "down", "--data-dir", h.dir).CombinedOutput(); err != nil {
			t.Errorf("hotspare down: %v\n%s", err, out)
		}
		_ = up.Wait() // how it ended is not what is tested
		if t.Failed() {
			t.Logf("the hub printed:\n%s", said)
		}
	})
	ready := regexp.MustCompile(`(?m)^ready in `)
	h.eventually(t, "the hub is ready", func(context.Context) error {
		if !ready.MatchString(said.String()) {
			return fmt.Errorf("it printed:\n%s", said)
		}
		return nil
	})
	var err error
	if h.config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(h.dir, "kubeconfig")); err != nil {
		t.Fatal(err)
	}
	h.config.QPS = -1
	if h.WithWatch, err = client.NewWithWatch(h.config, client.Options{Scheme: scheme(t)}); err != nil {
		t.Fatal(err)
	}
	return h
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{hivev1.AddToScheme, clientgoscheme.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// eventually waits until check returns nil.
func (h *hub) eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// output is what a process has printed.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.text.String())
}
