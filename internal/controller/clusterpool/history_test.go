package clusterpool_test

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/customization"
	"hotspare.io/hotspare/internal/controller/namespace"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

var (
	historySeed  = flag.Uint64("history.seed", 0, "seed of the first random history, the next has the next; 0 takes one from the clock")
	historySteps = flag.Int("history.steps", 10000, "how many steps, calls of the API and events, the random histories have in all, at least; 1 is one history")
)

// TestHistoriesOfPoolsAndClaims runs the controllers of pools, claims, leases and namespaces
// through random histories: users who claim, release, resize and edit; in about half of them
// inventories; installs and resumes that fail; caches that are behind, each kind independently;
// processes that die at any call; and two processes that both believe to be leader. It checks the
// invariants after every write (judge), and that everything converges once no more events happen
// (converge).
//
// A seed always produces the same history.
func TestHistoriesOfPoolsAndClaims(t *testing.T) {
	seed := *historySeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-history.seed=%d", seed)
	began, steps, count, scheme := time.Now(), 0, 0, newScheme(t)
	defer func() {
		t.Logf("%d steps in %d histories, %.0f steps/s", steps, count, float64(steps)/time.Since(began).Seconds())
	}()
	for ; steps < *historySteps; seed++ { // one that fails is the last: synctest.Test ends the test
		count++
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, scheme, seed)
			defer func() { steps += h.steps }()
			h.run()
		})
	}
}

func TestASeedAlwaysMakesTheSameHistory(t *testing.T) {
	scheme := newScheme(t)
	for seed := range uint64(3) { // some of them have inventories
		var first string
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, scheme, seed)
				h.log.Keep = 1 << 30
				h.run()
				if text := h.log.String(); first == "" {
					first = text
				} else if first != text {
					t.Errorf("with seed %d it did not", seed)
				}
			})
		}
	}
}

// mood is what kind of history it is.
type mood struct {
	replicas, pools int
	// lag is how many writes of a kind a cache may be behind at a time, about; 0 is not at all.
	lag     int
	crashes bool
	length  int
	// slots is how many customizations there may be for pools to take, at most; 0 is none ever.
	slots int
	// hard is a history in which pools have maxConcurrent 1, some installs cannot begin, and
	// claims come all the time.
	hard bool
}

func newMood(r *rand.Rand) mood {
	m := mood{
		replicas: 1 + r.IntN(2), pools: 1 + r.IntN(2),
		lag: []int{0, 2, 2, 20}[r.IntN(4)], crashes: r.IntN(3) > 0,
		length: 300 + r.IntN(1500),
	}
	if r.IntN(2) == 0 {
		m.slots = 1 + r.IntN(len(slots))
		m.pools = max(m.pools, 1+r.IntN(2))
	}
	m.hard = r.IntN(3) == 0
	return m
}

// history is one run.
type history struct {
	t    *testing.T
	seed uint64
	rand *rand.Rand
	mood mood

	clock     *clocktesting.FakePassiveClock
	store     *chaos.Store
	indexes   *chaos.Indexes
	scheduler *chaos.Scheduler
	replicas  []*replica
	leader    int
	// overlap is set while those who do not lead any longer do not know it yet.
	overlap bool
	judge   *judge
	// cursed are the customizations with which every install fails for good.
	cursed map[string]bool
	// impossible are the image sets whose installs cannot begin.
	impossible map[string]bool
	calls      []*chaos.Call

	serial, steps int
	log           chaos.Log
}

