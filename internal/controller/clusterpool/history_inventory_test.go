package clusterpool_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/pool/facts"
)

// slots are the customizations that there may be. The last is hardly ever there.
var slots = []string{"a", "b", "c", "d", "e", "f"}

func (h *history) kinds() int {
	if h.mood.slots > 0 {
		return 7
	}
	return 6
}

// keys are what a controller's watches would have woken it for.
func (h *history) keys(r *replica, c controller) []types.NamespacedName {
	out := r.view.ListVisibleKeys(c.like)
	if _, ours := c.like.(*hivev1.ClusterDeploymentCustomization); !ours {
		return out
	}
	var list hivev1.ClusterDeploymentList
	if err := r.view.NewClient().List(h.t.Context(), &list, client.UnsafeDisableDeepCopy); err != nil {
		h.t.Fatal(err)
	}
	for i := range list.Items {
		key := slotOf(&list.Items[i])
		if key.Name != "" && !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// slotOf is the customization that a cluster names.
func slotOf(cd *hivev1.ClusterDeployment) types.NamespacedName {
	return types.NamespacedName{Namespace: cd.Spec.ClusterPoolRef.Namespace, Name: facts.CustomizationOf(cd)}
}

// stock makes the customizations that there are at first.
func (h *history) stock() {
	for _, name := range slots[:min(h.mood.slots, len(slots)-1)] {
		if h.rand.IntN(6) > 0 {
			h.makeSlot(name)
		}
	}
}

func (h *history) makeSlot(name string) {
	h.make(&hivev1.ClusterDeploymentCustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name},
		Spec:       hivev1.ClusterDeploymentCustomizationSpec{InstallConfigPatches: h.newPatches(name)},
	})
}

// newPatches are good, mostly; else they apply to no pool, each with its own words for
// it, or only to one.
func (h *history) newPatches(name string) []hivev1.PatchEntity {
	word := func(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: fmt.Appendf(nil, "%q", s)} }
	good := hivev1.PatchEntity{Op: "replace", Path: "metadata/name", Value: word(fmt.Sprintf("%s-%d", name, h.rand.IntN(3)))}
	picky := hivev1.PatchEntity{Op: "test", Path: "/baseDomain", Value: word(domain(poolNames[h.rand.IntN(2)]))}
	bad := hivev1.PatchEntity{Op: "replace", Path: "metadata/nowhere", Value: word("x")}
	switch h.rand.IntN(10) {
	case 0:
		return []hivev1.PatchEntity{bad}
	case 1:
		return []hivev1.PatchEntity{picky, bad}
	case 2:
		return []hivev1.PatchEntity{picky, good}
	}
	return []hivev1.PatchEntity{good}
}

// domain is the base domain of a pool's clusters.
func domain(pool string) string { return pool + ".example.com" }

// newList is the inventory of a pool, in any order, and not too long.
func (h *history) newList() hivev1.Inventory {
	var out hivev1.Inventory
	for _, i := range h.rand.Perm(h.mood.slots)[:1+h.rand.IntN(h.mood.slots)] {
		out = append(out, hivev1.InventoryEntry{Name: slots[i]})
	}
	return out
}

// stockists does one thing that a user does with inventories.
func (h *history) stockists() {
	switch h.rand.IntN(16) {
	case 0, 1, 2:
		h.editSlot("patches", func(c *hivev1.ClusterDeploymentCustomization) { c.Spec.InstallConfigPatches = h.newPatches(c.Name) })
	case 3:
		h.editSlot("touch", func(c *hivev1.ClusterDeploymentCustomization) {
			metav1.SetMetaDataLabel(&c.ObjectMeta, "touched", fmt.Sprint(h.rand.IntN(3)))
		})
	case 4:
		h.dropSlot()
	case 5, 6:
		h.makeSlot(slots[h.rand.IntN(h.mood.slots)])
	case 7, 8, 9:
		h.editList()
	case 10:
		name := slots[h.rand.IntN(h.mood.slots)]
		h.cursed[name] = !h.cursed[name]
		h.log.Addf("with %s every install fails: %t", name, h.cursed[name])
	case 11:
		h.robSlot()
	case 12:
		h.forge()
	case 13:
		h.curse()
	default:
		h.markUser()
	}
}

