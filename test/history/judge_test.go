package history

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/gate"
)

// judge checks every write, and reports the first that must not be. It decides by what the controllers have read, and by
// what really is, and without the code of the deciders.
type judge struct {
	h *history
	// broken is the first thing that must not be.
	broken error
	// converging is set once no more events happen.
	converging bool

	// mu protects what follows: tasks read concurrently, between two calls that are released.
	mu    sync.Mutex
	reads map[*chaos.Task]*reads
	// runs counts how often a cluster has begun to run, and verdicts has what is recorded about its gates.
	runs     map[string]int
	verdicts map[string]verdict
	// holders are the claims that clusters were written into, begun the sets of which a claim had a cluster.
	holders map[string]types.UID
	// assigned has the claims that clusters were assigned to, by name; a UID is empty if the claim was gone already.
	assigned map[string]types.UID
	begun    map[types.UID]bool
	// served has the names of the claims of sets that had a cluster, released counts the claims of sets that users, or ends of
	// lifetimes, have ended before, and moves the claims that sets have deleted to create them on another pool.
	served          map[types.UID]map[string]bool
	released, moves map[types.UID]int
	line            line
}

// reads is what a pass has read, and checked.
type reads struct {
	pool      *hivev1.ClusterPool
	policy    *v1alpha1.PoolPolicy
	bootstrap *v1alpha1.ClusterBootstrap
	policies  []*v1alpha1.ClaimPolicy
	pools     []hivev1.ClusterPool
	sets      []*v1alpha1.ClaimSet
	// assigned has the sets of which a claim has a cluster, and claims counts the claims of each set that are not being deleted.
	assigned map[types.UID]bool
	claims   map[types.UID]int
	// listed are the claims, and admitted those that the pass has admitted since. Only passes of policies have them.
	listed   []*hivev1.ClusterClaim
	admitted map[types.UID]bool
	// bound are the claims that have clusters and are not being deleted.
	bound []hivev1.ClusterClaim
	check *check
	// planned is set once the assignments of the pass were checked.
	planned bool
}

// check is one look at the gates of a cluster, in one of its runs.
type check struct {
	run    int
	passed map[string]bool
}

// verdict is the last verdict about a cluster that was recorded: for a run, and for gates.
type verdict struct {
	run    int
	gates  string
	passed bool
	once   map[string]bool
}

func newJudge(h *history) *judge {
	return &judge{
		h: h, reads: map[*chaos.Task]*reads{}, runs: map[string]int{}, verdicts: map[string]verdict{}, holders: map[string]types.UID{}, assigned: map[string]types.UID{}, begun: map[types.UID]bool{},
		served: map[types.UID]map[string]bool{}, released: map[types.UID]int{}, moves: map[types.UID]int{},
	}
}

func (j *judge) report(format string, args ...any) {
	if j.broken == nil {
		j.broken = fmt.Errorf(format, args...)
	}
}

func list[T client.Object](j *judge) []T {
	var like T
	for _, k := range kinds {
		if o, is := k.(T); is {
			like = o
		}
	}
	return typed[T](j.h.store.ListSharedObjects(like))
}

func (j *judge) poolNamed(name string) *hivev1.ClusterPool {
	p, _ := j.h.store.GetSharedObject(&hivev1.ClusterPool{}, types.NamespacedName{Namespace: home, Name: name}).(*hivev1.ClusterPool)
	return p
}

func (j *judge) clusterNamed(name string) *hivev1.ClusterDeployment {
	cd, _ := j.h.store.GetSharedObject(&hivev1.ClusterDeployment{}, types.NamespacedName{Namespace: name, Name: name}).(*hivev1.ClusterDeployment)
	return cd
}

func (j *judge) claimNamed(name string) *hivev1.ClusterClaim {
	c, _ := j.h.store.GetSharedObject(&hivev1.ClusterClaim{}, types.NamespacedName{Namespace: home, Name: name}).(*hivev1.ClusterClaim)
	return c
}

func (j *judge) readsOf(task *chaos.Task) *reads {
	r := j.reads[task]
	if r == nil {
		r = &reads{}
		j.reads[task] = r
	}
	return r
}