func newHistory(t *testing.T, scheme *runtime.Scheme, seed uint64) *history {
	t.Helper()
	h := &history{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), log: chaos.Log{Keep: 150}, cursed: map[string]bool{}, impossible: map[string]bool{},
		clock:   clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		indexes: &chaos.Indexes{}, scheduler: &chaos.Scheduler{},
	}
	h.mood = newMood(h.rand)
	h.store = chaos.New(scheme, h.clock, allKinds...)
	h.judge = newJudge(h.store, h.clock, h.mood.replicas == 1)
	h.store.Wrote = h.judge.wrote
	if err := errors.Join(clusterpool.AddIndexes(t.Context(), h.indexes), clusterclaim.AddIndexes(t.Context(), h.indexes), customization.AddIndexes(t.Context(), h.indexes)); err != nil {
		t.Fatal(err)
	}
	h.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}})
	for _, name := range imageSets {
		h.make(&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "x:" + name}})
	}
	h.stock()
	for i := range h.mood.pools {
		h.make(h.newPool(poolNames[i]))
	}
	for i := range h.mood.replicas {
		h.replicas = append(h.replicas, nil)
		h.start(i)
	}
	return h
}

// run lets everything happen at random, then lets it settle.
func (h *history) run() {
	for h.steps < h.mood.length && h.judge.broken == nil {
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
		h.t.Errorf("seed %d, %+v, step %d: %v\n%s\nagain: go test -run TestHistoriesOfPoolsAndClaims ./internal/controller/clusterpool -history.steps=1 -history.seed=%d",
			h.seed, h.mood, h.steps, err, h.log.String(), h.seed)
	}
}

// step is one thing that happens.
func (h *history) step() {
	h.steps++
	if h.rand.IntN(40) == 0 {
		h.editPool()
	}
	switch n := h.rand.IntN(100); {
	case n < 60 && len(h.calls) > 0:
		h.goOn()
	case n < 72:
		h.reconcile()
	case n < 84:
		h.show()
	case n < 93:
		h.progress()
	case n < 96 && h.mood.slots > 0 && h.rand.IntN(2) == 0, n == 96 && h.mood.slots > 0:
		h.stockists()
	case n < 96:
		h.users()
	case n < 98:
		h.pass(time.Duration(1+h.rand.IntN(300)) * time.Second)
	default:
		h.mishap()
	}
	h.settle()
}

// settle lets what has been let go on come to its next call.
func (h *history) settle() {
	var ended []*chaos.Task
	h.calls, ended = h.scheduler.WaitForCalls()
	for _, task := range ended {
		for _, r := range h.replicas {
			delete(r.busy, task.Name)
		}
		if errors.Is(task.Err, chaos.ErrPanic) {
			h.judge.broke("%s: %v", task.Name, task.Err)
		}
	}
	if h.mood.lag == 0 {
		for _, r := range h.replicas {
			r.view.ShowAllWrites()
		}
	}
}

// goOn lets one call go on; now and then it is its process's last.
func (h *history) goOn() {
	c := h.calls[h.rand.IntN(len(h.calls))]
	h.log.Add(c)
	if h.mood.crashes && h.rand.IntN(400) == 0 {
		h.log.Addf("%s dies, after that call or without it", c.Task.Process.Name)
		if h.rand.IntN(2) == 0 {
			h.scheduler.ReleaseAndKill(c)
		} else {
			h.scheduler.KillProcess(c.Task.Process)
		}
		h.restart(c.Task.Process)
		return
	}
	h.scheduler.ReleaseCall(c)
}

// reconcile starts a pass of one who leads, or thinks so.
func (h *history) reconcile() {
	i := h.leader
	if h.overlap {
		i = h.rand.IntN(len(h.replicas))
	}
	r := h.replicas[i]
	if h.scheduler.CountRunningTasks(r.process) >= 4 {
		return
	}
	c := r.controllers[[]int{0, 0, 0, 1, 1, 2, 3}[h.rand.IntN(h.kinds())]]
	keys := h.keys(r, c)
	if len(keys) == 0 {
		return
	}
	h.pass1(r, c, keys[h.rand.IntN(len(keys))])
}

// pass1 starts a pass, unless one over the same object is under way: a work queue
// sees to that.
func (h *history) pass1(r *replica, c controller, key types.NamespacedName) {
	name := c.name + " " + key.Name
	if r.busy[name] {
		return
	}
	r.busy[name] = true
	h.scheduler.StartTask(h.t.Context(), r.process, name, func(ctx context.Context) error {
		_, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		return err
	})
}