func (h *history) editSlot(what string, change func(*hivev1.ClusterDeploymentCustomization)) {
	if o := h.any(&hivev1.ClusterDeploymentCustomization{}); o != nil {
		c := o.(*hivev1.ClusterDeploymentCustomization)
		h.edit("user", c, what, func() { change(c) })
	}
}

// dropSlot deletes a customization; now and then by force, and makes it again.
func (h *history) dropSlot() {
	o := h.any(&hivev1.ClusterDeploymentCustomization{})
	if o == nil {
		return
	}
	h.delete(o)
	if h.rand.IntN(4) > 0 {
		return
	}
	h.judge.rob(o.GetName())
	h.edit("user", o, "by force", func() { o.SetFinalizers(nil) })
	if h.rand.IntN(2) == 0 {
		h.makeSlot(o.GetName())
	}
}

// editList edits a pool's inventory: one entry more or less, another order, none, or
// another altogether.
func (h *history) editList() {
	o := h.any(&hivev1.ClusterPool{})
	if o == nil {
		return
	}
	p := o.(*hivev1.ClusterPool)
	h.edit("user", p, "inventory", func() {
		list := slices.Clone(p.Spec.Inventory)
		one := hivev1.InventoryEntry{Name: slots[h.rand.IntN(h.mood.slots)]}
		switch h.rand.IntN(6) {
		case 0, 1:
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		case 2:
			if len(list) > 1 {
				list = slices.DeleteFunc(list, func(e hivev1.InventoryEntry) bool { return e == list[0] })
			}
		case 3:
			h.rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		case 4:
			list = nil
		default:
			list = h.newList()
		}
		p.Spec.Inventory = list
	})
	h.log.Addf("it is %v", p.Spec.Inventory.Names())
}

// robSlot takes a lease away by hand: an old backup was restored.
func (h *history) robSlot() {
	o := h.any(&hivev1.ClusterDeploymentCustomization{})
	if o == nil {
		return
	}
	h.judge.rob(o.GetName())
	c := o.(*hivev1.ClusterDeploymentCustomization)
	h.edit("user", c, "rob", func() {
		if h.rand.IntN(2) == 0 {
			lease.Release(c, h.clock.Now())
		} else {
			c.Status = hivev1.ClusterDeploymentCustomizationStatus{}
		}
	})
}

// forge gives a customization to a cluster that does not exist.
func (h *history) forge() {
	o := h.any(&hivev1.ClusterDeploymentCustomization{})
	if o == nil {
		return
	}
	h.judge.rob(o.GetName())
	c := o.(*hivev1.ClusterDeploymentCustomization)
	h.edit("user", c, "forge", func() {
		c.Status.ClusterDeploymentRef = &corev1.ObjectReference{Namespace: "ghost", Name: "ghost"}
		c.Status.ClusterPoolRef = nil
		if h.rand.IntN(2) == 0 {
			c.Status.ClusterPoolRef = &corev1.ObjectReference{Namespace: "pools", Name: poolNames[h.rand.IntN(2)]}
		}
	})
}

// curse lets the install of a cluster fail for good.
func (h *history) curse() {
	if o := h.any(&hivev1.ClusterDeployment{}); o != nil {
		cd := o.(*hivev1.ClusterDeployment)
		h.edit("world", cd, "fail for good", func() {
			if !cd.Spec.Installed && cd.DeletionTimestamp == nil {
				condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionStopped, corev1.ConditionTrue, "X", "", h.clock.Now())
			}
		})
	}
}

// markUser marks a cluster that has a customization for removal.
func (h *history) markUser() {
	if o := h.any(&hivev1.ClusterDeployment{}); o != nil && slotOf(o.(*hivev1.ClusterDeployment)).Name != "" {
		cd := o.(*hivev1.ClusterDeployment)
		h.edit("user", cd, "mark", func() { metav1.SetMetaDataAnnotation(&cd.ObjectMeta, hivev1.AnnotationRemove, "true") })
	}
}
