package clusterpool_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
)

// judge looks at every write and says whether it may be.
type judge struct {
	store *chaos.Store
	clock clock.PassiveClock
	// broken is the first thing that may not be.
	broken error

	// alone is set when there is only one process.
	alone    bool
	recorded map[string]bool                       // names of clusters that some pool's status has had
	late     map[string]bool                       // clusters that were made after their name was dropped
	again    map[string]bool                       // clusters that were made again after a claim was told of them
	claimOf  map[string]string                     // the claim that a cluster was given to
	toldTo   map[string]types.UID                  // the claim that was told of a cluster
	limit    map[version]*int32                    // a pool's maxConcurrent
	own      map[written]*hivev1.ClusterDeployment // clusters as a process wrote them last
	ended    map[*chaos.Task]int                   // how many clusters a pass has deleted
	leases   leases
}

type written struct {
	by      *chaos.Process
	cluster string
}

// version is one of a pool's specs.
type version struct {
	uid        types.UID
	generation int64
}

func newJudge(s *chaos.Store, c clock.PassiveClock, alone bool) *judge {
	return &judge{
		store: s, clock: c, alone: alone,
		recorded: map[string]bool{}, late: map[string]bool{}, again: map[string]bool{}, claimOf: map[string]string{}, toldTo: map[string]types.UID{},
		limit: map[version]*int32{}, own: map[written]*hivev1.ClusterDeployment{}, ended: map[*chaos.Task]int{}, leases: newLeases(),
	}
}

func (j *judge) broke(format string, args ...any) {
	if j.broken == nil {
		j.broken = fmt.Errorf(format, args...)
	}
}

// change is a write by a task, nil if it was not a controller's.
type change[T client.Object] struct {
	before, after T
	created, gone bool
	by            *chaos.Task
}

func changeOf[T client.Object](w chaos.Write, by *chaos.Task) change[T] {
	c := change[T]{created: w.Before == nil, gone: w.Gone, by: by, after: w.After.(T)}
	if !c.created {
		c.before = w.Before.(T)
	}
	return c
}

// deleted reports whether the object is being deleted from now on, or gone at once.
func (c change[T]) deleted() bool {
	return !c.created && c.before.GetDeletionTimestamp() == nil && (c.gone || c.after.GetDeletionTimestamp() != nil)
}

func (j *judge) wrote(ctx context.Context, w chaos.Write) {
	by := chaos.TaskFromContext(ctx)
	switch w.After.(type) {
	case *hivev1.ClusterDeployment:
		j.cluster(changeOf[*hivev1.ClusterDeployment](w, by))
	case *hivev1.ClusterClaim:
		j.claim(changeOf[*hivev1.ClusterClaim](w, by))
	case *hivev1.ClusterPool:
		j.pool(changeOf[*hivev1.ClusterPool](w, by))
	case *corev1.Namespace:
		j.namespace(changeOf[*corev1.Namespace](w, by))
	case *hivev1.ClusterDeploymentCustomization:
		j.customization(changeOf[*hivev1.ClusterDeploymentCustomization](w, by))
	}
	if by == nil || w.Before == nil {
		return
	}
	for _, f := range w.Before.GetFinalizers() {
		ours := f == hivev1.FinalizerPool || f == hivev1.FinalizerClaim || f == hivev1.FinalizerLease
		if !ours && !slices.Contains(w.After.GetFinalizers(), f) {
			j.broke("%s took finalizer %s from %T %s", by.Name, f, w.After, w.After.GetName())
		}
	}
	if !slices.Equal(withoutFollowed(w.Before.GetLabels()), withoutFollowed(w.After.GetLabels())) ||
		!slices.Equal(withoutFollowed(w.Before.GetAnnotations()), withoutFollowed(w.After.GetAnnotations())) {
		j.broke("%s edited the labels or annotations of %T %s", by.Name, w.After, w.After.GetName())
	}
}

