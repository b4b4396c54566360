package recipes

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
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

var (
	exhaustive = flag.Bool("recipes.exhaustive", false, "kill each verb in each step of its tools, and run the tests that take minutes")
	killSeed   = flag.Uint64("recipes.seed", rand.Uint64(), "chooses the steps in which verbs are killed")
)

// minSteps is the minimum number of steps that the stand-ins of a recipe have: with fewer, a killed verb
// leaves too little behind to find anything.
const minSteps = 10

// TestEachStepMayBeKilled kills each verb in steps of its tools: while something exists and the tool
// does not know it yet, or the other way around. The clusters must be destroyed, or completed. It
// chooses one step of each verb, and with -recipes.exhaustive it kills in all of them.
func TestEachStepMayBeKilled(t *testing.T) {
	for _, name := range namesWithStandins() {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, name)
			random := rand.New(rand.NewPCG(*killSeed, uint64(len(name))))
			total := 0
			for _, verb := range []recipe.Verb{recipe.Create, recipe.Stop, recipe.Start, recipe.Destroy} {
				before, ok := l.before[verb]
				if !ok {
					continue
				}
				total += before.steps
				for _, p := range chooseKillPoints(random, verb, before.steps) {
					k := l.restore(before)
					k.verb, k.step = verb, p.step
					k.runKilled(p.completes)
				}
			}
			t.Logf("%d steps, seed %d", total, *killSeed)
			if total < minSteps {
				t.Errorf("the stand-ins have %d steps: at least %d are needed", total, minSteps)
			}
		})
	}
}

// killPoint is a step in which a verb is killed. If completes is true, the verb is called again before
// the cluster is destroyed.
type killPoint struct {
	step      int
	completes bool
}

func chooseKillPoints(random *rand.Rand, verb recipe.Verb, steps int) []killPoint {
	var all []killPoint
	for step := 1; step <= steps; step++ {
		all = append(all, killPoint{step, true})
		if verb != recipe.Destroy {
			all = append(all, killPoint{step, false})
		}
	}
	if *exhaustive || steps == 0 {
		return all
	}
	return []killPoint{all[random.IntN(len(all))]}
}

// life is one life of a cluster, in which the cluster was recorded before each verb.
type life struct {
	*killer
	before map[recipe.Verb]recorded
}

// recorded is a cluster before a verb: a copy of its state folder, of the state of the stand-ins and of
// $HOME. steps is the number of steps of the stand-ins that the verb took when nothing killed it.
type recorded struct {
	folder string
	steps  int
}

// newLife creates, stops, starts and destroys a cluster. It also checks that a second create and a
// second destroy change nothing, and that the state folder of a destroyed cluster can be used again.
func newLife(t *testing.T, name string) life {
	t.Helper()
	r, state := loadShipped(t, name)
	l := life{&killer{t: t, recipe: r, state: state, verb: "nothing"}, map[recipe.Verb]recorded{}}
	l.prepare()
	l.record(recipe.Create, func() { l.call(recipe.Create) })
	files := describeFiles(t, state)
	l.call(recipe.Create)
	if again := describeFiles(t, state); !maps.Equal(files, again) {
		t.Errorf("the second create changed\n%v to\n%v", files, again)
	}
	l.checkCreated()
	if r.CanHibernate() {
		l.record(recipe.Stop, func() { l.reach(recipe.Stop, cloud.Stopped) })
		l.call(recipe.Stop)
		l.record(recipe.Start, func() { l.reach(recipe.Start, cloud.Running) })
		l.call(recipe.Start)
		l.checkReached(cloud.Running)
	}
	l.record(recipe.Destroy, func() { l.call(recipe.Destroy) })
	l.checkNothingLeft()
	l.call(recipe.Destroy)
	l.call(recipe.Create)
	l.checkCreated()
	l.call(recipe.Destroy)
	l.checkNothingLeft()
	return l
}