// recordGet records what a task has read.
func (j *judge) recordGet(task *chaos.Task, o client.Object, found bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.readsOf(task)
	switch o := o.(type) {
	case *v1alpha1.PoolPolicy:
		r.policy, r.bootstrap = nil, nil
		if found {
			r.policy = o.DeepCopy()
		}
	case *v1alpha1.ClusterBootstrap:
		if found {
			r.bootstrap = o.DeepCopy()
		}
	case *hivev1.ClusterPool:
		if found && r.pool == nil {
			r.pool = o.DeepCopy()
		}
	}
}

// recordList records what a task has listed. Deciders that admit or create read from the API server last.
func (j *judge) recordList(task *chaos.Task, o client.ObjectList) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.readsOf(task)
	switch o := o.(type) {
	case *v1alpha1.ClaimPolicyList:
		r.policies = policiesOf(o.Items)
	case *hivev1.ClusterPoolList:
		r.pools = slices.Clone(o.Items)
	case *v1alpha1.ClaimSetList:
		r.sets = nil
		for i := range o.Items {
			r.sets = append(r.sets, o.Items[i].DeepCopy())
		}
	case *hivev1.ClusterClaimList:
		r.assigned, r.claims, r.bound, r.listed, r.admitted = map[types.UID]bool{}, map[types.UID]int{}, nil, nil, map[types.UID]bool{}
		for i := range o.Items {
			c := &o.Items[i]
			if strings.HasPrefix(task.Name, "policy ") {
				r.listed = append(r.listed, c.DeepCopy())
			}
			if c.DeletionTimestamp != nil {
				continue
			}
			r.claims[ownerOf(c)]++
			if c.Spec.Namespace != "" {
				r.assigned[ownerOf(c)] = true
				r.bound = append(r.bound, *c)
			}
		}
	}
}

// recordCheck records the answers of gates.
func (j *judge) recordCheck(task *chaos.Task, cluster string, answers map[string]gate.Answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := &check{run: j.runs[cluster], passed: map[string]bool{}}
	for name, a := range answers {
		c.passed[name] = a.Passed
	}
	j.readsOf(task).check = c
}

// checkWrite checks a write.
func (j *judge) checkWrite(ctx context.Context, w chaos.Write) {
	j.mu.Lock()
	defer j.mu.Unlock()
	by := chaos.TaskFromContext(ctx)
	switch after := w.After.(type) {
	case *hivev1.ClusterDeployment:
		before, _ := w.Before.(*hivev1.ClusterDeployment)
		j.checkCluster(before, after, w.Gone, by)
	case *hivev1.ClusterClaim:
		before, _ := w.Before.(*hivev1.ClusterClaim)
		j.checkClaim(before, after, w.Gone, by)
	case *v1alpha1.ClaimSet:
		before, _ := w.Before.(*v1alpha1.ClaimSet)
		if n := len(j.served[after.UID]); before != nil && before.Status.ServedTime == nil && after.Status.ServedTime != nil && n+j.released[after.UID] < int(after.Spec.Size) {
			j.report("set %s of %d is served, and %d of its claims had a cluster", after.Name, after.Spec.Size, n)
		}
	case *hivev1.ClusterPool:
		if before, _ := w.Before.(*hivev1.ClusterPool); before != nil && !w.Gone && by != nil {
			j.checkPool(before, after, by)
		}
	}
}

// checkEnd is called when a pass has ended.
func (j *judge) checkEnd(task *chaos.Task) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if strings.HasPrefix(task.Name, "policy ") && task.Err == nil && j.h.mood.lag == 0 {
		j.checkLine()
	}
	delete(j.reads, task)
}

