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

// demoHub is the hub that most tests share.
var demoHub sharedHub

type sharedHub struct {
	dir  string
	once sync.Once
	hub  *hub
	err  error
}

// sharedDemoHub returns the hub that most tests share, with pools, claims, an inventory and a fleet.
func sharedDemoHub(tb testing.TB) *hub {
	tb.Helper()
	demoHub.once.Do(func() {
		if demoHub.hub, demoHub.err = startHub(demoHub.dir); demoHub.err == nil {
			demoHub.err = demoHub.hub.createDemoObjects()
		}
	})
	if demoHub.err != nil {
		tb.Fatal(demoHub.err)
	}
	return demoHub.hub
}

func (s *sharedHub) end() error {
	if s.hub == nil {
		return nil
	}
	return s.hub.stop()
}

// createDemoObjects creates the objects that the tests look at. It does not wait for the fleet, which takes
// longer.
func (h *hub) createDemoObjects() error {
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
		if err := h.waitForClaim("default", claim); err != nil {
			return err
		}
	}
	if err := h.waitForClaim("team", "ours"); err != nil {
		return err
	}
	return h.apply(lateManifests)
}

// waitForClaim waits until the cluster of a claim is running.
func (h *hub) waitForClaim(namespace, claim string) error {
	_, err := h.run("", "kubectl", "wait", "clusterclaim", claim, "-n", namespace, "--for=condition=ClusterRunning", fmt.Sprintf("--timeout=%s", timeout))
	return err
}
