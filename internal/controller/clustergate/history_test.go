package clustergate_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

var (
	historySteps = flag.Int("gates.steps", 100_000, "number of steps of the random histories")
	historySeed  = flag.Uint64("gates.seed", 0, "seed of the random histories; 0 chooses one")
)

// history is a pool whose controllers run in any order, each on what it has read before, which may be old.
type history struct {
	*rand.Rand
	now       time.Time
	policy    *v1alpha1.PoolPolicy
	bootstrap *v1alpha1.ClusterBootstrap
	pool      *hivev1.ClusterPool
	clusters  map[string]*cluster
	claims    map[string]*hivev1.ClusterClaim
	// seen has older versions of the clusters, as a cache may show them.
	seen  map[string]*hivev1.ClusterDeployment
	next  int
	bound int
	// verdicts counts those that were stored, by whether they passed, and refused those that came too late.
	verdicts map[bool]int
	refused  int
}

// cluster is a cluster with what only the world knows of it.
type cluster struct {
	cd *hivev1.ClusterDeployment
	// run counts how often it has begun to run, version its writes.
	run, version int
	failing      map[string]bool
	checking     *check
	// checked is the last check whose verdict was stored.
	checked *check
}

// check is one look at the gates of a cluster, and the object on which it is based.
type check struct {
	plan         gate.Plan
	run, version int
	requirement  string
	passed       bool
}

func newHistory(seed uint64) *history {
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		clusters: map[string]*cluster{}, claims: map[string]*hivev1.ClusterClaim{}, seen: map[string]*hivev1.ClusterDeployment{},
		verdicts: map[bool]int{},
	}
	h.pool = &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Finalizers: []string{hivev1.FinalizerPool}},
		Spec:       hivev1.ClusterPoolSpec{Size: 4, RunningCount: 2},
	}
	h.policy = &v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
	return h
}

// requirement is what the pool requires now.
func (h *history) requirement() gate.Requirement { return gate.NewRequirement(h.policy, h.bootstrap) }

func (h *history) step() error {
	h.now = h.now.Add(time.Duration(h.IntN(400)) * time.Millisecond)
	switch n := h.IntN(100); {
	case n < 2:
		h.changeBootstrap()
	case n < 10:
		h.changeTruth()
	case n < 16:
		h.changeClaims()
	case n < 45:
		h.runPower()
	case n < 80:
		h.checkGates()
	case n < 83:
		h.observe()
	default:
		return h.runPool()
	}
	return nil
}

// changeBootstrap edits, removes or adds gates.
func (h *history) changeBootstrap() {
	switch h.IntN(6) {
	case 0:
		h.policy.Spec.BootstrapRef = nil
	case 1:
		h.bootstrap = nil
	default:
		h.policy.Spec.BootstrapRef = &v1alpha1.BootstrapReference{Name: "b"}
		b := &v1alpha1.ClusterBootstrap{Spec: v1alpha1.ClusterBootstrapSpec{GateTimeout: "20s"}}
		for i := range 1 + h.IntN(3) {
			typ := []v1alpha1.GateType{v1alpha1.GateNodesReady, v1alpha1.GatePodRuns}[h.IntN(2)]
			b.Spec.Gates = append(b.Spec.Gates, v1alpha1.Gate{Name: fmt.Sprintf("g%d", i), Type: typ})
		}
		h.bootstrap = b
	}
}

// pick returns a random cluster; nil if there is none.
func (h *history) pick() *cluster {
	if len(h.clusters) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(h.clusters))
	return h.clusters[names[h.IntN(len(names))]]
}

// changeTruth lets a gate of a cluster begin or cease to fail.
func (h *history) changeTruth() {
	if c := h.pick(); c != nil {
		name := fmt.Sprintf("g%d", h.IntN(3))
		c.failing[name] = !c.failing[name]
	}
}