func (j *judge) checkCluster(before, after *hivev1.ClusterDeployment, gone bool, by *chaos.Task) {
	if before == nil || gone {
		return
	}
	name := after.Name
	if before.Status.PowerState != hivev1.StatusRunning && after.Status.PowerState == hivev1.StatusRunning {
		j.runs[name]++
	}
	if by == nil {
		return
	}
	if strings.HasPrefix(by.Name, "gate ") {
		j.checkVerdict(after, by)
	}
	was, is := before.Spec.ClusterPoolRef.ClaimName, after.Spec.ClusterPoolRef.ClaimName
	switch {
	case was != is && was != "":
		j.report("%s gives cluster %s of claim %s to %q", by.Name, name, was, is)
	case was != is:
		j.checkAssignment(before, is, by)
	}
	if before.DeletionTimestamp == nil && after.DeletionTimestamp != nil {
		j.checkDeletion(before, by)
	}
}

// checkAssignment checks that a claim gets a cluster that runs, and whose gates have passed in this run.
func (j *judge) checkAssignment(cd *hivev1.ClusterDeployment, claim string, by *chaos.Task) {
	j.h.counts["clusters assigned"]++
	j.assigned[claim] = ""
	if c := j.claimNamed(claim); c != nil {
		j.assigned[claim] = c.UID
	}
	if !cd.Spec.Installed || cd.Status.PowerState != hivev1.StatusRunning || cd.Spec.PowerState == hivev1.PowerHibernating || cd.DeletionTimestamp != nil {
		j.report("%s gives claim %s cluster %s, which does not run", by.Name, claim, cd.Name)
	}
	r, v := j.readsOf(by), j.verdicts[cd.Name]
	if !r.requiresGates() {
		return
	}
	switch {
	case r.bootstrap == nil:
		j.report("%s gives claim %s cluster %s, and its gates are not known", by.Name, claim, cd.Name)
	case v.run != j.runs[cd.Name]:
		j.report("%s gives claim %s cluster %s, whose gates were not checked in this run", by.Name, claim, cd.Name)
	case v.gates != listGates(r.bootstrap):
		j.report("%s gives claim %s cluster %s, of which other gates were checked", by.Name, claim, cd.Name)
	case !v.passed:
		j.report("%s gives claim %s cluster %s, of which a gate fails", by.Name, claim, cd.Name)
	}
	j.h.counts["clusters assigned with gates"]++
}

// awaitsGates reports whether a cluster runs without a claim, and its gates have not passed in this run.
func (j *judge) awaitsGates(cluster string) bool {
	cd := j.clusterNamed(cluster)
	return cd != nil && cd.Spec.ClusterPoolRef.ClaimName == "" && cd.Status.PowerState == hivev1.StatusRunning && (cd.Status.Gates == nil || !cd.Status.Gates.Passed)
}

// requiresGates reports whether the pool requires gates, as the pass has read it.
func (r *reads) requiresGates() bool {
	return r.policy != nil && r.policy.DeletionTimestamp == nil && r.policy.Spec.BootstrapRef != nil && (r.bootstrap == nil || len(r.bootstrap.Spec.Gates) > 0)
}

func listGates(b *v1alpha1.ClusterBootstrap) string {
	var out []string
	for _, g := range b.Spec.Gates {
		out = append(out, g.Name)
	}
	return strings.Join(out, " ")
}

// checkVerdict checks that a recorded verdict is what the gates have answered in this run of the cluster.
func (j *judge) checkVerdict(after *hivev1.ClusterDeployment, by *chaos.Task) {
	name, r, known, record := after.Name, j.readsOf(by), j.verdicts[after.Name], after.Status.Gates
	passed := record != nil && record.Passed
	if !r.requiresGates() || r.bootstrap == nil {
		if passed {
			j.report("%s records that gates of %s pass, and none are known", by.Name, name)
		}
		j.verdicts[name] = verdict{}
		return
	}
	v := verdict{run: j.runs[name], gates: listGates(r.bootstrap), passed: passed, once: map[string]bool{}}
	if known.run == v.run && known.gates == v.gates {
		maps.Copy(v.once, known.once)
	}
	checked := r.check != nil && r.check.run == v.run && after.Status.PowerState == hivev1.StatusRunning
	if green := checked && r.arePassed(v.once); passed != green {
		j.report("%s records that the gates of %s pass: %t, and they do: %t", by.Name, name, passed, green)
	}
	if !passed {
		v.once = keepOnce(v.once, record)
	}
	if checked && !passed {
		j.checkMessage(after, by)
	}
	j.h.counts["verdicts "+map[bool]string{true: "green", false: "red"}[passed]]++
	j.verdicts[name] = v
}

