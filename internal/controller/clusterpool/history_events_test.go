package clusterpool_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/pool/facts"
)

var (
	poolNames = []string{"p", "q"}
	imageSets = []string{"v1", "v2"}
)

const (
	claimNames = 6
	// foreign is a finalizer that is not ours.
	foreign = "example.com/hold"
)

func (h *history) newPool(name string) *hivev1.ClusterPool {
	p := newPool(int32(h.rand.IntN(5)), int32(h.rand.IntN(4)))
	p.Name, p.Spec.BaseDomain = name, domain(name)
	p.Spec.MaxSize, p.Spec.MaxConcurrent = h.number(8), h.number(4)
	if h.mood.hard {
		p.Spec.MaxConcurrent = new(int32(1))
	}
	if h.rand.IntN(2) == 0 {
		p.Spec.HibernationConfig = &hivev1.HibernationConfig{ResumeTimeout: "20m"}
	}
	if h.rand.IntN(4) == 0 {
		week := hivev1.Duration("168h")
		p.Spec.ClaimLifetime = &hivev1.ClusterPoolClaimLifetime{Maximum: &week}
	}
	if h.mood.slots > 0 && h.rand.IntN(4) > 0 {
		p.Spec.Inventory = h.newList()
	}
	return p
}

// number is below most, now and then 0, and often none.
func (h *history) number(most int) *int32 {
	if h.rand.IntN(2) == 0 {
		return nil
	}
	n := int32(h.rand.IntN(most))
	return &n
}

// users does one thing that a user does.
func (h *history) users() {
	if h.mood.hard && h.rand.IntN(2) == 0 {
		h.claim()
		h.editPool()
	}
	switch n := h.rand.IntN(40); {
	case n < 10:
		h.claim()
	case n < 17:
		h.release(false)
	case n < 19:
		h.release(true)
	case n < 26:
		h.editPool()
	case n < 27:
		h.dropPool()
	case n < 29:
		h.make(h.newPool(poolNames[h.rand.IntN(h.mood.pools)]))
	case n < 31:
		h.toggleImageSet()
	case n < 32:
		h.toggleTemplate()
	case n < 33:
		h.togglePause()
	case n < 35:
		h.toggleFinalizer()
	default:
		h.meddle()
	}
}

func (h *history) claim() {
	h.makeClaim(fmt.Sprintf("x%d", h.rand.IntN(claimNames)), poolNames[h.rand.IntN(h.mood.pools)])
}

func (h *history) makeClaim(name, pool string) {
	c := &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool},
	}
	if h.rand.IntN(3) == 0 {
		c.Spec.Subjects = []rbacv1.Subject{{Kind: "User", Name: "jane"}}
	}
	if h.rand.IntN(3) == 0 {
		c.Spec.Lifetime = lifetime(h.rand.IntN(48))
	}
	if h.rand.IntN(3) == 0 {
		h.setPriority(c)
	}
	h.make(c)
}

// setPriority sets a priority, or what is none.
func (h *history) setPriority(c *hivev1.ClusterClaim) {
	values := []string{"", "0", "5", "-5", "1000", "-1000", "high", "1001"}
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, hivev1.AnnotationPriority, values[h.rand.IntN(len(values))])
}

func lifetime(hours int) *hivev1.Duration {
	d := hivev1.DurationOf(time.Duration(1+hours) * time.Hour)
	return &d
}

// any returns a copy of some object of like's kind, or nil.
func (h *history) any(like client.Object) client.Object {
	all := h.store.ListSharedObjects(like)
	if len(all) == 0 {
		return nil
	}
	return all[h.rand.IntN(len(all))].DeepCopyObject().(client.Object)
}

// release deletes a claim; again makes one of the same name at once, if it goes
// at once or has gone.
func (h *history) release(again bool) {
	o := h.any(&hivev1.ClusterClaim{})
	if o == nil {
		return
	}
	h.delete(o)
	if again {
		h.makeClaim(o.GetName(), poolNames[h.rand.IntN(h.mood.pools)])
	}
}

