package history

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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/claimpolicy"
	"hotspare.io/hotspare/internal/controller/claimset"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clustergate"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/namespace"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

var (
	seedFlag  = flag.Uint64("history.seed", 0, "seed of the first random history, the next has the next; 0 takes one from the clock")
	stepsFlag = flag.Int("history.steps", 25_000, "how many steps, calls of the API and events, the random histories have in all, at least; 1 is one history")
)

// TestHistoriesOfSetsPoliciesAndGates runs the controllers through random histories, checks each write and each plan
// (judge), and checks that everything that can be served is served once no more events happen (converge). A seed always
// produces the same history.
func TestHistoriesOfSetsPoliciesAndGates(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-history.seed=%d", seed)
	began, count, sum, scheme := time.Now(), 0, counts{}, newScheme(t)
	defer func() {
		t.Logf("%d steps in %d histories, %.0f steps/s", sum["steps"], count, float64(sum["steps"])/time.Since(began).Seconds())
		t.Logf("%s", sum)
	}()
	for ; sum["steps"] < *stepsFlag; seed++ { // one that fails is the last: synctest.Test ends the test
		count++
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, scheme, seed)
			defer func() { sum.add(h.counts) }()
			h.run()
		})
	}
}

func TestASeedAlwaysMakesTheSameHistory(t *testing.T) {
	scheme := newScheme(t)
	for seed := range uint64(2) {
		var first string
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, scheme, seed)
				h.log.Keep, h.mood.length = 1<<30, 1000
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

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), rbacv1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// cached are the kinds that processes cache, and kinds are all kinds that the API has.
var (
	cached = []client.Object{
		&corev1.Namespace{}, &corev1.ConfigMap{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
		&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterImageSet{}, &hivev1.ClusterDeploymentCustomization{},
		&v1alpha1.PoolPolicy{}, &v1alpha1.ClusterBootstrap{}, &v1alpha1.ClaimPolicy{}, &v1alpha1.ClaimSet{},
	}
	kinds = append([]client.Object{&corev1.Secret{}}, cached...)
)

// mood is what kind of history it is.
type mood struct {
	pools int
	// lag is how many writes of a kind the cache may be behind at a time, about; 0 is not at all.
	lag     int
	crashes bool
	length  int
	// policies and gates are set if there may be ClaimPolicies, and gates.
	policies, gates bool
	// tight is a history in which limits are small, and claims and sets come all the time.
	tight bool
	// flapping is a history in which gates fail and pass again all the time.
	flapping bool
	// foreignPower is set if the writer of power states leaves the verdict about a run that has ended, as one does
	// that does not know of gates.
	foreignPower bool
	// narrow is a history in which most ClaimPolicies permit one pool only.
	narrow bool
	// names is how many names users give to claims: with few, a new claim often has the name of one that was released.
	names int
	// slowness is how long a watch stays slow, or not: it is the inverse of how likely that changes when writes become
	// visible.
	slowness int
	// restless is a history in which priorities change all the time and users release sets that wait; without ClaimPolicies, pools
	// get other limits at the end. steady is one in which priorities, pools and ClaimPolicies never change, and claims come
	// and go. A history is at most one of them.
	restless, steady bool
	// fragile is a history in which, if there are crashes, the process dies at every 200th call, not at every 4,000th.
	fragile bool
	// foreignFinalizers is a history in which users set and remove finalizers of their own on claims.
	foreignFinalizers bool
}

func newMood(r *rand.Rand) mood {
	temper := r.IntN(4)
	return mood{
		pools: 1 + r.IntN(3), lag: []int{0, 0, 2, 20}[r.IntN(4)], crashes: r.IntN(3) > 0, length: 1000 + r.IntN(6000),
		policies: r.IntN(3) > 0, gates: r.IntN(3) > 0, tight: r.IntN(2) == 0,
		flapping: r.IntN(3) == 0, foreignPower: r.IntN(3) == 0, narrow: r.IntN(3) == 0,
		names: []int{16, 16, 3}[r.IntN(3)], slowness: []int{8, 8, 60}[r.IntN(3)], restless: temper == 0, steady: temper == 1, fragile: r.IntN(4) == 0, foreignFinalizers: r.IntN(4) == 0,
	}
}

// history is one run.
type history struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	mood   mood
	counts counts

	clock     *clocktesting.FakePassiveClock
	store     *chaos.Store
	indexes   *chaos.Indexes
	scheduler *chaos.Scheduler
	process   *process
	judge     *judge
	// red has the gates that fail in a cluster.
	red   map[string]map[string]bool
	calls []*chaos.Call

	serial, steps int
	log           chaos.Log
}

