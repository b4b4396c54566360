package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"hotspare.io/hotspare/internal/install/job/installertest"
)

func TestMain(m *testing.M) {
	if os.Getenv(curlVariable) != "" {
		os.Exit(fetchLikeCurl())
	}
	flag.Parse()
	log.SetLogger(logr.Discard())                             // the client would print a stack of a test with the first warning of an API server
	if err := flag.Set("test.parallel", "1000"); err != nil { // see turnQueue
		panic(err) // it is testing's own
	}
	if err := findBinary(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := installertest.RunTests(m)
	if err := common.end(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the shared hub:", err)
		code = 1
	}
	os.Exit(code)
}

// binary is what is tested.
var binary string

func findBinary() error {
	path := os.Getenv("HOTSPARE_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "hotspare")
	}
	var err error
	if binary, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("finding the binary: %w", err)
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("these tests drive the built binary: run 'make build' first, or set HOTSPARE_BINARY (%w)", err)
	}
	return nil
}

// common is the hub that parallel tests share.
var common sharedHub

type sharedHub struct {
	once sync.Once
	root string
	hub  *hub
	// issuer is one whose tokens the hub accepts.
	issuer *tokenIssuer
	err    error
}

// shared lets t run in parallel with others on the shared hub.
func shared(t *testing.T) *hub {
	t.Helper()
	turns.announce(1)
	t.Parallel()
	turns.arrive(t, 0)
	common.once.Do(common.begin)
	if common.err != nil {
		t.Fatalf("starting the shared hub: %v", common.err)
	}
	return common.hub
}

func (s *sharedHub) begin() {
	dir, err := recipes()
	if err != nil {
		s.err = err
		return
	}
	if s.root, s.err = os.MkdirTemp("", "hotspare-e2e-"); s.err != nil {
		return
	}
	if s.issuer, s.err = startTokenIssuer(); s.err != nil {
		return
	}
	authentication, err := s.issuer.writeConfiguration(s.root)
	if err != nil {
		s.err = err
		return
	}
	s.hub, s.err = start(filepath.Join(s.root, "data"), "--recipes", dir, "--authentication-config", authentication)
}

func (s *sharedHub) end() error {
	if s.hub != nil {
		if err := s.hub.down(); err != nil {
			return err
		}
	}
	if s.issuer != nil {
		s.issuer.close()
	}
	return os.RemoveAll(s.root)
}