func (h *history) changeClaims() {
	if len(h.claims) < 3 {
		h.next++
		name := fmt.Sprintf("claim%d", h.next)
		h.claims[name] = &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, CreationTimestamp: metav1.NewTime(h.now)}}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(h.claims)) {
		if c := h.claims[name]; c.Spec.Namespace != "" {
			h.remove(c.Spec.Namespace)
			delete(h.claims, name)
			return
		}
	}
}

func (h *history) remove(name string) {
	delete(h.clusters, name)
	delete(h.seen, name)
}

// runPower does what the power controller does, one write at a time.
func (h *history) runPower() {
	c := h.pick()
	if c == nil {
		return
	}
	cd, at := c.cd, metav1.NewTime(h.now.Truncate(time.Second))
	up := cd.Spec.PowerState != hivev1.PowerHibernating
	target := hivev1.PowerHibernating
	if up {
		target = hivev1.PowerRunning
	}
	switch t := cd.Status.PowerTransition; {
	case h.IntN(40) == 0 && cd.Status.PowerState == hivev1.StatusRunning: // somebody stops its machines
		cd.Status.PowerState = hivev1.ReasonWaitingForMachines
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at}
	case t == nil || t.Target != target:
		cd.Status.PowerState = hivev1.ReasonStopping
		if up {
			cd.Status.PowerState = hivev1.ReasonResuming
		}
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: target, StartedAt: at}
	case t.FinishedAt == nil && up:
		t.FinishedAt, cd.Status.PowerState = &at, hivev1.StatusRunning
		c.run++
	case t.FinishedAt == nil:
		t.FinishedAt, cd.Status.PowerState = &at, hivev1.StatusHibernating
	case up && h.IntN(30) == 0: // it becomes unready, and ready again
		cd.Status.PowerState = hivev1.ReasonWaitingForNodes
	case up && cd.Status.PowerState != hivev1.StatusRunning:
		cd.Status.PowerState = hivev1.StatusRunning
		c.run++
	}
	gate.EndRun(cd, h.now)
	c.version++
}

// checkGates begins or ends a check of a cluster.
func (h *history) checkGates() {
	c := h.pick()
	if c == nil {
		return
	}
	if c.checking == nil {
		c.checking = h.beginCheck(c)
		return
	}
	k := c.checking
	c.checking = nil
	if k.version != c.version {
		h.refused++
		return
	}
	c.cd.Status.Gates = k.plan.Record
	if k.plan.Condition == (condition.Value{}) {
		condition.Remove(&c.cd.Status.Conditions, hivev1.ClusterGatesPassed)
	}
	condition.Apply(&c.cd.Status.Conditions, hivev1.ClusterGatesPassed, k.plan.Condition, h.now)
	c.version++
	c.checked = k
	if k.requirement != "" {
		h.verdicts[k.passed]++
	}
}

func (h *history) beginCheck(c *cluster) *check {
	if ref := c.cd.Spec.ClusterPoolRef; ref.ClaimName != "" {
		return nil
	}
	s := gate.Snapshot{
		Requirement: h.requirement(), Running: gate.IsCheckable(c.cd), RunStartedAt: gate.RunStart(c.cd), Record: c.cd.Status.Gates.DeepCopy(),
		Reported: condition.Find(c.cd.Status.Conditions, hivev1.ClusterGatesPassed) != nil, Answers: map[string]gate.Answer{}, Now: h.now,
	}
	k := &check{run: c.run, version: c.version, requirement: s.Requirement.Version, passed: s.Running && s.Requirement.Problem == ""}
	for _, g := range s.GatesToCheck() {
		if h.IntN(20) == 0 {
			k.passed = false // it does not answer
			continue
		}
		s.Answers[g.Name] = gate.Answer{Passed: !c.failing[g.Name], Message: "no"}
		k.passed = k.passed && !c.failing[g.Name]
	}
	k.plan = gate.Decide(s)
	return k
}

// observe lets the cache of the pool's controller catch up.
func (h *history) observe() {
	for name, c := range h.clusters {
		h.seen[name] = c.cd.DeepCopy()
	}
}

