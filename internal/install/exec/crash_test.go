package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe/recipetest"
)

// The same life is repeated, and hotspare is killed before and after each call of a program and each
// write of a record in turn.
func TestHotspareMayBeKilledAtEveryStep(t *testing.T) {
	w := recipetest.New(t)
	const most = 100
	for _, after := range []bool{false, true} {
		n := 1
		for ; n < most; n++ {
			name := fmt.Sprintf("k%d-%t", n, after)
			if !liveWithCrash(t, w, name, n, after) || t.Failed() {
				break // the life has fewer steps
			}
		}
		if n < 8 || n == most {
			t.Errorf("the life has %d steps: the test checks too little, or does not end", n-1)
		}
		t.Logf("killed at each of %d steps, after the step: %t", n-1, after)
	}
}

// liveWithCrash runs the life of one cluster in a process that is killed at step n, and reports whether
// it was killed.
func liveWithCrash(t *testing.T, w recipetest.World, name string, n int, after bool) bool {
	dir, req := t.TempDir(), newRequest(name)
	p := start(t, w, dir, nil)
	p.left, p.after = n, after
	killed := false
	poll := func(do func() (install.Result, error)) {
		t.Helper()
		result, err := wait(t, func() (install.Result, error) {
			if p.isDead() {
				killed = true
				p = start(t, w, dir, nil)
			}
			r, err := do()
			if p.isDead() { // its answers count for nothing
				return install.Result{Phase: install.Running}, nil
			}
			return r, err
		})
		if err != nil || result.Phase != install.Succeeded {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
	md, err := p.executor.Prepare(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	ref := cloud.Ref{Cluster: req.Cluster, InfraID: md.InfraID, Platform: req.Platform}
	reach := func(want cloud.State, ask func() error) {
		poll(func() (install.Result, error) {
			if ms, err := p.actuator.Observe(t.Context(), ref); err == nil && ms.AllIn(want) {
				return install.Result{Phase: install.Succeeded}, nil
			}
			_ = ask() // repeated until the machines are in the wanted state
			return install.Result{Phase: install.Running}, nil
		})
	}
	poll(func() (install.Result, error) { return p.executor.Install(t.Context(), req, md) })
	reach(cloud.Stopped, func() error { return p.actuator.Stop(t.Context(), ref) })
	reach(cloud.Running, func() error { return p.actuator.Start(t.Context(), ref) })
	poll(func() (install.Result, error) { return p.executor.Destroy(t.Context(), req.ClusterTarget, md) })
	p.end()
	if left := w.ListClusters(t, name+"-"); len(left) > 0 {
		t.Errorf("%s: left over: %v", name, left)
	}
	for _, e := range w.ReadEvents(t, name) {
		if strings.HasPrefix(e, "BROKEN") {
			t.Errorf("%s: %s", name, e)
		}
	}
	return killed
}
