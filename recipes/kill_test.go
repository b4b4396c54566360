package recipes

import (
	"errors"
	"os"
	"path/filepath"
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
	with, err := k.recipe.Parameters.Complete(parameters[k.recipe.Name])
	if err != nil {
		k.t.Fatal(err)
	}
	k.cluster = recipe.Cluster{
		Recipe: k.recipe, Dir: filepath.Join(k.t.TempDir(), "state"), Log: &k.log,
		Input: recipe.Input{Namespace: "killed", Name: "killed", UID: strconv.Itoa(k.step) + string(k.verb), With: with},
	}
	prepared, err := k.cluster.Prepare(k.t.Context())
	k.check("prepare", err)
	k.cluster = k.cluster.WithPrepared(prepared)
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
		k.checkKubeconfig()
	case recipe.Stop:
		k.reach(recipe.Stop, cloud.Stopped)
		k.reach(recipe.Start, cloud.Running)
		k.checkKubeconfig()
	case recipe.Start:
		k.reach(recipe.Start, cloud.Running)
		k.checkKubeconfig()
	}
}

func (k *killer) checkKubeconfig() {
	_, err := k.cluster.ReadKubeconfig(k.t.Context())
	k.check("kubeconfig", err)
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

// reach calls a verb until all machines are in a state.
func (k *killer) reach(v recipe.Verb, want cloud.State) {
	var last cloud.Machines
	for range maxCalls {
		_, err := k.cluster.Call(k.t.Context(), v)
		k.check(string(v), err)
		ms, _, err := k.cluster.Observe(k.t.Context())
		k.check("observe", err)
		if ms.AllIn(want) {
			return
		}
		last = ms
		time.Sleep(time.Millisecond)
	}
	k.t.Fatalf("%s killed in step %d: machines are %s and not %s\n%s", k.verb, k.step, last, want, k.log.String())
}

func (k *killer) check(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatalf("%s killed in step %d: %s: %v\n%s", k.verb, k.step, what, err, k.log.String())
	}
}