// arePassed reports whether every gate has passed: in the check of this pass or, if it is checked once in a run, before. It
// adds those of the latter kind to once.
func (r *reads) arePassed(once map[string]bool) bool {
	all := true
	for _, g := range r.bootstrap.Spec.Gates {
		if r.check.passed[g.Name] && g.Type == v1alpha1.GatePodRuns {
			once[g.Name] = true
		}
		all = all && (r.check.passed[g.Name] || once[g.Name])
	}
	return all
}

// checkMessage checks that a cluster of which a gate fails says which.
func (j *judge) checkMessage(cd *hivev1.ClusterDeployment, by *chaos.Task) {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterGatesPassed)
	if c == nil || c.Status != corev1.ConditionFalse || !namesRedGate(c.Message, j.readsOf(by)) {
		j.report("%s does not say which gate of %s fails: %+v", by.Name, cd.Name, c)
	}
}

// namesRedGate reports whether a message names a gate that has not passed.
func namesRedGate(message string, r *reads) bool {
	return slices.ContainsFunc(r.bootstrap.Spec.Gates, func(g v1alpha1.Gate) bool { return !r.check.passed[g.Name] && strings.Contains(message, g.Name) })
}

// keepOnce returns the gates that need no other check in this run: those that the record has.
func keepOnce(once map[string]bool, record *hivev1.GateRecord) map[string]bool {
	out := map[string]bool{}
	if record == nil {
		return out
	}
	for _, name := range record.PassedOnce {
		if once[name] {
			out[name] = true
		}
	}
	return out
}

// checkDeletion checks that no claim loses its cluster.
func (j *judge) checkDeletion(cd *hivev1.ClusterDeployment, by *chaos.Task) {
	c := j.claimNamed(cd.Spec.ClusterPoolRef.ClaimName)
	if c != nil && c.DeletionTimestamp == nil && c.Spec.Namespace == cd.Name {
		j.report("%s deletes cluster %s of claim %s", by.Name, cd.Name, c.Name)
	}
}

func (j *judge) checkClaim(before, after *hivev1.ClusterClaim, gone bool, by *chaos.Task) {
	if before == nil {
		if by != nil {
			j.checkNewClaim(after, by)
		}
		return
	}
	if was, is := before.Spec.Namespace, after.Spec.Namespace; was != is {
		j.checkCompletion(before, after, by)
	}
	ends := before.DeletionTimestamp == nil && (gone || after.DeletionTimestamp != nil)
	if ends && before.Spec.Namespace == "" && (by == nil || strings.HasPrefix(by.Name, "claim ")) {
		j.released[ownerOf(before)]++
	}
	if by == nil {
		return
	}
	if before.Spec.Namespace == "" && !isAdmittedByPolicy(before) && isAdmittedByPolicy(after) {
		j.checkAdmission(after, by)
	}
	if admitted := condition.Find(after.Status.Conditions, hivev1.ClaimAdmitted); admitted != nil && !equality.Semantic.DeepEqual(condition.Find(before.Status.Conditions, hivev1.ClaimAdmitted), admitted) {
		j.h.counts["Admitted "+admitted.Reason]++
	}
	if ends {
		j.checkRelease(before, by)
	}
}

func isAdmittedByPolicy(c *hivev1.ClusterClaim) bool {
	return condition.IsTrue(c.Status.Conditions, hivev1.ClaimAdmitted)
}

