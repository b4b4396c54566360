package customization

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

var (
	historySeed  = flag.Uint64("history.seed", 0, "seed of the first random history, the next has the next; 0 takes one from the clock")
	historySteps = flag.Int("history.steps", 40000, "how many steps the random histories have in all, at least; 1 is one history")
)

// TestHistoriesOfLeases runs two instances of this controller, and a stand-in for the pool
// controller, through random histories: clusters that are created, deleted, edited and stripped of
// finalizers; customizations and pools that are deleted and created again; objects that cannot be
// read; caches that are behind, each kind independently; processes that die at any call. It checks
// the invariants after every write (judge), and the final state once no more events happen
// (converge).
//
// A seed always produces the same history.
func TestHistoriesOfLeases(t *testing.T) {
	seed := *historySeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-history.seed=%d", seed)
	steps, count, releases, repairs := 0, 0, 0, 0
	defer func() {
		t.Logf("%d steps in %d histories: %d leases released, %d repaired", steps, count, releases, repairs)
	}()
	for ; steps < *historySteps; seed++ { // one that fails is the last: synctest.Test ends the test
		count++
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, seed)
			defer func() {
				steps += h.steps
				releases += h.judge.releases
				repairs += h.judge.repairs
			}()
			h.run()
		})
	}
}

// history is one run.
type history struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	// lag is how many writes of a kind a cache may be behind at a time, about.
	lag int
	// rough is whether users use force.
	rough  bool
	length int

	clock     *clocktesting.FakePassiveClock
	store     *chaos.Store
	indexes   *chaos.Indexes
	scheduler *chaos.Scheduler
	replicas  []*replica
	judge     *judge
	calls     []*chaos.Call

	serial, steps int
	log           chaos.Log
}

// replica is one process.
type replica struct {
	process *chaos.Process
	view    *chaos.View
	keeper  reconcile.Reconciler
	maker   reconcile.Reconciler
	busy    map[string]bool
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	scheme, err := newScheme()
	r := rand.New(rand.NewPCG(seed, 1))
	h := &history{
		t: t, seed: seed, rand: r, log: chaos.Log{Keep: 120},
		lag: []int{0, 2, 20}[r.IntN(3)], rough: r.IntN(2) == 0, length: 200 + r.IntN(1500),
		clock:   clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		indexes: &chaos.Indexes{}, scheduler: &chaos.Scheduler{},
	}
	h.store = chaos.New(scheme, h.clock, everything...)
	h.judge = newJudge(h.store)
	h.store.Wrote = h.judge.wrote
	if err := errors.Join(err, AddIndexes(t.Context(), h.indexes)); err != nil {
		t.Fatal(err)
	}
	h.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}})
	h.make(newPool("p", 2))
	h.make(newPool("q", 1))
	for _, name := range slotNames {
		h.make(newSlot(name))
	}
	h.replicas = make([]*replica, 1+r.IntN(2))
	for i := range h.replicas {
		h.start(i)
	}
	return h
}

// start starts the process of replica i. Its cache is filled by lists that may be a
// little old.
func (h *history) start(i int) {
	view, live := h.store.NewView(h.indexes), h.store.NewClient()
	h.serial++
	suffix := func() string { h.serial++; return fmt.Sprintf("%05d", h.serial) }
	var recorder events.FakeRecorder
	h.replicas[i] = &replica{
		process: &chaos.Process{Name: fmt.Sprintf("r%d.%d", i, h.serial)}, view: view, busy: map[string]bool{},
		keeper: &Reconciler{Client: view.NewClient(), Live: live, Clock: h.clock, Events: &recorder},
		maker:  &maker{client: view.NewClient(), live: live, clock: h.clock, suffix: suffix},
	}
	for _, like := range cached {
		view.ShowNextWrites(like, max(0, view.CountUnseenWrites(like)-h.rand.IntN(h.lag+1)))
	}
}