// record copies the cluster, and then calls the verb and counts its steps.
func (l life) record(v recipe.Verb, call func()) {
	l.t.Helper()
	c := recorded{folder: l.t.TempDir()}
	for name, path := range l.folders() {
		copyFolder(l.t, filepath.Join(c.folder, name), path)
	}
	counter := filepath.Join(l.t.TempDir(), "steps")
	l.counted, l.counter = v, counter
	call()
	l.counted = ""
	raw, _ := os.ReadFile(counter) // missing: no step
	c.steps, _ = strconv.Atoi(string(raw))
	l.before[v] = c
}

// restore returns the recorded cluster, with folders of its own: a program of an earlier killed verb may
// still run, and changes none of them.
func (l life) restore(c recorded) *killer {
	l.t.Helper()
	k := &killer{t: l.t, recipe: l.recipe, state: l.t.TempDir(), cluster: l.cluster}
	k.cluster.Dir, k.cluster.Log = filepath.Join(l.t.TempDir(), "state"), &k.log
	l.t.Setenv(stateVariable, k.state)
	l.t.Setenv("HOME", l.t.TempDir())
	for name, path := range k.folders() {
		copyFolder(l.t, path, filepath.Join(c.folder, name))
	}
	return k
}

// copyFolder copies the files of a folder; none if it does not exist.
func copyFolder(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		relative, _ := filepath.Rel(from, path) // path begins with from
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, relative), 0o700)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), raw, info.Mode())
	})
	if err != nil {
		t.Fatal(err)
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

// killer calls the verbs of one cluster, and kills one of them in one step.
type killer struct {
	t      *testing.T
	recipe *recipe.Recipe
	state  string
	verb   recipe.Verb
	step   int

	cluster recipe.Cluster
	log     strings.Builder
	// counted is the verb whose steps are counted in file counter.
	counted recipe.Verb
	counter string
}

// callOnce calls a verb once.
func (k *killer) callOnce(v recipe.Verb) (again bool, err error) {
	if v == k.counted {
		k.t.Setenv(stepsVariable, k.counter)
		defer k.t.Setenv(stepsVariable, "")
	}
	return k.cluster.Call(k.t.Context(), v)
}

// folders are everything that the recipe and its tools change.
func (k *killer) folders() map[string]string {
	return map[string]string{"tools": k.state, "home": os.Getenv("HOME"), "cluster": k.cluster.Dir}
}

// longName is as long as the name of a ClusterDeployment may be: tools limit the names of clusters.
var longName = strings.Repeat("killed-", 9)[:62]

// prepare names a new cluster.
func (k *killer) prepare() {
	with, err := k.recipe.Parameters.Complete(parameters[k.recipe.Name])
	if err != nil {
		k.t.Fatal(err)
	}
	k.cluster = recipe.Cluster{
		Recipe: k.recipe, Dir: filepath.Join(k.t.TempDir(), "state"), Secrets: writeSecrets(k.t, k.recipe.Name), Log: &k.log,
		Input: recipe.Input{Namespace: "killed", Name: longName, UID: string(k.verb), With: with},
	}
	prepared, err := k.cluster.Prepare(k.t.Context())
	k.check("prepare", err)
	k.cluster = k.cluster.WithPrepared(prepared)
}

// runKilled kills the verb, completes its work if completes is true, and destroys the cluster.
func (k *killer) runKilled(completes bool) {
	k.t.Helper()
	if k.kill() && completes {
		k.complete()
	}
	k.call(recipe.Destroy)
	k.checkNothingLeft()
	if k.verb == recipe.Start && !completes { // the state folder can be used again
		k.call(recipe.Create)
		k.checkCreated()
		k.call(recipe.Destroy)
	}
}

// kill calls the verb as hotspare does, until it is killed in the step. Otherwise it returns false: the
// verb has ended in fewer steps than before, because a cloud has worked on in the meantime.
func (k *killer) kill() bool {
	k.counted, k.counter = k.verb, filepath.Join(k.t.TempDir(), "steps")
	defer func() { k.counted = "" }()
	k.t.Setenv(killVariable, strconv.Itoa(k.step))
	defer k.t.Setenv(killVariable, "")
	for range maxCalls {
		again, err := k.callOnce(k.verb)
		var failed *recipe.VerbError
		if errors.As(err, &failed) && strings.Contains(failed.Problem, "signal") {
			return true
		}
		k.check("killed "+string(k.verb), err)
		if !again {
			return false
		}
	}
	return false
}

// complete calls the killed verb again until its work is done.
func (k *killer) complete() {
	switch k.verb {
	case recipe.Create:
		k.call(recipe.Create)
		k.checkCreated()
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
	k.t.Helper()
	for range maxCalls {
		again, err := k.callOnce(v)
		k.check(string(v), err)
		if !again {
			return
		}
	}
	k.fail("%s is not done after %d calls", v, maxCalls)
}

// startsFrom and stopsFrom are the states in which hotspare calls start and stop. In other states it
// waits, so a machine that a killed program left behind must be in one of these.
var (
	startsFrom = []cloud.State{cloud.Stopped, cloud.Failed}
	stopsFrom  = []cloud.State{cloud.Running, cloud.Starting, cloud.Failed}
)

// reach starts or stops the cluster as hotspare does, until all machines are in a state.
func (k *killer) reach(v recipe.Verb, want cloud.State) {
	k.t.Helper()
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
			_, err := k.callOnce(v)
			k.check(string(v), err)
		}
		last = ms
	}
	k.fail("machines are %s and not %s", last, want)
}

