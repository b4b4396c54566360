package bootstrapstep_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

var (
	historySteps = flag.Int("bootstrap.steps", 30_000, "number of steps of the random histories")
	historySeed  = flag.Uint64("bootstrap.seed", 0, "seed of the random histories; 0 chooses one")
)

// history is a pool whose controllers run in any order, are killed anywhere, and read what may be old.
type history struct {
	*rand.Rand
	now       time.Time
	bootstrap *v1alpha1.ClusterBootstrap
	// config is the content of the ConfigMap that the steps refer to; empty if it does not exist.
	config   string
	pool     *hivev1.ClusterPool
	clusters map[string]*cluster
	claims   map[string]*hivev1.ClusterClaim
	// seen has older versions of the clusters, as a cache may show them.
	seen map[string]*hivev1.ClusterDeployment
	// stepsOf has the names of the steps of each version.
	stepsOf map[string][]string
	next    int
	// calm is set while nothing fails, and nobody changes anything. broken is set while every step fails for good.
	calm, broken bool
	// bound, killed, failed, finished, replaced and converted count what has happened. served are the bindings of
	// clusters that predate the steps, and lost those of them that were deleted after they had begun the steps.
	bound, killed, failed, finished, replaced, converted, served, lost int
}

// cluster is a cluster with what only the world knows of it.
type cluster struct {
	cd      *hivev1.ClusterDeployment
	version int
	// taken are the steps that succeeded in it, with their versions, without repetitions.
	taken []string
	// converted is set if it predates the steps, and its pool has let it begin them.
	converted bool
}

func newHistory(seed uint64) *history {
	h := &history{
		Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		clusters: map[string]*cluster{}, claims: map[string]*hivev1.ClusterClaim{}, seen: map[string]*hivev1.ClusterDeployment{},
		stepsOf: map[string][]string{"": nil},
	}
	h.pool = &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", Finalizers: []string{hivev1.FinalizerPool}},
		Spec:       hivev1.ClusterPoolSpec{Size: 4, RunningCount: 2},
	}
	return h
}

// requirement is what the pool requires now.
func (h *history) requirement() bootstrap.Requirement {
	if h.bootstrap == nil {
		return bootstrap.Requirement{}
	}
	sources := map[bootstrap.Reference]bootstrap.Source{}
	if h.config != "" {
		sources[bootstrap.Reference{Name: "c"}] = bootstrap.Source{UID: "u", Data: map[string]string{"a": h.config}}
	}
	r := bootstrap.NewRequirement(h.bootstrap, sources)
	var names []string
	for _, s := range r.Steps {
		names = append(names, s.Name)
	}
	h.stepsOf[r.Version] = names
	return r
}

func (h *history) step() error {
	h.now = h.now.Add(time.Duration(h.IntN(1000)) * time.Millisecond)
	switch n := h.IntN(200); {
	case n < 1 && !h.calm:
		h.changeBootstrap()
	case n < 12 && !h.calm:
		h.changeClaims()
	case n < 60:
		h.runPower()
	case n < 150:
		return h.takeStep()
	case n < 156:
		h.observe()
	default:
		return h.runPool()
	}
	return nil
}

// changeBootstrap edits the steps or what they refer to, or removes them.
func (h *history) changeBootstrap() {
	switch h.IntN(8) {
	case 0, 1, 2:
		h.bootstrap = nil
	case 3:
		h.config = ""
	case 4:
		h.writeConfig()
	default:
		h.writeBootstrap()
	}
}

func (h *history) writeConfig() {
	h.config = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {n: '%d'}}", h.IntN(3))
}

