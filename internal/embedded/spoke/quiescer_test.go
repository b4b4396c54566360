package spoke

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/quiesce"
)

// newTestQuiescer returns a quiescer whose API listens on a free port, and a channel of commands that it follows.
func newTestQuiescer(t *testing.T) (*quiescer, chan string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(machine.QuiescedPath(dir), nil, 0o600); err != nil { // left by a process that was killed
		t.Fatal(err)
	}
	m := &runningMachine{dir: dir, Config: machine.Config{APIPort: l.Addr().(*net.TCPAddr).Port}}
	first := l
	f, err := newQuiescer(m, func() (net.Listener, error) {
		if first == nil {
			return controlplane.Listen(m.APIPort)
		}
		defer func() { first = nil }()
		return first, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.api.Close() })
	if isQuiesced(t, dir) {
		t.Error("a control plane that starts counts as being at rest")
	}
	commands := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.followCommands(ctx, commands) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f, commands
}

func isQuiesced(t *testing.T, dir string) bool {
	t.Helper()
	_, err := os.Stat(machine.QuiescedPath(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// becomes waits until a control plane is at rest, or is not.
func becomes(t *testing.T, f *quiescer, rest bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); isQuiesced(t, f.dir) != rest; time.Sleep(time.Millisecond) { //nolint:forbidigo // nothing reports a file
		if time.Now().After(deadline) {
			t.Fatalf("at rest: %t", !rest)
		}
	}
}

func TestAControlPlaneRestsAndWakesUp(t *testing.T) {
	f, commands := newTestQuiescer(t)
	working := make(chan bool, 10)
	supervise := f.supervise(func(ctx context.Context, controllers func(context.Context) error) error { return controllers(ctx) })
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- supervise(ctx, func(ctx context.Context) error {
			working <- true
			<-ctx.Done()
			working <- false
			return nil
		})
	}()
	for range 2 {
		if !<-working {
			t.Fatal("the controllers do not work")
		}
		commands <- machine.CommandFreeze
		becomes(t, f, true)
		select {
		case works := <-working:
			if works {
				t.Error("the controllers were started")
			}
		default:
			t.Error("it is at rest, and its controllers work")
		}
		if c, err := net.Dial("tcp4", f.api.Addr().String()); err == nil {
			_ = c.Close()
			t.Error("the API takes connections")
		}
		commands <- machine.CommandThaw
		becomes(t, f, false)
		c, err := net.Dial("tcp4", f.api.Addr().String())
		if err != nil {
			t.Fatalf("the API does not listen: %v", err)
		}
		_ = c.Close()
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestCommandsCanBeRepeated(t *testing.T) {
	f, commands := newTestQuiescer(t)
	for _, command := range []string{machine.CommandThaw, machine.CommandFreeze, machine.CommandFreeze, "dance", ""} {
		commands <- command
	}
	becomes(t, f, true)
	commands <- machine.CommandThaw
	commands <- machine.CommandThaw
	becomes(t, f, false)
}

func TestImagesAreNotServedAtRest(t *testing.T) {
	var gate quiesce.Gate
	handler := gatedHandler(&gate, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	request := func() int {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/", nil))
		return recorder.Code
	}
	if got := request(); got != http.StatusOK {
		t.Errorf("awake: %d", got)
	}
	if err := gate.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := request(); got != http.StatusServiceUnavailable {
		t.Errorf("at rest: %d", got)
	}
}

func TestTheLastCommandCounts(t *testing.T) {
	m := &runningMachine{commands: make(chan string, 1)}
	ended := false
	m.followParent(t.Context(), strings.NewReader("freeze\nthaw\nfreeze\n"), func() { ended = true })
	if got := <-m.commands; got != machine.CommandFreeze || !ended {
		t.Errorf("got %q; the end of the pipe ended the machine: %t", got, ended)
	}
}