// runPool does a pass over the pool, on what the cache shows of half of the clusters.
func (h *history) runPool() error {
	view, current := map[string]*hivev1.ClusterDeployment{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.clusters)) {
		c := h.clusters[name]
		view[name], current[name] = c.cd, true
		if old := h.seen[name]; old != nil && h.IntN(4) == 0 {
			view[name], current[name] = old, old.ResourceVersion == fmt.Sprint(c.version)
		}
	}
	required := h.requirement()
	o := facts.Objects{Pool: h.pool, Clusters: view, Claims: h.claims, Gates: &required}
	s, err := o.PoolSnapshot(inventory.Plan{}, h.now)
	if err != nil {
		return err
	}
	for _, st := range pool.Decide(s).Steps {
		if err := h.apply(st, required, current); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) apply(st pool.Step, required gate.Requirement, current map[string]bool) error {
	c := h.clusters[st.Cluster]
	if st.Verb != pool.Create && (c == nil || !current[st.Cluster]) {
		return nil // the API server refuses a write to another version
	}
	switch st.Verb {
	case pool.Bind:
		c.cd.Spec.ClusterPoolRef.ClaimName = st.Claim
		h.claims[st.Claim].Spec.Namespace = st.Cluster
		h.bound++
		c.version++
		current[st.Cluster] = false
		return h.judge(st, c, required)
	case pool.Start:
		c.cd.Spec.PowerState = hivev1.PowerRunning
	case pool.Hibernate:
		c.cd.Spec.PowerState = hivev1.PowerHibernating
	case pool.Delete:
		h.remove(st.Cluster)
		return nil
	case pool.Create:
		h.create()
		return nil
	}
	if c != nil {
		c.version++
		current[st.Cluster] = false
	}
	return nil
}

func (h *history) create() {
	name := fmt.Sprintf("c%d", h.next)
	h.next++
	version, _ := pool.Version(h.pool.Spec)
	at := metav1.NewTime(h.now.Truncate(time.Second))
	h.clusters[name] = &cluster{failing: map[string]bool{}, cd: &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: at, Annotations: map[string]string{hivev1.AnnotationPoolVersion: version}},
		Spec:       hivev1.ClusterDeploymentSpec{Installed: true, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"}},
		Status:     hivev1.ClusterDeploymentStatus{InstalledTimestamp: &at, PowerState: hivev1.StatusRunning},
	}}
}

// judge returns an error if a claim got a cluster whose gates were not known to pass, in its current run and in
// the version that the pool requires.
func (h *history) judge(st pool.Step, c *cluster, required gate.Requirement) error {
	if required.Version == "" {
		return nil
	}
	switch k := c.checked; {
	case required.Problem != "":
		return fmt.Errorf("%s: %s", st, required.Problem)
	case k == nil:
		return fmt.Errorf("%s: its gates were never checked", st)
	case k.run != c.run:
		return fmt.Errorf("%s: its gates were checked in run %d, and this is run %d", st, k.run, c.run)
	case k.requirement != required.Version:
		return fmt.Errorf("%s: other gates were checked", st)
	case !k.passed:
		return fmt.Errorf("%s: a gate fails", st)
	}
	return nil
}

// In random histories, no claim gets a cluster whose gates fail or are not known in its current run.
func TestNoClaimGetsAClusterWithAFailingGate(t *testing.T) {
	t.Parallel()
	seed := *historySeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	h := newHistory(seed)
	for i := range *historySteps {
		if err := h.step(); err != nil {
			t.Fatalf("step %d of seed %d: %s", i, seed, err)
		}
		for _, c := range h.clusters {
			c.cd.ResourceVersion = fmt.Sprint(c.version)
		}
	}
	t.Logf("seed %d: %d bindings, verdicts %v, %d refused", seed, h.bound, h.verdicts, h.refused)
	if *historySteps >= 100_000 && (h.bound < 100 || h.verdicts[true] < 100 || h.verdicts[false] < 100 || h.refused < 100) {
		t.Errorf("seed %d: the history shows too little: %d bindings, verdicts %v, %d refused", seed, h.bound, h.verdicts, h.refused)
	}
}