func (j *judge) cluster(c change[*hivev1.ClusterDeployment]) {
	name, claim := c.after.Name, c.after.Spec.ClusterPoolRef.ClaimName
	if c.by != nil {
		j.own[written{c.by.Process, name}] = c.after
	}
	if c.created {
		j.making(c)
		j.leased(c)
		return
	}
	if was := j.claimOf[name]; was != claim {
		if was != "" {
			j.broke("cluster %s was given to %s and then to %q", name, was, claim)
		}
		j.claimOf[name] = claim
		j.giving(c)
	}
	if c.by == nil {
		return
	}
	same := c.after.DeepCopy()
	same.Spec.PowerState = c.before.Spec.PowerState
	same.Spec.ClusterPoolRef.ClaimName, same.Spec.ClusterPoolRef.ClaimedTimestamp = c.before.Spec.ClusterPoolRef.ClaimName, c.before.Spec.ClusterPoolRef.ClaimedTimestamp
	// A cluster follows what its pool says of these; follow_test.go has how.
	same.Spec.HibernateAfter = c.before.Spec.HibernateAfter
	same.Spec.PowerstateTransitionToRunningTimeout = c.before.Spec.PowerstateTransitionToRunningTimeout
	same.Spec.PowerstateTransitionToHibernatingTimeout = c.before.Spec.PowerstateTransitionToHibernatingTimeout
	if !equality.Semantic.DeepEqual(same.Spec, c.before.Spec) || !equality.Semantic.DeepEqual(same.Status, c.before.Status) {
		j.broke("%s edited more of cluster %s than its claim, power and timeouts", c.by.Name, name)
	}
	if c.before.Spec.ClusterPoolRef.ClaimName != "" && c.after.Spec.PowerState != c.before.Spec.PowerState {
		j.broke("%s set the power of cluster %s, which is claimed", c.by.Name, name)
	}
	if c.deleted() {
		j.destroying(c)
	}
}

// making: a cluster is made under a name that its pool has on record. That it was
// made before, and deleted before anybody saw it, does not matter.
//
// One thing cannot be kept from happening while two processes think that they
// lead: one records a name and is about to make the cluster; the other makes it,
// sees it, drops the name, and destroys it, before the first goes on. The cluster
// made then is one too many, and the pool trims it; if the pool is gone by then,
// somebody has to delete it by hand.
func (j *judge) making(c change[*hivev1.ClusterDeployment]) {
	name, p := c.after.Name, poolKeyOf(j.store.GetSharedObject, c.after)
	j.again[name] = j.again[name] || j.toldTo[name] != ""
	j.claimOf[name], j.toldTo[name] = "", ""
	late := p == nil || !slices.Contains(p.Status.Pending, name)
	if late && (j.alone || !j.recorded[name]) {
		j.broke("cluster %s was made, and its name is not recorded", name)
	}
	j.late[name] = late
}

// phaseOf returns the phase of a cluster in a pool with settings.
func phaseOf(cd *hivev1.ClusterDeployment, settings pool.Settings, now time.Time) pool.Phase {
	m := facts.ReadMember(cd, now)
	return m.Phase(&settings, now)
}

// giving: only a cluster that runs and is neither broken nor going is given away.
// But one that a claim has been told of is that claim's, whatever became of it:
// it may have been deleted by hand and made again, while its name was on record.
func (j *judge) giving(c change[*hivev1.ClusterDeployment]) {
	ref := c.after.Spec.ClusterPoolRef
	claim := j.claimNamed(ref.Namespace, ref.ClaimName)
	again := claim != nil && claim.Spec.Namespace == c.after.Name
	p := phaseOf(c.before, pool.Settings{}, j.clock.Now())
	runs := c.before.Spec.Installed && c.before.Status.PowerState == hivev1.StatusRunning && c.before.Spec.PowerState != hivev1.PowerHibernating
	if !again && (p != pool.Assignable || !runs) {
		j.broke("cluster %s was given to claim %s, and is %s", c.after.Name, ref.ClaimName, p)
	}
	if c.after.Spec.PowerState != hivev1.PowerRunning || c.after.Spec.ClusterPoolRef.ClaimedTimestamp == nil {
		j.broke("cluster %s was given away without the time, or with power %q", c.after.Name, c.after.Spec.PowerState)
	}
}

// destroying checks that no user loses a cluster, and that no more clusters are destroyed
// concurrently than allowed.
func (j *judge) destroying(c change[*hivev1.ClusterDeployment]) {
	m := facts.ReadMember(c.before, j.clock.Now())
	if installing := !m.Installed && !m.GaveUp; !installing { // else its deletion takes what its install took
		j.ended[c.by]++
		if p := poolKeyOf(j.store.GetSharedObject, c.after); p != nil && p.DeletionTimestamp == nil && j.alone && strings.HasPrefix(c.by.Name, "pool ") {
			// The pass has reported before: that tells which of the pool's versions it goes by.
			j.concurrent(c.by, p, j.limit[version{p.UID, p.Status.ObservedGeneration}], m.Claim != "" || m.Marked)
		}
	}
	if m.Claim == "" || m.Marked {
		return
	}
	claim := j.claimNamed(c.before.Spec.ClusterPoolRef.Namespace, m.Claim)
	if claim == nil || claim.DeletionTimestamp != nil {
		return
	}
	ref := c.before.Spec.ClusterPoolRef
	untold := claim.Spec.Namespace == "" && claim.Spec.ClusterPoolName == ref.PoolName &&
		claim.CreationTimestamp.Before(ref.ClaimedTimestamp) // one of its name may have been made since
	if untold || claim.Spec.Namespace == c.before.Name {
		j.broke("%s destroyed cluster %s of claim %s, which is alive", c.by.Name, c.before.Name, m.Claim)
	}
}

