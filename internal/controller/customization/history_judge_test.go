package customization

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// judge looks at every write.
type judge struct {
	store  *chaos.Store
	broken error
	// forced are clusters and customizations that users have used force on: two clusters
	// may be on one customization then, until the pool has displaced one.
	forced map[string]bool
	// late are clusters that were made when their name was no longer recorded: their
	// maker stood still after it had looked. That is the pool's to put right.
	late map[string]bool

	releases, repairs int
}

func newJudge(store *chaos.Store) *judge {
	return &judge{store: store, forced: map[string]bool{}, late: map[string]bool{}}
}

func (j *judge) broke(format string, args ...any) {
	if j.broken == nil {
		j.broken = fmt.Errorf(format, args...)
	}
}

func (j *judge) wrote(ctx context.Context, w chaos.Write) {
	task := chaos.TaskFromContext(ctx)
	if task == nil {
		return
	}
	keeper := strings.HasPrefix(task.Name, "lease ")
	switch after := w.After.(type) {
	case *hivev1.ClusterDeploymentCustomization:
		j.customization(w.Before.(*hivev1.ClusterDeploymentCustomization), after, w.Gone, keeper)
	case *hivev1.ClusterDeployment:
		if w.Before == nil {
			j.made(after)
		} else if before := readCluster(w.Before.(*hivev1.ClusterDeployment)); keeper && (!before.IsDestroyed() || before.Unreadable) {
			j.broke("cluster %s was let go, and it is there", after.Name)
		}
	}
}

// onlyReported reports whether a write changes what tools that wait go by, and nothing else.
func onlyReported(before, after *hivev1.ClusterDeploymentCustomization) bool {
	a, b := before.DeepCopy(), after.DeepCopy()
	for _, c := range []*hivev1.ClusterDeploymentCustomization{a, b} {
		c.Status.ObservedGeneration, c.ResourceVersion, c.Unreadable = 0, "", ""
		meta.RemoveStatusCondition(&c.Status.Conditions, hivev1.ConditionReconciling)
		meta.RemoveStatusCondition(&c.Status.Conditions, hivev1.ConditionStalled)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// customization judges what was written to one.
func (j *judge) customization(before, after *hivev1.ClusterDeploymentCustomization, gone, keeper bool) {
	had, leased := lease.Holder(before)
	has, still := lease.Holder(after)
	switch {
	case onlyReported(before, after):
		return
	case before.Unreadable != "":
		j.broke("customization %s was written, and it cannot be read", after.Name)
	case !leased:
		if still && keeper {
			j.repairs++
		}
		return
	case gone:
		j.broke("customization %s is gone, and %s has it", after.Name, had)
	case still && has != had:
		j.broke("customization %s was taken from %s by %s", after.Name, had, has)
	case still:
		return
	}
	j.releases++
	if cd := j.cluster(had); cd != nil && !j.late[had.Name] && !j.forced[had.Name] {
		if c := readCluster(cd); c.Customization == client.ObjectKeyFromObject(after) && !c.IsDestroyed() {
			j.broke("the lease of customization %s was ended, and cluster %s needs it", after.Name, had)
		}
	}
}

// made checks that no other cluster uses the customization of a new cluster.
func (j *judge) made(cd *hivev1.ClusterDeployment) {
	p, _ := j.store.GetSharedObject(&hivev1.ClusterPool{}, types.NamespacedName{Namespace: "pools", Name: cd.Spec.ClusterPoolRef.PoolName}).(*hivev1.ClusterPool)
	if p == nil || !slices.Contains(p.Status.Pending, cd.Name) {
		j.late[cd.Name] = true
	}
	named := customizationOf(cd)
	if j.late[cd.Name] || j.forced[cd.Name] || j.forced[named.Name] {
		return
	}
	c, _ := j.store.GetSharedObject(&hivev1.ClusterDeploymentCustomization{}, named).(*hivev1.ClusterDeploymentCustomization)
	if c == nil {
		j.broke("cluster %s was made without customization %s", cd.Name, named)
		return
	}
	if holder, _ := lease.Holder(c); holder != client.ObjectKeyFromObject(cd) {
		j.broke("cluster %s was made on customization %s, which %q has", cd.Name, named, holder.Name)
	}
	for _, o := range j.store.ListSharedObjects(cd) {
		other := readCluster(o.(*hivev1.ClusterDeployment))
		if other.Key.Name != cd.Name && other.Customization == named && !other.IsDestroyed() && !j.late[other.Key.Name] && !j.forced[other.Key.Name] {
			j.broke("clusters %s and %s are both on customization %s", cd.Name, other.Key.Name, named)
		}
	}
}

func (j *judge) cluster(key types.NamespacedName) *hivev1.ClusterDeployment {
	cd, _ := j.store.GetSharedObject(&hivev1.ClusterDeployment{}, key).(*hivev1.ClusterDeployment)
	return cd
}

// converge lets everything succeed from here on; then all leases must be true. Then all
// clusters go, and nothing may be left of their leases; then all customizations.
func (h *history) converge() {
	h.log.Addf("from here on all goes well")
	for _, r := range h.replicas[1:] {
		h.scheduler.KillProcess(r.process)
	}
	h.heal()
	h.rest()
	h.leasesAreTrue()
	h.log.Addf("all pools and clusters go")
	for _, like := range []client.Object{&hivev1.ClusterPool{}, &hivev1.ClusterDeployment{}} {
		for _, o := range h.store.ListSharedObjects(like) {
			h.delete(o)
		}
	}
	h.rest()
	h.leasesAreTrue()
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		h.judge.broke("cluster %s stays for ever, with %v", o.GetName(), o.GetFinalizers())
	}
	h.log.Addf("all customizations go")
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeploymentCustomization{}) {
		if _, leased := lease.Holder(o.(*hivev1.ClusterDeploymentCustomization)); leased {
			h.judge.broke("the lease of customization %s is leaked", o.GetName())
		}
		h.delete(o)
	}
	h.rest()
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeploymentCustomization{}) {
		h.judge.broke("customization %s stays for ever, with %v", o.GetName(), o.GetFinalizers())
	}
}

