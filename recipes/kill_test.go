package recipes

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/recipe"
)

// TestEachStepMayBeKilled kills each verb in each step of its tools: while something exists and the tool
// does not know it yet, or the other way around. The clusters must be destroyed, or completed.
func TestEachStepMayBeKilled(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, name)
			if !usesStandins(r) {
				t.Skip("no tool of this recipe has a stand-in")
			}
			steps := 0
			for _, verb := range []recipe.Verb{recipe.Create, recipe.Stop, recipe.Start, recipe.Destroy} {
				if !r.Has(verb) {
					continue
				}
				for step := 1; ; step++ {
					k := killer{t: t, recipe: r, state: state, verb: verb, step: step}
					if !k.run() || t.Failed() {
						break
					}
					steps++
				}
			}
			t.Logf("killed in %d steps", steps)
			if steps < 10 && !t.Failed() {
				t.Errorf("the stand-ins have %d steps: that is too few to find anything", steps)
			}
		})
	}
}

// TestASecondCreateChangesNothing calls create for a cluster that is in use, and then again in the same
// state folder after the cluster was destroyed.
func TestASecondCreateChangesNothing(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, name)
			if !usesStandins(r) {
				t.Skip("no tool of this recipe has a stand-in")
			}
			k := killer{t: t, recipe: r, state: state, verb: "nothing"}
			k.prepare()
			k.call(recipe.Create)
			before := describeFiles(t, state)
			k.call(recipe.Create)
			if after := describeFiles(t, state); !maps.Equal(before, after) {
				t.Errorf("the second create changed\n%v to\n%v", before, after)
			}
			k.checkReached(cloud.Running)
			k.call(recipe.Destroy)
			k.call(recipe.Create)
			k.checkReached(cloud.Running)
			k.call(recipe.Destroy)
		})
	}
}

// describeFiles returns the time of the last change of each file below dir.
func describeFiles(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for _, path := range listLeftovers(t, dir) {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		out[path] = info.ModTime()
	}
	return out
}

func usesStandins(r *recipe.Recipe) bool {
	for _, p := range r.Needs.Programs {
		if tools[p] != nil {
			return true
		}
	}
	return false
}

// killer kills one verb of a new cluster in one step.
type killer struct {
	t      *testing.T
	recipe *recipe.Recipe
	state  string
	verb   recipe.Verb
	step   int

	cluster recipe.Cluster
	log     strings.Builder
}

// run returns false if the verb ended before the step.
func (k *killer) run() (killed bool) {
	k.t.Helper()
	k.prepare()
	if k.verb != recipe.Create {
		k.call(recipe.Create)
	}
	if k.verb == recipe.Start {
		k.reach(recipe.Stop, cloud.Stopped)
	}
	killed = k.kill()
	if killed {
		k.recover()
	}
	k.call(recipe.Destroy)
	if left := listLeftovers(k.t, k.state, os.Getenv("HOME")); len(left) > 0 {
		k.t.Errorf("%s killed in step %d: left over are %s", k.verb, k.step, strings.Join(left, ", "))
	}
	if k.t.Failed() {
		k.t.Logf("log:\n%s", k.log.String())
	}
	return killed
}

// prepare names a new cluster.
func (k *killer) prepare() {
	with, err := k.recipe.Parameters.Complete(parameters[k.recipe.Name])
	if err != nil {
		k.t.Fatal(err)
	}
	k.cluster = recipe.Cluster{
		Recipe: k.recipe, Dir: filepath.Join(k.t.TempDir(), "state"), Secrets: writeSecrets(k.t, k.recipe.Name), Log: &k.log,
		Input: recipe.Input{Namespace: "killed", Name: "killed", UID: strconv.Itoa(k.step) + string(k.verb), With: with},
	}
	prepared, err := k.cluster.Prepare(k.t.Context())
	k.check("prepare", err)
	k.cluster = k.cluster.WithPrepared(prepared)
}