// checkCreated observes a cluster that create has completed.
func (k *killer) checkCreated() {
	k.t.Helper()
	ms, _, err := k.cluster.Observe(k.t.Context())
	k.check("observe", err)
	if !ms.AllIn(cloud.Running) {
		k.fail("after create, the machines are %s", ms)
	}
	k.checkReached(cloud.Running)
	for _, path := range listLeftovers(k.t, k.cluster.Dir) { // a hub stores the state folder in a Secret of its own
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), standinSecret) {
			k.fail("%s has a credential", path)
		}
	}
}

// checkReached compares the cluster with what the stand-ins know about it.
func (k *killer) checkReached(state cloud.State) {
	k.t.Helper()
	call, infraID := toolCall{State: k.state}, k.cluster.Input.InfraID
	if parts := runningParts[k.recipe.Name]; parts != nil {
		if running := parts(call, infraID); (state == cloud.Stopped) == (len(running) > 0) {
			k.fail("the machines are %s, and these parts run: %s", state, strings.Join(running, ", "))
		}
	}
	if state != cloud.Running {
		return
	}
	raw, err := k.cluster.ReadKubeconfig(k.t.Context())
	k.check("kubeconfig", err)
	if contexts := strings.Count(string(raw), "server: "); contexts != 1 {
		k.fail("the kubeconfig has %d clusters:\n%s", contexts, raw)
	}
	if server := servers[k.recipe.Name]; server != nil {
		if want := server(call, infraID); !strings.Contains(string(raw), "server: "+want+"\n") {
			k.fail("the API is at %s, and the kubeconfig is\n%s", want, raw)
		}
	}
}

// checkNothingLeft checks that the stand-ins and $HOME have nothing of the cluster.
func (k *killer) checkNothingLeft() {
	k.t.Helper()
	if left := listLeftovers(k.t, k.state, os.Getenv("HOME")); len(left) > 0 {
		k.fail("left over are %s", strings.Join(left, ", "))
	}
}

func (k *killer) check(what string, err error) {
	k.t.Helper()
	if err != nil {
		k.fail("%s: %v", what, err)
	}
}

// fail ends the test with what was done to the cluster.
func (k *killer) fail(format string, args ...any) {
	k.t.Helper()
	what := "without a kill"
	if k.step > 0 {
		what = fmt.Sprintf("%s killed in step %d, seed %d", k.verb, k.step, *killSeed)
	}
	k.t.Fatalf("%s: %s\nlog:\n%s", what, fmt.Sprintf(format, args...), k.log.String())
}