// checkCompletion checks that a cluster is written into the one claim that has it.
func (j *judge) checkCompletion(before, after *hivev1.ClusterClaim, by *chaos.Task) {
	name, is := after.Name, after.Spec.Namespace
	cd := j.clusterNamed(is)
	switch {
	case before.Spec.Namespace != "":
		j.report("%s gives claim %s another cluster", by.Name, name)
	case before.DeletionTimestamp != nil:
		j.report("%s gives claim %s a cluster, and it is being deleted", by.Name, name)
	case cd != nil && cd.DeletionTimestamp != nil:
		j.report("%s gives claim %s cluster %s, which is being deleted", by.Name, name, is)
	case cd == nil || cd.Spec.ClusterPoolRef.ClaimName != name || cd.Spec.ClusterPoolRef.PoolName != after.Spec.ClusterPoolName:
		j.report("%s writes cluster %s into claim %s, which does not have it", by.Name, is, name)
	case j.holders[is] != "" && j.holders[is] != after.UID:
		j.report("%s gives claim %s cluster %s, which another claim had", by.Name, name, is)
	}
	j.holders[is] = after.UID
	j.h.counts["claims served"]++
	set := findSet(list[*v1alpha1.ClaimSet](j), after)
	if set == nil {
		return
	}
	if !j.begun[set.UID] {
		j.h.counts["sets served"]++
		j.h.counts["most clusters of a set"] = max(j.h.counts["most clusters of a set"], int(set.Spec.Size))
	}
	j.begun[set.UID] = true
	if j.served[set.UID] == nil {
		j.served[set.UID] = map[string]bool{}
	}
	j.served[set.UID][name] = true
	for _, c := range list[*hivev1.ClusterClaim](j) {
		if ownerOf(c) == set.UID && c.Spec.Namespace != "" && c.Spec.ClusterPoolName != after.Spec.ClusterPoolName {
			j.report("set %s has clusters of pools %s and %s", set.Name, c.Spec.ClusterPoolName, after.Spec.ClusterPoolName)
		}
	}
}

// checkNewClaim checks a claim that hotspare creates for a set.
func (j *judge) checkNewClaim(c *hivev1.ClusterClaim, by *chaos.Task) {
	set := findSet(list[*v1alpha1.ClaimSet](j), c)
	if set == nil {
		j.report("%s creates claim %s, and its set does not exist", by.Name, c.Name)
		return
	}
	n := 0
	for _, o := range list[*hivev1.ClusterClaim](j) {
		if ownerOf(o) != set.UID {
			continue
		}
		n++
		if o.Spec.ClusterPoolName != c.Spec.ClusterPoolName {
			j.report("%s creates claim %s on pool %s, and claim %s is on pool %s", by.Name, c.Name, c.Spec.ClusterPoolName, o.Name, o.Spec.ClusterPoolName)
		}
	}
	switch {
	case n > int(set.Spec.Size):
		j.report("%s creates claim %s, and the set of %d then has %d", by.Name, c.Name, set.Spec.Size, n)
	case !slices.Contains(set.Finalizers, v1alpha1.FinalizerClaimSet):
		j.report("%s creates claim %s, and its set has no finalizer", by.Name, c.Name)
	case j.readsOf(by).assigned[set.UID]:
		j.report("%s creates claim %s of a set that was served", by.Name, c.Name)
	}
	if index, err := strconv.Atoi(strings.TrimPrefix(c.Name, set.Name+"-")); err != nil || index >= int(set.Spec.Size) {
		j.report("%s creates claim %s of a set of %d", by.Name, c.Name, set.Spec.Size)
	}
	if n == 1 {
		j.checkFallback(set, c.Spec.ClusterPoolName, by)
	}
}

// checkFallback checks that the pool of a set counts already: the time of the preferences before it has passed.
func (j *judge) checkFallback(set *v1alpha1.ClaimSet, pool string, by *chaos.Task) {
	if set.Spec.PoolSelector == nil {
		return
	}
	isUsable := j.readsOf(by).usablePools(set)
	if !isUsable(pool) && slices.ContainsFunc(poolsOf(set), isUsable) {
		j.report("%s creates claims of set %s on pool %s, which can never serve it, and another can", by.Name, set.Name, pool)
	}
	// A set goes on with the pool that it has begun with, or moves to, also if a preferred one was created meanwhile.
	if due := fallbackTime(set, pool, isUsable); j.h.clock.Now().Before(due) && set.Status.ClusterPoolName != pool {
		j.report("%s creates claims of set %s on pool %s, %s too early", by.Name, set.Name, pool, due.Sub(j.h.clock.Now()))
	}
}

