//go:build browser

package browser

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

//go:embed testdata/demo.yaml
var demoManifests string

//go:embed testdata/late.yaml
var lateManifests string

// common is the hub that most tests share.
var common sharedHub

type sharedHub struct {
	dir  string
	once sync.Once
	hub  *hub
	err  error
}

// demo returns the hub that most tests share, with pools, claims, an inventory and a fleet.
func demo(tb testing.TB) *hub {
	tb.Helper()
	common.once.Do(func() {
		if common.hub, common.err = startHub(common.dir); common.err == nil {
			common.err = common.hub.fill()
		}
	})
	if common.err != nil {
		tb.Fatal(common.err)
	}
	return common.hub
}

func (s *sharedHub) end() error {
	if s.hub == nil {
		return nil
	}
	return s.hub.end()
}

// fill creates the objects that the tests look at. It does not wait for the fleet, which takes
// longer.
func (h *hub) fill() error {
	if err := h.apply(demoManifests); err != nil {
		return err
	}
	for _, name := range []string{"fleet.yaml", "instances.yaml"} {
		raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", name))
		if err != nil {
			return err
		}
		if err := h.apply(string(raw)); err != nil {
			return err
		}
	}
	for _, claim := range []string{"pull-request-4711", "nightly", "first"} {
		if err := h.served("default", claim); err != nil {
			return err
		}
	}
	if err := h.served("team", "ours"); err != nil {
		return err
	}
	return h.apply(lateManifests)
}

// served waits until the cluster of a claim is running.
func (h *hub) served(namespace, claim string) error {
	_, err := h.run("", "kubectl", "wait", "clusterclaim", claim, "-n", namespace, "--for=condition=ClusterRunning", fmt.Sprintf("--timeout=%s", patience))
	return err
}