func (h *history) heal() {
	for _, like := range cached {
		for _, o := range h.store.ListSharedObjects(like) {
			switch o := o.DeepCopyObject().(type) {
			case *hivev1.ClusterPool:
				h.edit("user", o, "readable", func() { o.Unreadable = "" })
			case *hivev1.ClusterDeployment:
				h.edit("user", o, "readable", func() { o.Unreadable = "" })
			case *hivev1.ClusterDeploymentCustomization:
				h.edit("user", o, "readable", func() { o.Unreadable = "" })
			}
		}
	}
}

const (
	// rounds is when a history counts as one that never settles.
	rounds = 60
	// quiet is the number of rounds without a write after which the history counts as settled.
	quiet = 3
)

// rest runs one process and the world in turn until neither writes any more.
func (h *history) rest() {
	r, still := h.replicas[0], 0
	for range rounds {
		before := h.store.CountWrites()
		r.view.ShowAllWrites()
		for _, key := range r.view.ListVisibleKeys(&hivev1.ClusterPool{}) {
			h.pass(r, "pool", r.maker, key)
			h.drain()
		}
		for _, key := range h.slots(r) {
			h.pass(r, "lease", r.keeper, key)
			h.drain()
		}
		for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
			h.move(o.DeepCopyObject().(*hivev1.ClusterDeployment), false)
		}
		for _, o := range h.store.ListSharedObjects(&corev1.Namespace{}) {
			h.store.SweepNamespace(h.t.Context(), o.GetName())
		}
		h.clock.SetTime(h.clock.Now().Add(time.Minute))
		if still++; h.store.CountWrites() != before {
			still = 0
		}
		if still == quiet || h.judge.broken != nil {
			return
		}
	}
	h.judge.broke("it does not come to rest")
}

// drain lets all calls go on, one after the other, until no task is left.
func (h *history) drain() {
	for h.settle(); len(h.calls) > 0; h.settle() {
		h.steps++
		h.log.Add(h.calls[0])
		h.scheduler.ReleaseCall(h.calls[0])
	}
}

// leasesAreTrue checks a settled world.
func (h *history) leasesAreTrue() {
	holds := map[types.NamespacedName]types.NamespacedName{}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeploymentCustomization{}) {
		f := readCustomization(o.(*hivev1.ClusterDeploymentCustomization))
		if f.Leased != (f.Available == metav1.ConditionFalse) || f.Leased && !f.HasFinalizer && !f.Deleting {
			h.judge.broke("customization %s says %+v", o.GetName(), f)
		}
		if f.Deleting && !f.Leased {
			h.judge.broke("customization %s stays, and nobody has it", o.GetName())
		}
		if !f.Leased {
			continue
		}
		holds[client.ObjectKeyFromObject(o)] = f.Holder
		cd := h.judge.cluster(f.Holder)
		if cd == nil || customizationOf(cd) != client.ObjectKeyFromObject(o) {
			h.judge.broke("customization %s is leased to %s, which does not use it", o.GetName(), f.Holder)
			continue
		}
		if cd.Spec.Installed && f.ApplyReason != hivev1.ReasonApplySucceeded {
			h.judge.broke("customization %s says %s of installed cluster %s", o.GetName(), f.ApplyReason, f.Holder)
		}
	}
	for _, o := range h.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		c := readCluster(o.(*hivev1.ClusterDeployment))
		slot := h.store.GetSharedObject(&hivev1.ClusterDeploymentCustomization{}, c.Customization)
		if slot != nil && holds[c.Customization].Name == "" {
			h.judge.broke("cluster %s uses customization %s, which nobody has", c.Key, c.Customization)
		}
		if c.Deleting {
			h.judge.broke("cluster %s stays, with %v", c.Key, o.GetFinalizers())
		}
	}
}
