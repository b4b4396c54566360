package exec_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe/recipetest"
)

var (
	historyRuns = flag.Int("history.runs", 80, "number of random histories")
	historySeed = flag.Uint64("history.seed", 0, "seed of the first history; 0 selects a random one")
)

// concurrentHistories is the number of histories that run at once: programs mostly sleep.
const concurrentHistories = 8

// A history is the life of one cluster: attempts, stops and starts, destruction. At random moments a
// program is killed, fails with a random code, or hotspare is killed or restarted. In the end nothing
// is left, and no rule of the stand-in was broken.
func TestRandomHistoriesLeakNothingAndCreateNothingTwice(t *testing.T) {
	w := recipetest.New(t)
	first := *historySeed
	if first == 0 {
		first = rand.Uint64N(1 << 40)
	}
	t.Logf("%d histories from seed %d: repeat one with -history.runs 1 -history.seed SEED", *historyRuns, first)
	seeds := make(chan uint64)
	var totals tally
	var workers sync.WaitGroup
	for range concurrentHistories {
		workers.Go(func() {
			for seed := range seeds {
				runHistory(t, w, seed, &totals)
			}
		})
	}
	for i := range *historyRuns {
		if t.Failed() {
			break
		}
		seeds <- first + uint64(i)
	}
	close(seeds)
	workers.Wait()
	if left := w.ListClusters(t, ""); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	t.Logf("%+v", totals.counts)
}

// tally counts what the histories have done.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[what] += n
}

type history struct {
	testing.TB
	w       recipetest.World
	random  *rand.Rand
	name    string
	dir     string
	process *process
	req     install.Request
	totals  *tally
	log     []string
}

func runHistory(t testing.TB, w recipetest.World, seed uint64, totals *tally) {
	t.Helper()
	h := &history{TB: t, w: w, random: rand.New(rand.NewPCG(seed, 1)), name: fmt.Sprintf("h%d", seed), totals: totals}
	h.dir = filepath.Join(w.Home, "data-"+h.name)
	h.req = newRequest(h.name)
	h.process = start(t, w, h.dir, nil)
	defer func() {
		h.process.end()
		if t.Failed() {
			t.Logf("seed %d: %s", seed, strings.Join(h.log, ", "))
		}
		_ = os.RemoveAll(h.dir) // Home is removed anyway
	}()
	h.live()
	h.checkEvents()
	totals.add("histories", 1)
}