func newHistory(t *testing.T, scheme *runtime.Scheme, seed uint64) *history {
	t.Helper()
	h := &history{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), log: chaos.Log{Keep: 150}, red: map[string]map[string]bool{}, counts: counts{},
		clock:   clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		indexes: &chaos.Indexes{}, scheduler: &chaos.Scheduler{},
	}
	h.mood = newMood(h.rand)
	h.store = chaos.New(scheme, h.clock, kinds...)
	h.judge = newJudge(h)
	h.store.Wrote = h.judge.checkWrite
	if err := errors.Join(clusterpool.AddIndexes(t.Context(), h.indexes), clusterclaim.AddIndexes(t.Context(), h.indexes)); err != nil {
		t.Fatal(err)
	}
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}})
	h.create(&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "v1"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "x:v1"}})
	if h.mood.gates {
		h.create(h.newBootstrap())
	}
	for _, name := range policyNames {
		if h.mood.policies && h.rand.IntN(2) == 0 {
			h.create(&v1alpha1.ClaimPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Spec: h.newPolicySpec(name)})
		}
	}
	for i := range h.mood.pools {
		h.create(h.newPool(poolNames[i]))
		if h.mood.gates && h.rand.IntN(4) > 0 {
			h.create(newPoolPolicy(poolNames[i]))
		}
	}
	h.startProcess()
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
	h.scheduler.KillProcess(h.process.Process)
	h.scheduler.WaitForCalls()
	h.counts["steps"] += h.steps
	if err := h.judge.broken; err != nil {
		h.t.Errorf("seed %d, %+v, step %d: %v\n%s\nagain: go test -run TestHistoriesOfSetsPoliciesAndGates ./test/history -history.steps=1 -history.seed=%d",
			h.seed, h.mood, h.steps, err, h.log.String(), h.seed)
	}
}

// step is one thing that happens.
func (h *history) step() {
	h.steps++
	switch n := h.rand.IntN(100); {
	case n < 60 && len(h.calls) > 0:
		h.continueCall()
	case n < 72:
		h.startPass()
	case n < 79:
		h.showWrites()
	case n < 91:
		h.moveCluster()
	case n < 98:
		h.actAsUser()
	case n < 99:
		h.pass(time.Duration(h.rand.IntN(120)) * time.Second)
	case h.mood.crashes && h.rand.IntN(25) == 0:
		h.restartProcess("is killed")
	}
	h.settle()
}

// settle lets what has been released come to its next call.
func (h *history) settle() {
	var ended []*chaos.Task
	h.calls, ended = h.scheduler.WaitForCalls()
	for _, task := range ended {
		delete(h.process.busy, task.Name)
		h.counts["passes"]++
		if errors.Is(task.Err, chaos.ErrPanic) {
			h.judge.report("%s: %v", task.Name, task.Err)
		}
		h.judge.checkEnd(task)
	}
	h.judge.checkPlans(h.calls)
	if h.mood.lag == 0 {
		h.process.view.ShowAllWrites()
	}
}

// continueCall lets one call go on; now and then it is its process's last.
func (h *history) continueCall() {
	c := h.calls[h.rand.IntN(len(h.calls))]
	h.log.Add(c)
	if h.mood.crashes && h.rand.IntN(map[bool]int{false: 4000, true: 200}[h.mood.fragile]) == 0 {
		if h.rand.IntN(2) == 0 {
			h.scheduler.ReleaseAndKill(c)
			h.settle() // the call is executed before anything else happens
		}
		h.restartProcess("dies, after that call or without it")
		return
	}
	h.release(c)
}

func (h *history) release(c *chaos.Call) {
	h.scheduler.ReleaseCall(c)
	h.settle()
	if c.Outcome != nil {
		h.counts["calls refused"]++
	}
}

// startPass starts a pass of a controller.
func (h *history) startPass() {
	if h.scheduler.CountRunningTasks(h.process.Process) >= 5 {
		return
	}
	i := []int{0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5}[h.rand.IntN(12)]
	if h.mood.policies && h.mood.tight && h.rand.IntN(4) == 0 {
		i = 3 // many admissions one after the other
	}
	c := h.process.controllers[i]
	keys := c.keys()
	if len(keys) == 0 {
		return
	}
	key := keys[h.rand.IntN(len(keys))]
	for range 4 { // a work queue has mostly what has something to do
		if c.name == "gate" && !h.judge.awaitsGates(key.Name) {
			key = keys[h.rand.IntN(len(keys))]
		}
	}
	h.reconcile(c, key)
}