func (j *judge) claimNamed(namespace, name string) *hivev1.ClusterClaim {
	c, _ := j.store.GetSharedObject(&hivev1.ClusterClaim{}, types.NamespacedName{Namespace: namespace, Name: name}).(*hivev1.ClusterClaim)
	return c
}

func (j *judge) clusterNamed(name string) *hivev1.ClusterDeployment {
	cd, _ := j.store.GetSharedObject(&hivev1.ClusterDeployment{}, types.NamespacedName{Namespace: name, Name: name}).(*hivev1.ClusterDeployment)
	return cd
}

func (j *judge) claim(c change[*hivev1.ClusterClaim]) {
	if c.created {
		return
	}
	was, is := c.before.Spec.Namespace, c.after.Spec.Namespace
	if was != is {
		j.telling(c, was, is)
	}
	if c.by != nil {
		same := c.after.DeepCopy()
		same.Spec.Namespace = was
		if !equality.Semantic.DeepEqual(same.Spec, c.before.Spec) {
			j.broke("%s edited the spec of claim %s", c.by.Name, c.after.Name)
		}
		if c.deleted() && (is == "" || c.after.Spec.Lifetime == nil && !j.limits(c.after)) {
			j.broke("%s deleted claim %s, which has no cluster, or no lifetime", c.by.Name, c.after.Name)
		}
	}
	held := slices.Contains(c.before.Finalizers, hivev1.FinalizerClaim)
	if cd := j.clusterNamed(is); held && !slices.Contains(c.after.Finalizers, hivev1.FinalizerClaim) &&
		cd != nil && cd.Spec.ClusterPoolRef.ClaimName == c.after.Name {
		j.broke("claim %s was let go while its cluster %s is there", c.after.Name, is)
	}
}

// limits reports whether the claim's pool may end it.
func (j *judge) limits(c *hivev1.ClusterClaim) bool {
	p, _ := j.store.GetSharedObject(&hivev1.ClusterPool{}, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ClusterPoolName}).(*hivev1.ClusterPool)
	return p == nil || p.Spec.ClaimLifetime != nil
}

// telling: a claim is told once, of a cluster that is its own, and that no other
// claim, not even one of the same name, was told of before.
func (j *judge) telling(c change[*hivev1.ClusterClaim], was, is string) {
	name := c.after.Name
	switch {
	case was != "":
		j.broke("claim %s was told of %s and then of %q", name, was, is)
	case j.claimOf[is] != name:
		j.broke("claim %s was told of cluster %s, which is %q's", name, is, j.claimOf[is])
	case c.before.DeletionTimestamp != nil:
		j.broke("claim %s is being deleted and was told of cluster %s", name, is)
	case j.toldTo[is] != "" && j.toldTo[is] != c.after.UID:
		j.broke("cluster %s was used by one claim %s and is told to another", is, name)
	case !slices.Contains(c.after.Finalizers, hivev1.FinalizerClaim):
		j.broke("claim %s was told of cluster %s and nothing holds it", name, is)
	}
	j.toldTo[is] = c.after.UID
}

func (j *judge) pool(c change[*hivev1.ClusterPool]) {
	if c.gone {
		if left := j.members(c.after); len(left) > 0 {
			j.broke("pool %s is gone and cluster %s is left", c.after.Name, left[0].Name)
		}
		return
	}
	j.limit[version{c.after.UID, c.after.Generation}] = c.after.Spec.MaxConcurrent
	if c.by == nil || c.created {
		return
	}
	if !equality.Semantic.DeepEqual(c.before.Spec, c.after.Spec) {
		j.broke("%s edited the spec of pool %s", c.by.Name, c.after.Name)
	}
	more := false
	for _, name := range c.after.Status.Pending {
		more = more || !slices.Contains(c.before.Status.Pending, name)
		j.recorded[name] = true
	}
	if more {
		j.growing(c)
	}
	j.books(c)
}

// members are the clusters of a pool that exist.
func (j *judge) members(p *hivev1.ClusterPool) []*hivev1.ClusterDeployment {
	var out []*hivev1.ClusterDeployment
	for _, o := range j.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		cd := o.(*hivev1.ClusterDeployment)
		if ref := cd.Spec.ClusterPoolRef; ref.Namespace == p.Namespace && ref.PoolName == p.Name {
			out = append(out, cd)
		}
	}
	return out
}

