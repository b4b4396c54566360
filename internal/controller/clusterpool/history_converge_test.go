package clusterpool_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

const (
	// rounds is when a history counts as one that never settles; 15 are the most that one took.
	rounds = 50
	// hardRounds is the same with maxConcurrent 1: each cluster is deleted and replaced separately.
	hardRounds = 200
	// quiet is the number of rounds without a write after which the history counts as settled.
	quiet = 3
)

// converge lets everything succeed from here on: first within the limits of the pools, when they
// must come to rest, then without limits, when every pool must match its spec.
func (h *history) converge() {
	for _, r := range h.replicas {
		if r != h.replicas[h.leader] {
			h.scheduler.KillProcess(r.process)
		}
	}
	h.overlap = false
	h.leaveAlone()
	h.log.Addf("from here on all goes well, within the limits")
	h.correct()
	h.heal()
	h.clear()
	h.rest()
	h.atRest()
	h.checkNamed()
	h.log.Addf("and without limits")
	for _, name := range imageSets {
		h.make(&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	h.setTemplate(true)
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		h.unlimit(o.(*hivev1.ClusterPool).DeepCopy())
	}
	h.pass(time.Minute)
	h.rest()
	h.atRest()
	h.asAsked()
}

// unlimit takes away the limits of a pool. In a hard history it goes on with maxConcurrent 1.
func (h *history) unlimit(p *hivev1.ClusterPool) {
	h.edit("user", p, "no limits", func() {
		p.Spec.MaxSize, p.Spec.MaxConcurrent = nil, nil
		if p.Spec.ImageSetRef.Name == noImageSet {
			p.Spec.ImageSetRef.Name = imageSets[0]
		}
		if h.mood.hard {
			p.Spec.MaxConcurrent = new(int32(1))
		}
	})
}

// correct makes installs possible again: either those that cannot begin can, or the pools
// are told to install something else.
func (h *history) correct() {
	if !h.mood.hard || h.rand.IntN(2) == 0 {
		clear(h.impossible)
		return
	}
	const good = "v3"
	h.make(&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: good}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "x:" + good}})
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		p := o.(*hivev1.ClusterPool).DeepCopy()
		h.edit("user", p, "install "+good, func() { p.Spec.ImageSetRef.Name = good })
	}
}

// heal takes away what users hold on to.
func (h *history) heal() {
	for _, like := range cached {
		for _, shared := range h.store.ListSharedObjects(like) {
			o := shared.DeepCopyObject().(client.Object)
			h.edit("user", o, "let go", func() {
				controllerutil.RemoveFinalizer(o, foreign)
				if cd, is := o.(*hivev1.ClusterDeployment); is {
					for _, annotation := range pauses {
						delete(cd.Annotations, annotation)
					}
				}
			})
		}
	}
}

// clear deletes clusters that were made too late, for a pool that was gone.
func (h *history) clear() {
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		if h.judge.late[o.GetName()] && poolKeyOf(h.store.GetSharedObject, o.(*hivev1.ClusterDeployment)) == nil {
			h.delete(o)
		}
	}
}

// rest runs the leader and the world in turn until neither writes any more.
func (h *history) rest() {
	r, still, most := h.replicas[h.leader], 0, rounds
	if h.mood.hard {
		most = hardRounds
	}
	for range most {
		before := h.store.CountWrites()
		r.view.ShowAllWrites()
		for _, c := range r.controllers {
			for _, key := range h.keys(r, c) {
				h.pass1(r, c, key)
				h.drain()
			}
		}
		h.world()
		h.pass(time.Minute)
		if still++; h.store.CountWrites() != before || h.claimsMissing() {
			still = 0
		}
		if still == quiet || h.judge.broken != nil {
			return
		}
	}
	h.judge.broke("it does not come to rest")
}

// claimsMissing reports whether a pool waits before it deletes a cluster whose claim is missing.
func (h *history) claimsMissing() bool {
	return slices.ContainsFunc(h.store.ListSharedObjects(&hivev1.ClusterPool{}), func(o client.Object) bool {
		return condition.IsTrue(o.(*hivev1.ClusterPool).Status.Conditions, hivev1.PoolClaimsMissing)
	})
}

// drain lets all calls go on, one after the other, until no task is left.
func (h *history) drain() {
	for h.settle(); len(h.calls) > 0; h.settle() {
		h.steps++
		h.log.Add(h.calls[0])
		h.scheduler.ReleaseCall(h.calls[0])
	}
}