func (h *history) writeBootstrap() {
	b := &v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	for i := range 1 + h.IntN(3) {
		m := &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{{ConfigMapRef: &v1alpha1.ManifestReference{Name: "c"}}}}
		if h.IntN(2) == 0 {
			m = &v1alpha1.BootstrapManifests{Objects: []runtime.RawExtension{{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"o%d"}}`, h.IntN(3))}}}
		}
		b.Spec.Steps = append(b.Spec.Steps, v1alpha1.BootstrapStep{Name: fmt.Sprintf("s%d", i), Timeout: "30s", Manifests: m})
	}
	h.bootstrap = b
}

// pick returns a random cluster; nil if there is none.
func (h *history) pick() *cluster {
	if len(h.clusters) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(h.clusters))
	return h.clusters[names[h.IntN(len(names))]]
}

func (h *history) changeClaims() {
	if len(h.claims) < 3 {
		h.next++
		name := fmt.Sprintf("claim%d", h.next)
		h.claims[name] = &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, CreationTimestamp: metav1.NewTime(h.now)}}
		return
	}
	h.releaseClaim()
}

func (h *history) releaseClaim() {
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
	case !h.calm && h.IntN(20) == 0 && cd.Status.PowerState == hivev1.StatusRunning: // it loses power
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
	case t.FinishedAt == nil:
		t.FinishedAt, cd.Status.PowerState = &at, hivev1.StatusHibernating
	default:
		return
	}
	bootstrap.EndRun(cd)
	c.version++
}

// takeStep does a pass of the controller of steps over a cluster. It may be killed after each write and attempt,
// and somebody else may write the cluster in between.
func (h *history) takeStep() error {
	c := h.pick()
	if c == nil || c.cd.Spec.ClusterPoolRef.ClaimName != "" {
		return nil
	}
	cd := c.cd.DeepCopy()
	s := bootstrap.Snapshot{
		Requirement: h.requirement(), Running: gate.IsCheckable(cd), RunStartedAt: gate.RunStart(cd), Record: cd.Status.Bootstrap,
		Reported: condition.Find(cd.Status.Conditions, hivev1.ClusterBootstrapped) != nil, Now: h.now,
		AwaitsPool: !bootstrap.HasBegun(cd) && h.predatesSteps(c), Undecided: !bootstrap.HasBegun(cd) && h.pool.Status.StepsSince == nil,
	}
	p := bootstrap.Decide(s)
	h.write(c, p)
	if p.Attempt == nil || h.kill() {
		return nil
	}
	if err := h.judgeAttempt(c, s.Requirement, p.Attempt.Name); err != nil {
		return err
	}
	outcome := &bootstrap.Outcome{Done: h.calm || h.IntN(3) == 0, Failed: h.IntN(2) == 0, Message: "no"}
	if h.broken {
		outcome = &bootstrap.Outcome{Failed: true, Final: true, Message: "never"}
	}
	if outcome.Done {
		if name := s.Requirement.Version + "/" + p.Attempt.Name; !slices.Contains(c.taken, name) {
			c.taken = append(c.taken, name)
		}
	} else {
		h.failed++
	}
	if h.kill() {
		return nil
	}
	version := c.version
	if !h.calm && h.IntN(10) == 0 {
		h.runPower()
	}
	s.Record, s.Reported, s.Outcome, s.Now = c.cd.Status.Bootstrap, true, outcome, h.now
	if c.version != version {
		return nil // the write would be refused
	}
	h.write(c, bootstrap.Decide(s))
	if bootstrap.IsFinished(c.cd) {
		h.finished++
	}
	return nil
}

// predatesSteps reports whether a cluster was installed before the pool had steps, by the times that a user sees.
func (h *history) predatesSteps(c *cluster) bool {
	since := h.pool.Status.StepsSince
	return since != nil && c.cd.Status.InstalledTimestamp.Before(since)
}

func (h *history) kill() bool {
	if h.calm || h.IntN(10) > 0 {
		return false
	}
	h.killed++
	return true
}

// write stores a plan.
func (h *history) write(c *cluster, p bootstrap.Plan) {
	if p.Unchanged {
		return
	}
	c.cd.Status.Bootstrap = p.Record.DeepCopy()
	if p.Condition == (condition.Value{}) {
		condition.Remove(&c.cd.Status.Conditions, hivev1.ClusterBootstrapped)
	}
	condition.Apply(&c.cd.Status.Conditions, hivev1.ClusterBootstrapped, p.Condition, h.now)
	c.version++
}

// judgeAttempt returns an error if a step is taken out of order, beside steps of another version, or without a
// record of it.
func (h *history) judgeAttempt(c *cluster, r bootstrap.Requirement, name string) error {
	record := c.cd.Status.Bootstrap
	if record == nil || record.Version != r.Version || record.Step != name {
		return fmt.Errorf("%s takes step %s of %s, and the record is %+v", c.cd.Name, name, r.Version, record)
	}
	i := slices.Index(h.stepsOf[r.Version], name)
	for j, other := range c.taken {
		if j > i || other != r.Version+"/"+h.stepsOf[r.Version][j] {
			return fmt.Errorf("%s takes step %s of %s after %v", c.cd.Name, name, r.Version, c.taken)
		}
	}
	if len(c.taken) < i {
		return fmt.Errorf("%s takes step %s of %s too early, after %v", c.cd.Name, name, r.Version, c.taken)
	}
	return nil
}

// judgeBinding returns an error if a claim got a cluster that has not taken every step of its version, in order.
func (h *history) judgeBinding(st pool.Step, c *cluster, r bootstrap.Requirement) error {
	record := c.cd.Status.Bootstrap
	switch {
	case record == nil && r.Version == "":
		return nil
	case record == nil && h.predatesSteps(c):
		h.served++
		return nil
	case record == nil || record.FinishedAt == nil:
		return fmt.Errorf("%s: it has not finished the steps of %q: %+v", st, r.Version, record)
	}
	var want []string
	for _, name := range h.stepsOf[record.Version] {
		want = append(want, record.Version+"/"+name)
	}
	if !slices.Equal(c.taken, want) {
		return fmt.Errorf("%s: it has taken %v of version %s", st, c.taken, record.Version)
	}
	return nil
}

// observe lets the cache of the pool's controller catch up.
func (h *history) observe() {
	for name, c := range h.clusters {
		h.seen[name] = c.cd.DeepCopy()
	}
}

// runPool does a pass over the pool, on what the cache shows of some of the clusters.
func (h *history) runPool() error {
	view, current := map[string]*hivev1.ClusterDeployment{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(h.clusters)) {
		c := h.clusters[name]
		view[name], current[name] = c.cd, true
		if old := h.seen[name]; !h.calm && old != nil && h.IntN(4) == 0 {
			view[name], current[name] = old, old.ResourceVersion == fmt.Sprint(c.version)
		}
	}
	required := h.requirement()
	o := facts.Objects{Pool: h.pool, Clusters: view, Claims: h.claims, Gates: &gate.Requirement{}, Steps: required}
	if required.Problem != "" {
		o.Missing = []string{required.Problem}
	}
	s, err := o.PoolSnapshot(inventory.Plan{}, h.now)
	if err != nil {
		return err
	}
	p := pool.Decide(s)
	// The controller confirms that it has seen which clusters have begun the steps.
	confirmed := !slices.ContainsFunc(slices.Collect(maps.Values(view)), func(cd *hivev1.ClusterDeployment) bool {
		return bootstrap.HasBegun(h.clusters[cd.Name].cd) != bootstrap.HasBegun(cd)
	})
	written := false
	for _, st := range p.Steps {
		if h.kill() {
			return nil
		}
		if (st.Verb == pool.Create || st.Verb == pool.Delete) && !written {
			h.pool.Status, written = o.PoolStatus(p.Report, inventory.Plan{}, nil, h.now), true
		}
		if st.Verb == pool.Bootstrap && !confirmed {
			continue
		}
		if err := h.apply(st, required, current); err != nil {
			return err
		}
	}
	if !written && !h.kill() {
		h.pool.Status = o.PoolStatus(p.Report, inventory.Plan{}, nil, h.now)
	}
	return nil
}

// judgeConversion returns an error if more spares that predate the steps take them at a time than clusters have taken all.
func (h *history) judgeConversion(st pool.Step, version string) error {
	done, taking := 0, 0
	for _, c := range h.clusters {
		switch r := c.cd.Status.Bootstrap; {
		case r == nil || r.Version != version:
		case r.FinishedAt != nil:
			done++
		case c.converted && c.cd.Spec.ClusterPoolRef.ClaimName == "" && c.cd.Status.PowerState == hivev1.StatusRunning:
			taking++
		}
	}
	if taking > max(done, 1) {
		return fmt.Errorf("%s: %d older spares take steps of %s, and %d clusters have taken them", st, taking, version, done)
	}
	return nil
}

func (h *history) apply(st pool.Step, required bootstrap.Requirement, current map[string]bool) error {
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
		return h.judgeBinding(st, c, required)
	case pool.Start:
		c.cd.Spec.PowerState = hivev1.PowerRunning
	case pool.Hibernate:
		if required.Version != "" && required.Problem == "" && !bootstrap.IsFinished(c.cd) && (c.converted || !h.predatesSteps(c)) {
			return fmt.Errorf("%s: it has steps to take", st)
		}
		c.cd.Spec.PowerState = hivev1.PowerHibernating
	case pool.Bootstrap:
		if !h.predatesSteps(c) || c.cd.Status.Bootstrap != nil {
			return fmt.Errorf("%s: it does not predate the steps: %+v", st, c.cd.Status.Bootstrap)
		}
		c.cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: required.Version}
		c.converted = true
		h.converted++
		if err := h.judgeConversion(st, required.Version); err != nil {
			return err
		}
	case pool.Delete:
		if c.converted {
			h.lost++
		}
		h.remove(st.Cluster)
		h.replaced++
		return nil
	case pool.Create:
		h.create()
		return nil
	}
	c.version++
	current[st.Cluster] = false
	return nil
}

func (h *history) create() {
	name := fmt.Sprintf("c%d", h.next)
	h.next++
	version, _ := pool.Version(h.pool.Spec)
	at := metav1.NewTime(h.now.Truncate(time.Second))
	h.clusters[name] = &cluster{cd: &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: at, Annotations: map[string]string{hivev1.AnnotationPoolVersion: version}},
		Spec:       hivev1.ClusterDeploymentSpec{Installed: true, ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "n", PoolName: "p"}},
		Status:     hivev1.ClusterDeploymentStatus{InstalledTimestamp: &at, PowerState: hivev1.StatusRunning},
	}}
}

// settle lets the pool settle: nothing fails, and the claims go. Then every spare must have the steps of today.
func (h *history) settle() error {
	h.calm = true
	h.writeConfig()
	h.writeBootstrap()
	for range 4000 {
		if err := h.step(); err != nil {
			return err
		}
		h.releaseClaim()
		h.number()
	}
	required := h.requirement()
	if len(h.clusters) != int(h.pool.Spec.Size) || len(h.claims) > 0 {
		return fmt.Errorf("the pool has %d clusters and %d claims", len(h.clusters), len(h.claims))
	}
	for name, c := range h.clusters {
		if r := c.cd.Status.Bootstrap; r == nil || r.FinishedAt == nil || r.Version != required.Version {
			return fmt.Errorf("%s, %s, does not settle in version %s: %+v", name, c.cd.Status.PowerState, required.Version, r)
		}
	}
	return nil
}

// number gives the objects the resource versions that the API server would give them.
func (h *history) number() {
	for _, c := range h.clusters {
		c.cd.ResourceVersion = fmt.Sprint(c.version)
	}
}

// In random histories, a cluster takes the steps of one version in their order, no claim gets it before the last
// one is done, and it does not hibernate before; and a pool that is left alone has clusters with the steps of today.
func TestNoClaimGetsAClusterBeforeItsSteps(t *testing.T) {
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
		h.number()
	}
	t.Logf("seed %d: %d bindings, %d of older ones, %d kills, %d attempts that failed, %d finished, %d replaced, %d converted", seed, h.bound, h.served, h.killed, h.failed, h.finished, h.replaced, h.converted)
	if *historySteps >= 30_000 && (min(h.bound, h.killed, h.failed, h.finished, h.replaced) < 40 || min(h.served, h.converted) < 1) {
		t.Errorf("seed %d: the history shows too little", seed)
	}
	if err := h.settle(); err != nil {
		t.Errorf("seed %d: %s", seed, err)
	}
}

// The first bootstrap of a pool that has spares: while its steps fail, the pool loses one of these spares, and after they
// were corrected, all have them.
func TestAFirstBootstrapThatFailsCostsOneSpare(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()
		if *historySeed != 0 {
			seed = *historySeed
		}
		h := newHistory(seed)
		h.pool.Spec.RunningCount = 4
		run := func(steps int) {
			for i := range steps {
				h.now = h.now.Add(time.Duration(h.IntN(1000)) * time.Millisecond)
				var err error
				switch n := h.IntN(200); {
				case n < 60:
					h.runPower()
				case n < 150:
					err = h.takeStep()
				case n < 156:
					h.observe()
				default:
					err = h.runPool()
				}
				if err != nil {
					t.Fatalf("step %d of seed %d: %s", i, seed, err)
				}
				h.number()
			}
		}
		run(1000)
		h.broken = true
		h.writeConfig()
		h.writeBootstrap()
		run(5000)
		untouched := 0
		for _, c := range h.clusters {
			if c.cd.Status.Bootstrap == nil && h.predatesSteps(c) {
				untouched++
			}
		}
		if h.lost > 1 || untouched < int(h.pool.Spec.Size)-1 {
			t.Errorf("seed %d: %d older spares are lost, and %d of %d are as they were", seed, h.lost, untouched, h.pool.Spec.Size)
		}
		h.broken = false
		if err := h.settle(); err != nil {
			t.Errorf("seed %d: %s", seed, err)
		}
	}
}