// growing: a pool records no more names than it has room for, and than its size
// and the claims that wait ask for. What waits, and which clusters are any good,
// is as the pass saw it, in its cache or as its process wrote them: those it could
// not see count.
func (j *judge) growing(c change[*hivev1.ClusterPool]) {
	seen := map[string]*hivev1.ClusterDeployment{}
	given := map[string]bool{}
	for _, o := range c.by.Listed["ClusterDeployment"] {
		cd := o.(*hivev1.ClusterDeployment)
		seen[cd.Name] = cd
		given[cd.Spec.ClusterPoolRef.ClaimName] = true
	}
	asked := int(c.before.Spec.Size)
	for _, o := range c.by.Listed["ClusterClaim"] {
		if claim := o.(*hivev1.ClusterClaim); claim.Spec.Namespace == "" && claim.DeletionTimestamp == nil && !given[claim.Name] {
			asked++
		}
	}
	members := j.members(c.before)
	exist, good := len(members), 0
	set, err := facts.ReadSettings(c.before, nil)
	if err != nil {
		j.broke("reading pool %s: %v", c.before.Name, err)
		return
	}
	for _, cd := range members {
		own := j.own[written{c.by.Process, cd.Name}]
		if !j.again[cd.Name] && !j.leases.excused[cd.Name] && !j.withdrawn(c.before, cd) && spare(cd, set, j.clock.Now()) &&
			(seen[cd.Name] == nil || spare(seen[cd.Name], set, j.clock.Now())) && (own == nil || spare(own, set, j.clock.Now())) {
			good++
		}
	}
	for _, name := range c.after.Status.Pending {
		if j.clusterNamed(name) == nil {
			exist++
			good++
		}
	}
	if most := set.MaxSize; most != nil && exist > *most {
		j.broke("pool %s will have %d clusters, maxSize is %d", c.after.Name, exist, *most)
	}
	j.concurrent(c.by, c.after, c.after.Spec.MaxConcurrent, false)
	if good > asked {
		j.broke("pool %s will have %d unclaimed clusters, its size and claims ask for %d", c.after.Name, good, asked)
	}
}

// withdrawn reports whether an unclaimed cluster's customization is no longer the pool's to use.
func (j *judge) withdrawn(p *hivev1.ClusterPool, cd *hivev1.ClusterDeployment) bool {
	key := slotOf(cd)
	if key.Name == "" || len(p.Spec.Inventory) == 0 || cd.Spec.ClusterPoolRef.ClaimName != "" {
		return false
	}
	slot := j.slot(key)
	return !slices.Contains(p.Spec.Inventory.Names(), key.Name) || slot != nil && slot.DeletionTimestamp != nil
}

// concurrent checks that a pass starts no more work than the pool may have in progress. A cluster
// counts in the state that the pass observed, or, if the pass could not observe it, in its real
// state. A cluster that was written into a claim belongs to that claim, though the pass may observe
// it from before that, or created again. A cluster whose lease was removed by hand is broken for
// its pool, though its install continues. If users asked for the deletions (asked), only deletions
// count.
func (j *judge) concurrent(by *chaos.Task, p *hivev1.ClusterPool, most *int32, asked bool) {
	seen := map[string]*hivev1.ClusterDeployment{}
	for _, o := range by.Listed["ClusterDeployment"] {
		seen[o.GetName()] = o.(*hivev1.ClusterDeployment)
	}
	n := j.ended[by]
	for _, cd := range j.members(p) {
		old := seen[cd.Name]
		if (j.again[cd.Name] || j.toldTo[cd.Name] != "") && cd.DeletionTimestamp == nil ||
			j.leases.excused[cd.Name] && (old == nil || old.DeletionTimestamp == nil) {
			continue
		}
		if old != nil {
			cd = old
		}
		switch phaseOf(cd, pool.Settings{}, j.clock.Now()) {
		case pool.Deleting:
			n++
		case pool.Installing:
			if !asked {
				n++
			}
		}
	}
	for _, name := range p.Status.Pending {
		if j.clusterNamed(name) != nil || j.toldTo[name] != "" || asked {
			continue
		}
		// One that is gone is as the pass saw it, in its cache or as its process wrote it.
		old := seen[name]
		if old == nil {
			old = j.own[written{by.Process, name}]
		}
		if old == nil || phaseOf(old, pool.Settings{}, j.clock.Now()) == pool.Installing {
			n++
		}
	}
	if most != nil && n > int(*most) {
		j.broke("pool %s will have %d clusters under way, maxConcurrent is %d", p.Name, n, *most)
	}
}

// spare reports whether a cluster counts as one that the pool has in stock.
func spare(cd *hivev1.ClusterDeployment, set pool.Settings, now time.Time) bool {
	switch phaseOf(cd, set, now) {
	case pool.Installing, pool.Standby, pool.Assignable:
		return true
	}
	return false
}

func (j *judge) namespace(c change[*corev1.Namespace]) {
	if c.by != nil && c.deleted() && j.clusterNamed(c.after.Name) != nil {
		j.broke("%s deleted namespace %s, and its cluster is there", c.by.Name, c.after.Name)
	}
}