// fallbackTime returns when a pool begins to count for a set: after the times of the preferences before it that can serve the set.
func fallbackTime(set *v1alpha1.ClaimSet, pool string, isUsable func(string) bool) time.Time {
	due := set.CreationTimestamp.Time
	if set.Spec.PoolSelector == nil {
		return due
	}
	for _, p := range set.Spec.PoolSelector.Preferences {
		name := p.MatchLabels["name"]
		if name == pool {
			break
		}
		if isUsable(name) && p.FallbackAfter != nil {
			span, _ := p.FallbackAfter.Parse() // our own
			due = due.Add(span)
		}
	}
	return due
}

// isFitting reports whether the pass has read a pool that can serve a set now or later.
func (r *reads) isFitting(pool string, size int) bool {
	i := slices.IndexFunc(r.pools, func(p hivev1.ClusterPool) bool { return p.Name == pool })
	return i >= 0 && r.pools[i].DeletionTimestamp == nil && (r.pools[i].Spec.MaxSize == nil || int(*r.pools[i].Spec.MaxSize) >= size)
}

// usablePools returns a function that reports whether a pool, as the pass has read it, can ever serve a set: it is large
// enough, and ClaimPolicies can admit the set there, unless they can nowhere.
func (r *reads) usablePools(set *v1alpha1.ClaimSet) func(pool string) bool {
	who, size := creatorOf(set.Annotations), int(set.Spec.Size)
	isPermitted := func(pool string) bool { return r.isFitting(pool, size) && r.permits(who, pool, size) }
	anyPermitted := slices.ContainsFunc(poolsOf(set), isPermitted)
	return func(pool string) bool { return r.isFitting(pool, size) && (isPermitted(pool) || !anyPermitted) }
}

// permits reports whether the policies that a task has read can admit that many claims at once.
func (r *reads) permits(who creator, pool string, size int) bool {
	return who.user == "" || canAdmit(r.policies, who, pool, size)
}

// checkRelease checks that hotspare releases a claim only with its set, at the end of its time, or, without a cluster, in
// favor of a pool that can serve its set.
func (j *judge) checkRelease(c *hivev1.ClusterClaim, by *chaos.Task) {
	kind, _, _ := strings.Cut(by.Name, " ")
	if kind == "claim" {
		j.h.counts["claims that ended"]++
		cd := j.clusterNamed(c.Spec.Namespace)
		if c.Annotations[hivev1.AnnotationHeartbeatTimeout] == "" && (cd == nil || ago(cd.Spec.ClusterPoolRef.ClaimedTimestamp, j.h.clock.Now()) < time.Minute) {
			j.report("%s ends claim %s, which has just got its cluster, or has none", by.Name, c.Name)
		}
		return
	}
	set := findSet(list[*v1alpha1.ClaimSet](j), c)
	switch {
	case kind != "set":
		j.report("%s deletes claim %s", by.Name, c.Name)
	case set == nil || set.DeletionTimestamp != nil:
	case c.Spec.Namespace != "":
		j.report("%s deletes claim %s, which has a cluster", by.Name, c.Name)
	default:
		j.checkMove(set, c.Spec.ClusterPoolName, by)
	}
}

// mostMoves is how many claims a set may delete to move to other pools: a set that moves more often goes back and forth.
const mostMoves = 200