func (h *history) note(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

// live creates the cluster, attempt by attempt, uses it and destroys it.
func (h *history) live() {
	for {
		md, created := h.attempt()
		if h.Failed() {
			return
		}
		if created {
			for range h.random.IntN(4) {
				h.changePower(md)
			}
		}
		released := created || h.random.IntN(4) == 0
		h.destroy(md)
		if left := h.w.ListClusters(h, h.name+"-"); len(left) > 0 {
			h.Errorf("%s: after destroy has succeeded, %v exists", h.name, left)
		}
		if released || h.Failed() {
			return
		}
		h.req.Attempt++
	}
}

// attempt installs one attempt. It may give up, as a user does who deletes a cluster that is being
// created.
func (h *history) attempt() (install.Metadata, bool) {
	md, err := h.process.executor.Prepare(h.Context(), h.req)
	if err != nil {
		h.Errorf("%s: preparing: %v", h.name, err)
		return md, false
	}
	h.setFault("create", 0, 0, 0, 10, 10, 20, 30, 1)
	giveUp := h.random.IntN(60)
	polls := 0
	result, err := wait(h, func() (install.Result, error) {
		if polls++; giveUp < 10 && polls > giveUp {
			return install.Result{Phase: install.Failed}, nil
		}
		h.disturb("create")
		r, err := h.process.executor.Install(h.Context(), h.req, md)
		if fault.KindOf(err) == fault.Denied { // the user changes the request
			h.note("rejected")
			h.changeRequest()
			return install.Result{Phase: install.Running}, nil
		}
		return r, err
	})
	if err != nil {
		h.Errorf("%s: installing: %v", h.name, err)
	}
	h.note("attempt %d: %s", h.req.Attempt, result.Phase)
	if n := len(h.w.ListClusters(h, h.name+"-")); n > 1 {
		h.Errorf("%s: %d clusters exist at once", h.name, n)
	}
	h.totals.add("attempts "+string(result.Phase), 1)
	return md, result.Phase == install.Succeeded
}

// changePower stops and starts the cluster until all machines are in the wanted state.
func (h *history) changePower(md install.Metadata) {
	ref := cloud.Ref{Cluster: h.req.Cluster, InfraID: md.InfraID, Platform: h.req.Platform}
	verb, want := "stop", cloud.Stopped
	if h.random.IntN(2) == 0 {
		verb, want = "start", cloud.Running
	}
	h.setFault(verb, 0, 0, 10, 1, 30)
	h.setFault("observe", 0, 0, 0, 1)
	ask := func() error {
		if verb == "stop" {
			return h.process.actuator.Stop(h.Context(), ref)
		}
		return h.process.actuator.Start(h.Context(), ref)
	}
	_, err := wait(h, func() (install.Result, error) {
		h.disturb(verb)
		ms, err := h.process.actuator.Observe(h.Context(), ref)
		if err == nil && ms.AllIn(want) {
			return install.Result{Phase: install.Succeeded}, nil
		}
		_ = ask() // an error is that of a program that was killed or that a test lets fail: asked again
		return install.Result{Phase: install.Running}, nil
	})
	if err != nil {
		h.Errorf("%s: %s: %v", h.name, verb, err)
	}
	h.note("%s", verb)
	h.totals.add(verb, 1)
}

// destroy destroys the attempt, as often as needed. At random, the state is lost before.
func (h *history) destroy(md install.Metadata) {
	h.setFault("destroy", 0, 0, 10, 1, 20)
	if h.random.IntN(8) == 0 {
		h.process.end()
		h.note("state lost")
		h.totals.add("state lost", 1)
		if err := os.RemoveAll(filepath.Join(h.dir, "clusters", md.InfraID)); err != nil {
			h.Error(err)
		}
		h.process = start(h, h.w, h.dir, nil)
	}
	if h.random.IntN(8) == 0 {
		md.Raw = nil
		h.note("metadata lost")
	}
	_, err := wait(h, func() (install.Result, error) {
		h.disturb("destroy")
		r, err := h.process.executor.Destroy(h.Context(), h.req.ClusterTarget, md)
		if r.Phase == install.Failed {
			r.Phase = install.Running // the controller asks again
		}
		return r, err
	})
	if err != nil {
		h.Errorf("%s: destroying: %v", h.name, err)
	}
	h.note("destroyed")
	// The controller may ask again.
	if r, err := h.process.executor.Destroy(h.Context(), h.req.ClusterTarget, md); err != nil || r.Phase != install.Succeeded {
		h.Errorf("%s: asked again, destroy says %s, %v", h.name, r.Phase, err)
	}
}

// setFault makes the next run of a verb exit with one of codes; 0 lets it succeed.
func (h *history) setFault(verb string, codes ...int) {
	if code := codes[h.random.IntN(len(codes))]; code != 0 {
		h.note("%s exits with %d", verb, code)
		h.w.SetFault(h, h.name, verb, code)
	}
}

// disturb kills the running program, or hotspare, with a small probability.
func (h *history) disturb(verb string) {
	switch h.random.IntN(150) {
	case 0, 1:
		h.note("kill during %s", verb)
		h.totals.add("kills", 1)
		h.w.KillRunning(h.name)
	case 2:
		h.note("crash during %s", verb)
		h.totals.add("crashes", 1)
		h.process.crash()
		if h.random.IntN(2) == 0 {
			h.w.KillRunning(h.name)
		}
		h.process.stop = func() {} // the program runs on
		h.process = start(h, h.w, h.dir, nil)
	case 3:
		h.note("restart during %s", verb)
		h.totals.add("restarts", 1)
		h.process.end()
		h.process = start(h, h.w, h.dir, nil)
	}
}

// changeRequest changes the parameters, as a user does after a rejection.
func (h *history) changeRequest() {
	p := h.req.Platform.Exec.DeepCopy()
	p.With = map[string]hivev1.ExecParameter{"note": hivev1.ExecParameter(fmt.Sprint(h.random.Uint64()))}
	h.req.Platform.Exec = p
}

// checkEvents checks what the programs have recorded.
func (h *history) checkEvents() {
	events := h.w.ReadEvents(h, h.name)
	h.totals.add("programs", len(events))
	for i, e := range events {
		if strings.HasPrefix(e, "BROKEN") {
			h.Errorf("%s: %s", h.name, e)
		}
		verb, id, _ := strings.Cut(e, " ")
		if verb == "create" && recipetest.CountEvents(events[:i], "destroyed "+id) > 0 {
			h.Errorf("%s: %s was created after it was destroyed", h.name, id)
		}
	}
}