// run lets everything happen at random, then lets it settle.
func (h *history) run() {
	for h.steps < h.length && h.judge.broken == nil {
		h.step()
	}
	if h.judge.broken == nil {
		h.converge()
	}
	for _, r := range h.replicas {
		h.scheduler.KillProcess(r.process)
	}
	h.scheduler.WaitForCalls()
	if err := h.judge.broken; err != nil {
		h.t.Errorf("seed %d, step %d: %v\n%s\nagain: go test -run TestHistoriesOfLeases ./internal/controller/customization -history.steps=1 -history.seed=%d",
			h.seed, h.steps, err, h.log.String(), h.seed)
	}
}

// step is one thing that happens.
func (h *history) step() {
	h.steps++
	switch n := h.rand.IntN(100); {
	case n < 55 && len(h.calls) > 0:
		h.goOn()
	case n < 72:
		h.reconcile()
	case n < 82:
		r := h.replicas[h.rand.IntN(len(h.replicas))]
		r.view.ShowNextWrites(cached[h.rand.IntN(len(cached))], 1+h.rand.IntN(5))
	case n < 91:
		h.progress()
	case n < 96:
		h.users()
	default:
		h.clock.SetTime(h.clock.Now().Add(time.Duration(1+h.rand.IntN(100)) * time.Second))
	}
	h.settle()
}

// settle lets what has been let go on come to its next call.
func (h *history) settle() {
	var ended []*chaos.Task
	h.calls, ended = h.scheduler.WaitForCalls()
	for _, task := range ended {
		for _, r := range h.replicas {
			if r.process == task.Process {
				delete(r.busy, task.Name)
			}
		}
		if errors.Is(task.Err, chaos.ErrPanic) {
			h.judge.broke("%s: %v", task.Name, task.Err)
		}
	}
	for _, r := range h.replicas {
		if h.lag == 0 {
			r.view.ShowAllWrites()
		}
	}
}

// goOn lets one call go on; now and then it is its process's last.
func (h *history) goOn() {
	c := h.calls[h.rand.IntN(len(h.calls))]
	h.log.Add(c)
	if h.rand.IntN(300) > 0 {
		h.scheduler.ReleaseCall(c)
		return
	}
	h.log.Addf("%s dies, after that call or without it", c.Task.Process.Name)
	if h.rand.IntN(2) == 0 {
		h.scheduler.ReleaseAndKill(c)
	} else {
		h.scheduler.KillProcess(c.Task.Process)
	}
	h.settle()
	for i, r := range h.replicas {
		if r.process == c.Task.Process {
			h.start(i)
		}
	}
}

// reconcile starts a pass over something.
func (h *history) reconcile() {
	r := h.replicas[h.rand.IntN(len(h.replicas))]
	if h.scheduler.CountRunningTasks(r.process) >= 4 {
		return
	}
	if h.rand.IntN(3) == 0 {
		if keys := r.view.ListVisibleKeys(&hivev1.ClusterPool{}); len(keys) > 0 {
			h.pass(r, "pool", r.maker, keys[h.rand.IntN(len(keys))])
		}
		return
	}
	if keys := h.slots(r); len(keys) > 0 {
		h.pass(r, "lease", r.keeper, keys[h.rand.IntN(len(keys))])
	}
}

// slots are the customizations that a process has heard of.
func (h *history) slots(r *replica) []types.NamespacedName {
	var list hivev1.ClusterDeploymentList
	if err := r.view.NewClient().List(h.t.Context(), &list); err != nil {
		h.t.Fatal(err)
	}
	return keysOf(list.Items, r.view.ListVisibleKeys(&hivev1.ClusterDeploymentCustomization{}))
}

// pass starts a pass, unless one over the same object is under way: a work queue sees to that.
func (h *history) pass(r *replica, kind string, c reconcile.Reconciler, key types.NamespacedName) {
	name := kind + " " + key.Name
	if r.busy[name] {
		return
	}
	r.busy[name] = true
	h.scheduler.StartTask(h.t.Context(), r.process, name, func(ctx context.Context) error {
		_, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		return err
	})
}

func (h *history) make(o client.Object) {
	if err := h.store.Create(h.t.Context(), o); err == nil {
		h.log.Addf("user: create %T %s", o, o.GetName())
	}
}
