package exec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

func TestPrepareRunsInTheBackground(t *testing.T) {
	r := newRig(t, nil)
	r.w.WriteProgram(t, "prepare", `#!/bin/sh
while [ ! -e "$STANDIN_HOME/let" ]; do sleep 0.01; done
printf '{"apiVersion":"recipe.hotspare.io/v1","infraID":"mine-1","metadata":{"zone":"b"}}'
`)
	if _, err := r.executor.Prepare(t.Context(), r.req); fault.KindOf(err) != fault.Wait {
		t.Fatalf("got %v, want fault.Wait", err)
	}
	if err := os.WriteFile(filepath.Join(r.w.Home, "let"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.install(t); err != nil || r.md.InfraID != "mine-1" || !strings.Contains(string(r.md.Raw), `"zone":"b"`) {
		t.Errorf("got %s, %v", r.md.Raw, err)
	}
}

// countPrepares returns how often a program prepare has run that appends a line to the file prepares.
func (r *rig) countPrepares(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.w.Home, "prepares"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// newPrepareRig returns a rig with a program prepare that appends a line to the file prepares, and a function
// that calls Prepare until the program has run and ended n times, and returns the result of the next call.
func newPrepareRig(t *testing.T, program string) (r *rig, await func(n int) error) {
	t.Helper()
	r = newRig(t, nil)
	r.w.WriteProgram(t, "prepare", "#!/bin/sh\necho run >>\"$STANDIN_HOME/prepares\"\n"+program)
	// Otherwise a call between the end of the program and the report of it returns the result, and the next call runs it again.
	r.executor.RetryPrepare = time.Hour
	var ended atomic.Int32
	r.executor.OnChange = func(types.NamespacedName) { ended.Add(1) } // before the first call
	return r, func(n int) error {
		t.Helper()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) { //nolint:forbidigo // programs run
			done := int(ended.Load()) >= n // first: the next call reports the result
			_, err := r.executor.Prepare(t.Context(), r.req)
			// A program that another test starts at this moment holds the lock of the state folder until it is
			// executed. The call then ends without running prepare, and is repeated.
			repeated := fault.KindOf(err) == fault.Conflict || err != nil && strings.HasSuffix(err.Error(), " runs")
			if done && !repeated && r.countPrepares(t) == n {
				return err
			}
		}
		t.Fatalf("prepare has run %d times after %s, want %d", r.countPrepares(t), patience, n)
		return nil
	}
}

func TestAPrepareThatFailsRunsAgainAfterItsDelay(t *testing.T) {
	for name, c := range map[string]struct {
		exit   string
		kind   fault.Kind
		failed bool
		delay  time.Duration
	}{
		"any other exit code":      {"exit 1", fault.Wait, true, 3 * time.Hour},
		"no JSON object":           {"echo Hello.; exit 0", fault.Wait, true, 3 * time.Hour},
		"a platform without space": {"exit 30", fault.Capacity, false, 5 * time.Hour},
		"an invalid request":       {"exit 20", fault.Denied, false, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			r, await := newPrepareRig(t, c.exit+"\n")
			r.executor.RetryPrepare, r.executor.RetryNoRoom = 3*time.Hour, 5*time.Hour // before the first call
			for run := range 3 {
				for range 3 { // of which the first waits for the program, and the others run none
					err := await(run + 1)
					if fault.KindOf(err) != c.kind || errors.As(err, new(*install.PrepareFailedError)) != c.failed {
						t.Fatalf("run %d: got %v (%s)", run+1, err, fault.KindOf(err))
					}
				}
				r.clock.Step(c.delay - time.Minute)
				if err := await(run + 1); err == nil {
					t.Fatal("prepare succeeds without being run")
				}
				r.clock.Step(time.Minute)
			}
		})
	}
}

func TestAPrepareThatRunsAgainStillReportsWhyItHasFailed(t *testing.T) {
	r, await := newPrepareRig(t, `
if [ -e "$STANDIN_HOME/hang" ]; then sleep 60; fi
echo the region is unknown >&2
exit 1
`)
	first := await(1)
	if err := os.WriteFile(filepath.Join(r.w.Home, "hang"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r.clock.Step(time.Hour)
	for range 3 {
		if _, err := r.executor.Prepare(t.Context(), r.req); err == nil || first == nil || err.Error() != first.Error() {
			t.Errorf("while prepare runs again: %v, want %v", err, first)
		}
	}
}

func TestAChangedRequestIsPreparedAtOnce(t *testing.T) {
	r, await := newPrepareRig(t, `
[ "$RECIPE_WORKERS" = 2 ] || exit 20
echo '{"apiVersion":"recipe.hotspare.io/v1","infraID":"mine-1"}'
`)
	if err := await(1); fault.KindOf(err) != fault.Denied {
		t.Fatalf("got %v, want fault.Denied", err)
	}
	r.req.Platform.Exec.With = map[string]hivev1.ExecParameter{"workers": "2"}
	if err := await(2); err != nil {
		t.Errorf("after the change: %v", err)
	}
}