func (h *history) delete(o client.Object) {
	if err := h.store.Delete(h.t.Context(), o, nil); err == nil {
		h.log.Addf("user: delete %T %s", o, o.GetName())
	}
}

func (h *history) edit(who string, o client.Object, what string, change func()) {
	if h.store.EditObject(h.t.Context(), o, change) {
		h.log.Addf("%s: %T %s: %s", who, o, o.GetName(), what)
	}
}

func (h *history) dropPool() {
	if o := h.any(&hivev1.ClusterPool{}); o != nil {
		h.delete(o)
	}
}

func (h *history) toggleImageSet() {
	if h.mood.hard && h.rand.IntN(2) == 0 {
		name := imageSets[h.rand.IntN(2)]
		h.impossible[name] = !h.impossible[name]
		h.log.Addf("installs of %s cannot begin: %t", name, h.impossible[name])
		return
	}
	set := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: imageSets[h.rand.IntN(2)]}}
	if h.rand.IntN(3) == 0 {
		h.delete(set)
		return
	}
	h.make(set)
}

// toggleFinalizer holds something for a while.
func (h *history) toggleFinalizer() {
	o := h.any([]client.Object{&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}}[h.rand.IntN(3)])
	if o == nil {
		return
	}
	h.edit("user", o, "toggle finalizer "+foreign, func() {
		if !controllerutil.RemoveFinalizer(o, foreign) && o.GetDeletionTimestamp() == nil && h.rand.IntN(2) == 0 {
			controllerutil.AddFinalizer(o, foreign)
		}
	})
}

// meddle does something to a cluster, or to a claim.
func (h *history) meddle() {
	o := h.any(&hivev1.ClusterDeployment{})
	if o == nil {
		return
	}
	cd := o.(*hivev1.ClusterDeployment)
	switch h.rand.IntN(8) {
	case 0:
		h.edit("user", cd, "mark", func() { metav1.SetMetaDataAnnotation(&cd.ObjectMeta, hivev1.AnnotationRemove, "true") })
	case 1:
		h.delete(cd)
	case 2:
		h.delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cd.Name}})
	case 3, 4:
		h.edit("user", cd, "power", func() {
			cd.Spec.PowerState = []hivev1.PowerState{"", hivev1.PowerRunning, hivev1.PowerHibernating}[h.rand.IntN(3)]
		})
	case 5:
		h.edit("user", cd, "label", func() { metav1.SetMetaDataLabel(&cd.ObjectMeta, "team", fmt.Sprint(h.rand.IntN(3))) })
	default:
		if o := h.any(&hivev1.ClusterClaim{}); o != nil {
			c := o.(*hivev1.ClusterClaim)
			if h.rand.IntN(2) == 0 {
				h.edit("user", c, "priority", func() { h.setPriority(c) })
				return
			}
			h.edit("user", c, "lifetime", func() { c.Spec.Lifetime = lifetime(h.rand.IntN(48)) })
		}
	}
}

// progress is what other controllers do: it moves one cluster on, or a namespace.
func (h *history) progress() {
	if h.rand.IntN(5) == 0 {
		if o := h.any(&corev1.Namespace{}); o != nil {
			h.sweep(o)
		}
		return
	}
	if o := h.any(&hivev1.ClusterDeployment{}); o != nil {
		cd := o.(*hivev1.ClusterDeployment)
		h.move(cd, h.rand.IntN(10) == 0, h.cursed[facts.CustomizationOf(cd)])
	}
}

func (h *history) sweep(o client.Object) bool {
	return h.store.SweepNamespace(h.t.Context(), o.GetName())
}