func (h *history) world() {
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		h.move(o.DeepCopyObject().(*hivev1.ClusterDeployment), false, false)
	}
	for _, o := range h.store.ListSharedObjects(&corev1.Namespace{}) {
		h.sweep(o)
	}
}

// atRest checks what is true of a system at rest, whatever its limits.
func (h *history) atRest() {
	clusters := map[string]*hivev1.ClusterDeployment{}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		cd := o.(*hivev1.ClusterDeployment)
		clusters[cd.Name] = cd
		if poolKeyOf(h.store.GetSharedObject, cd) == nil {
			h.judge.broke("in the end cluster %s has no pool", cd.Name)
		}
		h.restOfCluster(cd)
	}
	for _, o := range h.store.ListSharedObjects(&corev1.Namespace{}) {
		if o.GetLabels()[hivev1.LabelPoolName] != "" && clusters[o.GetName()] == nil && !h.reserved(o.GetName()) {
			h.judge.broke("in the end namespace %s is left and has no cluster", o.GetName())
		}
	}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterClaim{}) {
		h.restOfClaim(o.(*hivev1.ClusterClaim), clusters)
	}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		h.restOfPool(o.(*hivev1.ClusterPool))
		h.restOfBooks(o.(*hivev1.ClusterPool))
	}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeploymentCustomization{}) {
		h.restOfLease(o.(*hivev1.ClusterDeploymentCustomization))
	}
}

func (h *history) restOfCluster(cd *hivev1.ClusterDeployment) {
	ref := cd.Spec.ClusterPoolRef
	h.restOfAccess(cd, h.judge.claimNamed(ref.Namespace, ref.ClaimName))
	p := poolKeyOf(h.store.GetSharedObject, cd)
	if ref.ClaimName == "" || frozen(p) {
		return
	}
	claim := h.judge.claimNamed(ref.Namespace, ref.ClaimName)
	if claim == nil || claim.Spec.Namespace != cd.Name || claim.DeletionTimestamp != nil {
		h.judge.broke("in the end cluster %s is given to claim %s, which does not have it", cd.Name, ref.ClaimName)
	}
}

// frozen reports whether a pool destroys nothing.
func frozen(p *hivev1.ClusterPool) bool {
	return p != nil && p.DeletionTimestamp == nil && p.Spec.MaxConcurrent != nil && *p.Spec.MaxConcurrent == 0
}

// restOfAccess: who claims a cluster for somebody gives access to it, and no claim none.
func (h *history) restOfAccess(cd *hivev1.ClusterDeployment, claim *hivev1.ClusterClaim) {
	space := h.store.GetSharedObject(&corev1.Namespace{}, types.NamespacedName{Name: cd.Namespace})
	if space == nil || space.GetDeletionTimestamp() != nil || cd.DeletionTimestamp != nil {
		return
	}
	want := claim != nil && claim.DeletionTimestamp == nil && claim.Spec.Namespace == cd.Name && len(claim.Spec.Subjects) > 0
	got := h.store.GetSharedObject(&rbacv1.RoleBinding{}, types.NamespacedName{Namespace: cd.Namespace, Name: hivev1.ClaimOwnerRole}) != nil
	if got != want {
		h.judge.broke("in the end somebody has access to cluster %s of claim %q: %t, want %t", cd.Name, cd.Spec.ClusterPoolRef.ClaimName, got, want)
	}
}

// reserved reports whether a pool still means to make that cluster: it cannot, for now.
func (h *history) reserved(name string) bool {
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		if slices.Contains(o.(*hivev1.ClusterPool).Status.Pending, name) {
			return true
		}
	}
	return false
}

// restOfClaim: a claim's conditions say what is.
func (h *history) restOfClaim(c *hivev1.ClusterClaim, clusters map[string]*hivev1.ClusterDeployment) {
	p, _ := h.store.GetSharedObject(&hivev1.ClusterPool{}, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}).(*hivev1.ClusterPool)
	cd := clusters[c.Spec.Namespace]
	var want string
	switch {
	case c.DeletionTimestamp != nil && frozen(p):
		return // it waits for its cluster, which may not be destroyed now
	case c.DeletionTimestamp != nil:
		want = "to be gone"
	case c.Spec.Namespace == "" && p == nil:
		want = hivev1.ReasonPoolNotFound
	case c.Spec.Namespace == "" && p.DeletionTimestamp != nil:
		want = hivev1.ReasonPoolDeleting
	case c.Spec.Namespace == "":
		want = hivev1.ReasonNoClusters
	case cd == nil:
		want = hivev1.ReasonClusterDeleted + " " + hivev1.ReasonClusterClaimed
	case cd.DeletionTimestamp != nil:
		want = hivev1.ReasonClusterDeleting + " " + hivev1.ReasonClusterClaimed
	case cd.Spec.PowerState == hivev1.PowerHibernating:
		want = hivev1.ReasonHibernating + " " + hivev1.ReasonClusterClaimed
	default:
		want = hivev1.ReasonRunning + " " + hivev1.ReasonClusterClaimed
	}
	var says []string
	for _, cond := range c.Status.Conditions {
		if cond.Type != hivev1.ConditionReconciling && cond.Type != hivev1.ConditionStalled {
			says = append(says, cond.Reason)
		}
	}
	if got := strings.Join(says, " "); got != want {
		h.judge.broke("in the end claim %s with cluster %q says %q, want %q", c.Name, c.Spec.Namespace, got, want)
	}
}

