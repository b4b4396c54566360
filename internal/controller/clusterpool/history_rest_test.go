package clusterpool_test

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// restOfLease: in the end a lease is that of a cluster which uses the customization,
// or will, and every other customization can be used.
func (h *history) restOfLease(c *hivev1.ClusterDeploymentCustomization) {
	key := client.ObjectKeyFromObject(c)
	available, applied := lease.FindCondition(c, hivev1.CustomizationAvailable), lease.FindCondition(c, hivev1.CustomizationApplySucceeded)
	holder, held := lease.Holder(c)
	bound := slices.Contains(c.Finalizers, hivev1.FinalizerLease)
	if !held {
		if available != nil && available.Status != "True" {
			h.judge.broke("in the end nobody has customization %s, and it says %+v", c.Name, available)
		}
		if users := h.judge.users(key); len(users) > 0 {
			h.judge.broke("in the end nobody has customization %s, and cluster %s uses it", c.Name, users[0].Name)
		}
		if c.DeletionTimestamp != nil && bound {
			h.judge.broke("in the end customization %s cannot go", c.Name)
		}
		return
	}
	cd := h.judge.clusterNamed(holder.Name)
	switch {
	case !bound && c.DeletionTimestamp == nil:
		h.judge.broke("in the end nothing holds customization %s of cluster %s", c.Name, holder.Name)
	case available == nil || available.Status != "False":
		h.judge.broke("in the end cluster %s has customization %s, which says %+v", holder.Name, c.Name, available)
	case cd == nil && !h.reserved(holder.Name):
		h.judge.broke("in the end customization %s is that of cluster %s, which does not exist", c.Name, holder.Name)
	case cd == nil:
	case slotOf(cd) != key:
		h.judge.broke("in the end customization %s is that of cluster %s, which has %q", c.Name, cd.Name, slotOf(cd).Name)
	case cd.Spec.Installed && (applied == nil || applied.Reason != hivev1.ReasonApplySucceeded):
		h.judge.broke("in the end cluster %s is installed with customization %s, which says %+v", cd.Name, c.Name, applied)
	}
}

// restOfBooks: in the end the status of a pool says what its customizations are to it.
func (h *history) restOfBooks(p *hivev1.ClusterPool) {
	if p.DeletionTimestamp != nil {
		return
	}
	for _, name := range p.Spec.Inventory.Names() {
		if _, ok := p.Status.Inventory[name]; !ok {
			h.judge.broke("in the end pool %s lists %s, and says nothing of it", p.Name, name)
		}
	}
	for name, e := range p.Status.Inventory {
		key := types.NamespacedName{Namespace: p.Namespace, Name: name}
		c := h.judge.slot(key)
		listed := slices.Contains(p.Spec.Inventory.Names(), name)
		var holder string
		if c != nil {
			ref, _ := lease.Holder(c)
			holder = ref.Name
		}
		cluster := ""
		if e.ClusterDeployment != nil {
			cluster = e.ClusterDeployment.Name
		}
		cd := h.judge.clusterNamed(cluster)
		// What is recorded keeps what was leased for it while the pool cannot create it.
		ours := slices.Contains(p.Status.Pending, holder) && h.lacking(p) == "" || slices.ContainsFunc(h.judge.members(p), func(cd *hivev1.ClusterDeployment) bool { return cd.Name == holder })
		wrong := ""
		switch {
		case ours && cluster != holder:
			wrong = "another has it"
		case cluster != "" && cd == nil && !slices.Contains(p.Status.Pending, cluster):
			wrong = "there is no such cluster"
		case cluster != "" && cd != nil && slotOf(cd) != key:
			wrong = "that has another"
		case listed && (c == nil) != (e.Status == hivev1.InventoryMissing):
			wrong = "it exists, or does not"
		case (e.Status == hivev1.InventoryUnavailable) != (holder != "" && cluster == "") && e.Status != hivev1.InventoryMissing:
			wrong = "is it free?"
		case !listed && e.Status != hivev1.InventoryToBeDeleted:
			wrong = "it is not listed"
		case e.Status == hivev1.InventoryToBeUpdated && cd != nil && cd.Spec.ClusterPoolRef.ClaimName == "" && h.renews(p):
			wrong = "it is not updated"
		}
		if wrong != "" {
			h.judge.broke("in the end pool %s says of customization %s, held by %q: %+v of %q: %s", p.Name, name, holder, e, cluster, wrong)
		}
	}
}

// renews reports whether nothing keeps a pool from replacing what is stale: it can make
// clusters, and is not short of spares because claims have used up its maxSize.
func (h *history) renews(p *hivev1.ClusterPool) bool {
	claimed := 0
	for _, cd := range h.judge.members(p) {
		if cd.Spec.ClusterPoolRef.ClaimName != "" {
			claimed++
		}
	}
	crowded := claimed > 0 && p.Spec.MaxSize != nil && int(*p.Spec.MaxSize) < int(p.Spec.Size)+claimed
	return p.Spec.MaxConcurrent == nil && !crowded && len(h.lacking(p)) == 0
}

// displaced is the other cluster that has an unclaimed cluster's customization, if there is one.
func (h *history) displaced(cd *hivev1.ClusterDeployment) string {
	if c := h.judge.slot(slotOf(cd)); c != nil && cd.Spec.ClusterPoolRef.ClaimName == "" {
		if holder, held := lease.Holder(c); held && holder.Name != cd.Name && h.judge.clusterNamed(holder.Name) != nil {
			return holder.Name
		}
	}
	return ""
}

// lacking is what keeps a pool from making clusters.
func (h *history) lacking(p *hivev1.ClusterPool) string {
	if h.store.GetSharedObject(&hivev1.ClusterImageSet{}, types.NamespacedName{Name: p.Spec.ImageSetRef.Name}) == nil {
		return p.Spec.ImageSetRef.Name
	}
	if p.Spec.InstallConfigSecretTemplateRef != nil && !h.templateFits(p) {
		return templateName
	}
	return ""
}

// free are the customizations that a pool could still take.
func free(p *hivev1.ClusterPool) []string {
	var out []string
	for _, name := range p.Spec.Inventory.Names() {
		if p.Status.Inventory[name].Status == hivev1.InventoryAvailable {
			out = append(out, name)
		}
	}
	return out
}