// checkMove checks that a set leaves a pool only if that can never serve it, or if another one can serve it sooner: it has
// enough clusters, or may create some while this one may not. A pool on which ClaimPolicies never admit it can never
// serve it, unless no other could either. A set of which a claim has a cluster stays.
func (j *judge) checkMove(set *v1alpha1.ClaimSet, from string, by *chaos.Task) {
	j.h.counts["claims that change their pool"]++
	if j.moves[set.UID]++; j.moves[set.UID] == mostMoves {
		j.report("set %s goes back and forth between pools", set.Name)
	}
	for _, c := range list[*hivev1.ClusterClaim](j) {
		if ownerOf(c) == set.UID && c.Spec.Namespace != "" && c.DeletionTimestamp == nil && j.released[set.UID] == 0 {
			j.report("%s moves set %s away from pool %s, and claim %s has cluster %s", by.Name, set.Name, from, c.Name, c.Spec.Namespace)
		}
	}
	r := j.readsOf(by)
	isUsable := r.usablePools(set)
	if !isUsable(from) {
		return
	}
	left := r.pools[slices.IndexFunc(r.pools, func(p hivev1.ClusterPool) bool { return p.Name == from })]
	for i := range r.pools {
		p := &r.pools[i]
		enough := p.Status.Ready+p.Status.Standby >= set.Spec.Size
		isDue := !j.h.clock.Now().Before(fallbackTime(set, p.Name, isUsable))
		if p.Name != from && isUsable(p.Name) && isDue && (enough || mayCreate(p) && !mayCreate(&left) || r.hasRoom(p, set) && !r.hasRoom(&left, set)) {
			return
		}
	}
	j.report("%s moves set %s away from pool %s, and no other that counts by now can serve it sooner", by.Name, set.Name, from)
}

// hasRoom reports whether a pool may create clusters for a set beside those that claims of others have.
func (r *reads) hasRoom(p *hivev1.ClusterPool, set *v1alpha1.ClaimSet) bool {
	if !mayCreate(p) {
		return false
	}
	most := math.MaxInt
	if p.Spec.MaxSize != nil {
		most = int(*p.Spec.MaxSize)
	}
	if n := len(p.Spec.Inventory); n > 0 {
		most = min(most, n)
	}
	for i := range r.bound {
		if c := &r.bound[i]; c.Spec.ClusterPoolName == p.Name && ownerOf(c) != set.UID {
			most--
		}
	}
	return most >= int(set.Spec.Size)
}

// mayCreate reports whether no person must act before a pool creates clusters.
func mayCreate(p *hivev1.ClusterPool) bool {
	return !condition.IsTrue(p.Status.Conditions, hivev1.PoolMissingDependencies) && (p.Spec.MaxConcurrent == nil || *p.Spec.MaxConcurrent > 0)
}

// checkPool checks that a pool does not grow beyond its limits.
func (j *judge) checkPool(before, after *hivev1.ClusterPool, by *chaos.Task) {
	more := slices.ContainsFunc(after.Status.Pending, func(name string) bool { return !slices.Contains(before.Status.Pending, name) })
	if !more {
		return
	}
	seen := map[string]*hivev1.ClusterDeployment{}
	for _, o := range by.Listed["ClusterDeployment"] {
		seen[o.GetName()] = o.(*hivev1.ClusterDeployment)
	}
	exist, busy := 0, 0
	for _, cd := range list[*hivev1.ClusterDeployment](j) {
		if cd.Spec.ClusterPoolRef.PoolName != after.Name {
			continue
		}
		exist++
		if old := seen[cd.Name]; old != nil {
			cd = old
		}
		gaveUp := condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped)
		if cd.DeletionTimestamp != nil || !cd.Spec.Installed && !gaveUp {
			busy++
		}
	}
	for _, name := range after.Status.Pending {
		if j.clusterNamed(name) == nil {
			exist++
			busy++
		}
	}
	if most := before.Spec.MaxSize; most != nil && exist > int(*most) {
		j.report("pool %s will have %d clusters, maxSize is %d", after.Name, exist, *most)
	}
	if most := before.Spec.MaxConcurrent; most != nil && busy > int(*most) {
		j.report("pool %s will have %d clusters that are installed or destroyed, maxConcurrent is %d", after.Name, busy, *most)
	}
}

// pendingOf returns the condition Pending of a claim; "" if it is not True.
func pendingOf(c *hivev1.ClusterClaim) (reason, message string) {
	if p := condition.Find(c.Status.Conditions, hivev1.ClaimPending); p != nil && p.Status == corev1.ConditionTrue {
		return p.Reason, p.Message
	}
	return "", ""
}