// restOfPool: a pool's status counts what there is.
func (h *history) restOfPool(p *hivev1.ClusterPool) {
	count := h.count(p)
	unclaimed := count[pool.Installing] + count[pool.Standby] + count[pool.Assignable] + count[pool.Broken]
	got := fmt.Sprint(p.Status.Size, p.Status.Standby, p.Status.Ready)
	if want := fmt.Sprint(unclaimed, count[pool.Standby], count[pool.Assignable]); got != want {
		h.judge.broke("in the end pool %s says size, standby, ready %s, want %s", p.Name, got, want)
	}
	if p.Status.ObservedGeneration != p.Generation {
		h.judge.broke("in the end the status of pool %s is about generation %d of %d", p.Name, p.Status.ObservedGeneration, p.Generation)
	}
}

func (h *history) count(p *hivev1.ClusterPool) map[pool.Phase]int {
	count := map[pool.Phase]int{}
	set, err := facts.ReadSettings(p, nil)
	if err != nil {
		h.judge.broke("reading pool %s: %v", p.Name, err)
	}
	for _, cd := range h.judge.members(p) {
		m := facts.ReadMember(cd, h.clock.Now())
		m.Displaced = h.displaced(cd)
		if h.judge.withdrawn(p, cd) {
			m.Withdrawn = "x"
		}
		count[m.Phase(&set, h.clock.Now())]++
	}
	return count
}

// asAsked: without limits, every pool has what it is asked for, and serves every claim.
func (h *history) asAsked() {
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		p := o.(*hivev1.ClusterPool)
		count := h.count(p)
		if p.DeletionTimestamp != nil {
			if n := len(h.judge.members(p)); n == 0 || n != count[pool.Claimed] {
				h.judge.broke("in the end pool %s is being deleted with clusters %v", p.Name, count)
			}
			continue
		}
		size := int(p.Spec.Size)
		exhausted := len(p.Spec.Inventory) > 0 && len(free(p)) == 0
		if exhausted {
			size = min(size, count[pool.Assignable]+count[pool.Standby])
		}
		runs := min(int(p.Spec.RunningCount), size)
		want := map[pool.Phase]int{pool.Assignable: runs, pool.Standby: size - runs, pool.Claimed: count[pool.Claimed]}
		for _, phase := range []pool.Phase{pool.Deleting, pool.Removed, pool.Broken, pool.Installing, pool.Standby, pool.Assignable} {
			if count[phase] != want[phase] {
				h.judge.broke("in the end pool %s has clusters %v, want %v", p.Name, count, want)
			}
		}
		if len(p.Status.Pending) > 0 || !exhausted && p.Status.Plan != plan(p) {
			h.judge.broke("in the end pool %s is still about something: %q, pending %v", p.Name, p.Status.Plan, p.Status.Pending)
		}
		if c := condition.Find(p.Status.Conditions, hivev1.PoolAllClustersCurrent); c == nil || c.Status != corev1.ConditionTrue {
			h.judge.broke("in the end pool %s says %+v", p.Name, c)
		}
	}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterClaim{}) {
		c := o.(*hivev1.ClusterClaim)
		p, _ := h.store.GetSharedObject(&hivev1.ClusterPool{}, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}).(*hivev1.ClusterPool)
		if c.Spec.Namespace == "" && p != nil && p.DeletionTimestamp == nil && (len(p.Spec.Inventory) == 0 || len(free(p)) > 0) {
			h.judge.broke("in the end claim %s waits", c.Name)
		}
	}
}

// plan is what a pool at rest says.
func plan(p *hivev1.ClusterPool) string {
	text := "settled"
	if p.Spec.RunningCount > p.Spec.Size {
		text += fmt.Sprintf("; runningCount %d is above size: at most %d will run", p.Spec.RunningCount, p.Spec.Size)
	}
	return text
}