// reconcile starts a pass, unless one over the same object is in progress: a work queue ensures that.
func (h *history) reconcile(c controller, key types.NamespacedName) {
	name := c.name + " " + key.Name
	if h.process.busy[name] {
		return
	}
	h.process.busy[name] = true
	h.scheduler.StartTask(h.t.Context(), h.process.Process, name, func(ctx context.Context) error {
		_, err := c.Reconcile(ctx, ctrl.Request{NamespacedName: key})
		return err
	})
}

// showWrites shows the cache some writes: of one kind, or all of the watches that are not slow.
func (h *history) showWrites() {
	p := h.process
	if h.rand.IntN(h.mood.slowness) == 0 {
		for i := range p.slow {
			p.slow[i] = h.rand.IntN(3) == 0
		}
	}
	if h.rand.IntN(2) == 0 {
		for i, like := range cached {
			if !p.slow[i] {
				p.view.ShowNextWrites(like, p.view.CountUnseenWrites(like))
			}
		}
		return
	}
	i := h.rand.IntN(len(cached))
	if !p.slow[i] || h.rand.IntN(2*h.mood.lag+1) == 0 {
		p.view.ShowNextWrites(cached[i], 1+h.rand.IntN(5))
	}
}

func (h *history) pass(d time.Duration) {
	h.clock.SetTime(h.clock.Now().Add(d))
	h.log.Addf("%s pass", d)
}

// process is the process with the controllers: its cache, and what it remembers.
type process struct {
	*chaos.Process
	view        *chaos.View
	controllers []controller
	busy        map[string]bool
	// slow are the watches that are behind, by the order of cached.
	slow []bool
}

type controller struct {
	reconcile.Reconciler
	name string
	keys func() []types.NamespacedName
}

// startProcess starts a process. Its cache is filled by lists that may be a little old.
func (h *history) startProcess() {
	view := h.store.NewView(h.indexes)
	known, live := client.Client(recorder{view.NewClient(), h.judge}), recorder{h.store.NewClient(), h.judge}
	var recorded events.FakeRecorder
	sets, policies := claimset.NewLister(known), claimpolicy.NewLister(known)
	every := func(like client.Object) func() []types.NamespacedName {
		return func() []types.NamespacedName { return view.ListVisibleKeys(like) }
	}
	one := func() []types.NamespacedName { return []types.NamespacedName{{Namespace: home}} }
	h.serial++
	h.process = &process{
		Process: &chaos.Process{Name: fmt.Sprintf("r%d", h.serial)}, view: view, busy: map[string]bool{}, slow: make([]bool, len(cached)),
		controllers: []controller{
			{&clusterpool.Reconciler{Client: known, Live: live, Clock: h.clock, Events: &recorded, Suffix: h.suffix, Sets: sets, Policies: policies}, "pool", every(&hivev1.ClusterPool{})},
			{&clustergate.Reconciler{Client: known, Spokes: h, Clock: h.clock, Events: &recorded}, "gate", every(&hivev1.ClusterDeployment{})},
			{&claimset.Reconciler{Client: known, Live: live, Clock: h.clock, Events: &recorded}, "set", every(&v1alpha1.ClaimSet{})},
			{&claimpolicy.Reconciler{Client: known, Live: live, Clock: h.clock, Events: &recorded}, "policy", one},
			{&clusterclaim.Reconciler{Client: known, Live: live, Clock: h.clock, Events: &recorded, Sets: sets, Policies: policies}, "claim", every(&hivev1.ClusterClaim{})},
			{&namespace.Reconciler{Client: known, Live: live}, "namespace", every(&corev1.Namespace{})},
		},
	}
	for _, like := range cached {
		n := view.CountUnseenWrites(like)
		if n > 10*h.mood.lag { // of few writes, the last ones may be old
			n -= h.rand.IntN(h.mood.lag + 1)
		}
		view.ShowNextWrites(like, n)
	}
}

// suffix is called by tasks, of which only one runs at a time.
func (h *history) suffix() string {
	h.serial++
	return fmt.Sprintf("%05d", h.serial)
}

func (h *history) restartProcess(why string) {
	h.log.Addf("%s %s", h.process.Name, why)
	h.counts["kills"]++
	h.scheduler.KillProcess(h.process.Process)
	h.settle()
	h.startProcess()
}

// recorder records what tasks read that decides about the requirements of a pool and about limits.
type recorder struct {
	client.Client
	judge *judge
}

// Get implements client.Reader.
func (r recorder) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := r.Client.Get(ctx, key, into, opts...)
	if task := chaos.TaskFromContext(ctx); task != nil {
		r.judge.recordGet(task, into, err == nil)
	}
	return err
}

// List implements client.Reader.
func (r recorder) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	err := r.Client.List(ctx, into, opts...)
	if task := chaos.TaskFromContext(ctx); task != nil && err == nil {
		r.judge.recordList(task, into)
	}
	return err
}