// show shows somebody's cache some writes: those of one kind, or all that its
// better watches have.
func (h *history) show() {
	r := h.replicas[h.rand.IntN(len(h.replicas))]
	if h.rand.IntN(2) == 0 {
		for i, like := range cached {
			if !r.hanging[i] {
				r.view.ShowNextWrites(like, r.view.CountUnseenWrites(like))
			}
		}
		return
	}
	i := h.rand.IntN(len(cached))
	if r.hanging[i] && h.rand.IntN(2*h.mood.lag+1) > 0 {
		return
	}
	r.view.ShowNextWrites(cached[i], 1+h.rand.IntN(5))
}

func (h *history) pass(d time.Duration) {
	h.clock.SetTime(h.clock.Now().Add(d))
	h.log.Addf("%s pass", d)
}

// mishap is what happens to processes.
func (h *history) mishap() {
	switch h.rand.IntN(4) {
	case 0:
		h.leader = h.rand.IntN(len(h.replicas))
		h.overlap = h.rand.IntN(2) == 0
		h.log.Addf("%s leads, overlap %t", h.replicas[h.leader].process.Name, h.overlap)
	case 1:
		if h.mood.crashes && h.rand.IntN(3) == 0 {
			r := h.replicas[h.rand.IntN(len(h.replicas))]
			h.log.Addf("%s is killed", r.process.Name)
			h.scheduler.KillProcess(r.process)
			h.restart(r.process)
		}
	default:
		r := h.replicas[h.rand.IntN(len(h.replicas))]
		for i := range r.hanging {
			r.hanging[i] = h.rand.IntN(3) == 0
		}
	}
}

// replica is one process: its cache, and controllers that remember nothing of
// another process.
type replica struct {
	process     *chaos.Process
	view        *chaos.View
	controllers []controller
	busy        map[string]bool
	// hanging are the watches that get along badly, by the order of cached.
	hanging []bool
}

type controller struct {
	reconcile.Reconciler
	name string
	like client.Object
}

// start starts the process of replica i. Its cache is filled by lists that may be
// a little old.
func (h *history) start(i int) {
	view, live := h.store.NewView(h.indexes), h.store.NewClient()
	var recorder events.FakeRecorder
	h.serial++
	h.replicas[i] = &replica{
		process: &chaos.Process{Name: fmt.Sprintf("r%d.%d", i, h.serial)},
		view:    view, busy: map[string]bool{}, hanging: make([]bool, len(cached)),
		controllers: []controller{
			{&clusterpool.Reconciler{Client: view.NewClient(), Live: live, Clock: h.clock, Events: &recorder, Suffix: h.suffix}, "pool", &hivev1.ClusterPool{}},
			{&clusterclaim.Reconciler{Client: view.NewClient(), Live: live, Clock: h.clock, Events: &recorder}, "claim", &hivev1.ClusterClaim{}},
			{&namespace.Reconciler{Client: view.NewClient(), Live: live}, "namespace", &corev1.Namespace{}},
			{&customization.Reconciler{Client: view.NewClient(), Live: live, Clock: h.clock, Events: &recorder}, "customization", &hivev1.ClusterDeploymentCustomization{}},
		},
	}
	for _, like := range cached {
		view.ShowNextWrites(like, max(0, view.CountUnseenWrites(like)-h.rand.IntN(h.mood.lag+1)))
	}
}

// suffix is called by tasks, of which only one runs at a time.
func (h *history) suffix() string {
	h.serial++
	return fmt.Sprintf("%05d", h.serial)
}

// restart restarts a killed process; often another one is leader by then.
func (h *history) restart(p *chaos.Process) {
	h.settle()
	for i, r := range h.replicas {
		if r.process == p {
			h.start(i)
		}
	}
	if h.rand.IntN(2) == 0 {
		h.leader = h.rand.IntN(len(h.replicas))
	}
}

func (h *history) make(o client.Object) {
	if err := h.store.Create(h.t.Context(), o); err == nil {
		h.log.Addf("user: create %T %s", o, o.GetName())
	}
}
