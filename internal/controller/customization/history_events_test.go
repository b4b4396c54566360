package customization

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory/lease"
)

var slotNames = []string{"a", "b", "c"}

// any1 is a copy of some object of like's kind, or nil.
func any1[T client.Object](h *history, like T) (o T, ok bool) {
	all := h.store.ListSharedObjects(like)
	if len(all) == 0 {
		return o, false
	}
	return all[h.rand.IntN(len(all))].DeepCopyObject().(T), true
}

func (h *history) edit(who string, o client.Object, what string, change func()) bool {
	changed := h.store.EditObject(h.t.Context(), o, change)
	if changed {
		h.log.Addf("%s: %T %s: %s", who, o, o.GetName(), what)
	}
	return changed
}

func (h *history) delete(o client.Object) {
	if h.store.Delete(h.t.Context(), o, nil) == nil {
		h.log.Addf("user: delete %T %s", o, o.GetName())
	}
}

// progress is what installs and destruction do to some cluster.
func (h *history) progress() {
	if cd, ok := any1(h, &hivev1.ClusterDeployment{}); ok {
		h.move(cd, h.rand.IntN(4) == 0)
	}
}

// move lets a cluster get on: it is marked, then installed, unless that fails; or destroyed.
func (h *history) move(cd *hivev1.ClusterDeployment, fails bool) bool {
	standing := controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision)
	switch {
	case cd.DeletionTimestamp != nil && standing:
		return h.edit("world", cd, "destroyed", func() { controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision) })
	case cd.DeletionTimestamp != nil:
		return false
	case !standing:
		return h.edit("world", cd, "marked", func() { controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision) })
	case fails && !cd.Spec.Installed:
		return h.edit("world", cd, "install given up", func() { stop(cd, h.clock.Now()) })
	}
	return h.edit("world", cd, "installed", func() { cd.Spec.Installed = true })
}

func stop(cd *hivev1.ClusterDeployment, now time.Time) {
	condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "r", "m", now)
}

// users do something.
func (h *history) users() {
	n := h.rand.IntN(12)
	if n >= 8 && !h.rough {
		n = h.rand.IntN(8)
	}
	switch n {
	case 0, 1, 2:
		if cd, ok := any1(h, &hivev1.ClusterDeployment{}); ok {
			h.delete(cd)
		}
	case 3:
		if c, ok := any1(h, &hivev1.ClusterDeploymentCustomization{}); ok && h.rand.IntN(3) == 0 {
			h.delete(c)
		}
	case 4, 5:
		h.make(newSlot(slotNames[h.rand.IntN(len(slotNames))]))
	case 6:
		if p, ok := any1(h, &hivev1.ClusterPool{}); ok && h.rand.IntN(3) == 0 {
			h.delete(p)
		}
	case 7:
		h.make(newPool([]string{"p", "q"}[h.rand.IntN(2)], 1+int32(h.rand.IntN(2))))
	case 8:
		h.spoil()
	case 9:
		h.rename()
	default:
		h.force()
	}
}

// spoil makes an object unreadable, or readable again.
func (h *history) spoil() {
	o, ok := any1(h, cached[h.rand.IntN(len(cached))])
	if !ok {
		return
	}
	switch o := o.(type) {
	case *hivev1.ClusterPool:
		h.toggle(o, &o.Unreadable)
	case *hivev1.ClusterDeployment:
		h.toggle(o, &o.Unreadable)
	case *hivev1.ClusterDeploymentCustomization:
		h.toggle(o, &o.Unreadable)
	}
}

func (h *history) toggle(o client.Object, unreadable *string) {
	h.edit("user", o, "readable or not", func() {
		if *unreadable == "" {
			*unreadable = "it is broken"
		} else {
			*unreadable = ""
		}
	})
}

// rename has a cluster name another customization, or none.
func (h *history) rename() {
	cd, ok := any1(h, &hivev1.ClusterDeployment{})
	if !ok {
		return
	}
	name := append(slices.Clone(slotNames), "")[h.rand.IntN(len(slotNames)+1)]
	h.judge.forced[cd.Name] = true
	h.edit("user", cd, "names customization "+name, func() {
		cd.Spec.ClusterPoolRef.CustomizationRef = nil
		if name != "" {
			cd.Spec.ClusterPoolRef.CustomizationRef = &corev1.LocalObjectReference{Name: name}
		}
	})
}

// force takes away what holds an object that is being deleted, or a lease.
func (h *history) force() {
	if h.rand.IntN(2) == 0 {
		if cd, ok := any1(h, &hivev1.ClusterDeployment{}); ok && cd.DeletionTimestamp != nil {
			h.judge.forced[cd.Name] = true
			h.edit("user", cd, "no finalizers", func() { cd.Finalizers = nil })
		}
		return
	}
	c, ok := any1(h, &hivev1.ClusterDeploymentCustomization{})
	if !ok {
		return
	}
	h.judge.forced[c.Name] = true
	if c.DeletionTimestamp != nil {
		h.edit("user", c, "no finalizers", func() { c.Finalizers = nil })
		return
	}
	h.edit("user", c, "no lease", func() { lease.Release(c, h.clock.Now()) })
}