// move moves a cluster on, well or badly; a cursed one is never installed. It reports whether it was there already.
func (h *history) move(cd *hivev1.ClusterDeployment, bad, cursed bool) bool {
	now, before := metav1.NewTime(h.clock.Now()), h.store.CountWrites()
	if paused(cd) {
		return false
	}
	what := "move"
	if bad {
		what = "move badly"
	}
	h.edit("world", cd, what, func() {
		gaveUp := condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped)
		switch {
		case cd.DeletionTimestamp != nil:
			controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision)
		case !slices.Contains(cd.Finalizers, hivev1.FinalizerDeprovision):
			controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
		case gaveUp:
		case !cd.Spec.Installed && h.impossible[cd.Spec.Provisioning.ImageSetRef.Name]:
			condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionFalse, "X", "a typo", now.Time)
		case !cd.Spec.Installed:
			condition.Set(&cd.Status.Conditions, hivev1.ClusterRequirementsMet, corev1.ConditionTrue, "X", "", now.Time)
			install(cd, bad || cursed, cursed || h.rand.IntN(2) == 0, now.Time)
		default:
			power(cd, bad, now)
		}
	})
	return h.store.CountWrites() != before
}

func install(cd *hivev1.ClusterDeployment, bad, forGood bool, now time.Time) {
	failed := func(typ string, is bool) {
		condition.Set(&cd.Status.Conditions, typ, condition.StatusOf(is), "X", "", now)
	}
	failed(hivev1.ClusterProvisionFailed, bad)
	failed(hivev1.ClusterProvisionStopped, bad && forGood)
	if !bad {
		cd.Spec.Installed = true
		cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: cd.Name}
		cd.Status.PowerState = hivev1.StatusRunning
	}
}

// power takes a step towards the state that is wanted, as the controller of power does.
func power(cd *hivev1.ClusterDeployment, bad bool, now metav1.Time) {
	say := func(status corev1.ConditionStatus, reason string) {
		condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, status, reason, "", now.Time)
	}
	target, state := hivev1.PowerRunning, hivev1.StatusRunning
	status, failed := corev1.ConditionFalse, hivev1.ReasonFailedToStart
	if cd.Spec.PowerState == hivev1.PowerHibernating {
		target, state = hivev1.PowerHibernating, hivev1.StatusHibernating
		status, failed = corev1.ConditionTrue, hivev1.ReasonFailedToStop
	}
	tr := cd.Status.PowerTransition
	unreachable := condition.IsTrue(cd.Status.Conditions, hivev1.ClusterUnreachable)
	switch {
	case cd.Status.PowerState == state && !bad && !unreachable:
	case cd.Status.PowerState == state && target == hivev1.PowerRunning && bad:
		cd.Status.PowerState = hivev1.ReasonWaitingForNodes
		condition.Set(&cd.Status.Conditions, hivev1.ClusterUnreachable, corev1.ConditionTrue, "X", "", now.Time)
	case cd.Status.PowerState == state && bad:
	case !unreachable && (tr == nil || tr.Target != target || tr.FinishedAt != nil):
		tr = &hivev1.PowerTransition{Target: target, StartedAt: now}
		if d := cd.Spec.PowerstateTransitionToRunningTimeout; d != nil && target == hivev1.PowerRunning {
			span, _ := d.Parse() // it is our own
			at := metav1.NewTime(now.Add(span))
			tr.Deadline = &at
		}
		cd.Status.PowerTransition, cd.Status.PowerState = tr, hivev1.ReasonWaitingForNodes
		say(corev1.ConditionFalse, hivev1.ReasonResuming)
	case bad:
		say(corev1.ConditionFalse, failed)
	default:
		cd.Status.PowerState = state
		if tr != nil {
			tr.FinishedAt, tr.Deadline = &now, nil
		}
		say(status, state)
		condition.Set(&cd.Status.Conditions, hivev1.ClusterUnreachable, corev1.ConditionFalse, "X", "", now.Time)
	}
}

// poolKeyOf is the pool of a cluster in the store, or nil.
func poolKeyOf(peek func(client.Object, types.NamespacedName) client.Object, cd *hivev1.ClusterDeployment) *hivev1.ClusterPool {
	ref := cd.Spec.ClusterPoolRef
	p, _ := peek(&hivev1.ClusterPool{}, types.NamespacedName{Namespace: ref.Namespace, Name: ref.PoolName}).(*hivev1.ClusterPool)
	return p
}