// kill calls the verb, to be killed in the step.
func (k *killer) kill() bool {
	counter := filepath.Join(k.t.TempDir(), "steps")
	k.t.Setenv(stepsVariable, counter)
	k.t.Setenv(killVariable, strconv.Itoa(k.step))
	defer k.t.Setenv(stepsVariable, "")
	_, err := k.cluster.Call(k.t.Context(), k.verb)
	var failed *recipe.VerbError
	if errors.As(err, &failed) && strings.Contains(failed.Problem, "signal") {
		return true
	}
	k.check("killed "+string(k.verb), err)
	return false
}

// recover completes what the killed verb began, in every second step. In the others, the cluster is
// destroyed as it is.
func (k *killer) recover() {
	if k.step%2 == 0 {
		return
	}
	switch k.verb {
	case recipe.Create:
		k.call(recipe.Create)
		k.checkReached(cloud.Running)
	case recipe.Stop:
		k.reach(recipe.Stop, cloud.Stopped)
		k.reach(recipe.Start, cloud.Running)
	case recipe.Start:
		k.reach(recipe.Start, cloud.Running)
	}
}

// maxCalls bounds the calls of a verb that is not done.
const maxCalls = 100

// call calls a verb until it is done.
func (k *killer) call(v recipe.Verb) {
	for range maxCalls {
		again, err := k.cluster.Call(k.t.Context(), v)
		k.check(string(v), err)
		if !again {
			return
		}
	}
	k.t.Fatalf("%s killed in step %d: %s is not done after %d calls\n%s", k.verb, k.step, v, maxCalls, k.log.String())
}

// startsFrom and stopsFrom are the states in which hotspare calls start and stop. In other states it
// waits, so a machine that a killed program left behind must be in one of these.
var (
	startsFrom = []cloud.State{cloud.Stopped, cloud.Failed}
	stopsFrom  = []cloud.State{cloud.Running, cloud.Starting, cloud.Failed}
)

// reach starts or stops the cluster as hotspare does, until all machines are in a state.
func (k *killer) reach(v recipe.Verb, want cloud.State) {
	from := startsFrom
	if v == recipe.Stop {
		from = stopsFrom
	}
	var last cloud.Machines
	for range maxCalls {
		ms, _, err := k.cluster.Observe(k.t.Context())
		k.check("observe", err)
		if ms.AllIn(want) {
			k.checkReached(want)
			return
		}
		if slices.ContainsFunc(ms, func(m cloud.Machine) bool { return slices.Contains(from, m.State) }) {
			_, err := k.cluster.Call(k.t.Context(), v)
			k.check(string(v), err)
		}
		last = ms
	}
	k.t.Fatalf("%s killed in step %d: machines are %s and not %s\n%s", k.verb, k.step, last, want, k.log.String())
}

// checkReached compares the cluster with what the stand-ins know about it.
func (k *killer) checkReached(state cloud.State) {
	call, infraID := toolCall{State: k.state}, k.cluster.Input.InfraID
	if running := runningParts[k.recipe.Name]; running != nil && state == cloud.Stopped {
		if parts := running(call, infraID); len(parts) > 0 {
			k.t.Fatalf("%s killed in step %d: the machines are Stopped, and these parts run: %s", k.verb, k.step, strings.Join(parts, ", "))
		}
	}
	if state != cloud.Running {
		return
	}
	raw, err := k.cluster.ReadKubeconfig(k.t.Context())
	k.check("kubeconfig", err)
	if server := servers[k.recipe.Name]; server != nil {
		if want := server(call, infraID); !strings.Contains(string(raw), "server: "+want+"\n") {
			k.t.Fatalf("%s killed in step %d: the API is at %s, and the kubeconfig is\n%s", k.verb, k.step, want, raw)
		}
	}
}

func (k *killer) check(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s killed in step %d: %s: %v\n%s", k.verb, k.step, what, err, k.log.String())
	}
}
