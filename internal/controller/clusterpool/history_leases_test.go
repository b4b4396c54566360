package clusterpool_test

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/config"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/pool/facts"
)

// leases is what a judge remembers of customizations and who uses them.
type leases struct {
	// made are the names under which there has been a cluster.
	made map[string]bool
	// excused are the clusters that may use a customization which another has: their
	// lease was taken away by hand, or they were made again, or too late (see making).
	excused map[string]bool
	// counted are the failures that the books of a pool have counted since an entry was
	// new, or had all its attempts.
	counted map[failure]bool
}

type failure struct {
	pool           types.UID
	entry, cluster string
}

func newLeases() leases {
	return leases{made: map[string]bool{}, excused: map[string]bool{}, counted: map[failure]bool{}}
}

// rob is told before a lease is taken away by hand: who uses the customization now,
// or is about to, is not to blame for what comes of it.
func (j *judge) rob(slot string) {
	key := types.NamespacedName{Namespace: "pools", Name: slot}
	if c := j.slot(key); c != nil {
		if holder, held := lease.Holder(c); held {
			j.leases.excused[holder.Name] = true
		}
	}
	for _, cd := range j.users(key) {
		j.leases.excused[cd.Name] = true
	}
}

func (j *judge) slot(key types.NamespacedName) *hivev1.ClusterDeploymentCustomization {
	c, _ := j.store.GetSharedObject(&hivev1.ClusterDeploymentCustomization{}, key).(*hivev1.ClusterDeploymentCustomization)
	return c
}

// users are the clusters that name a customization, and are not destroyed yet.
func (j *judge) users(key types.NamespacedName) []*hivev1.ClusterDeployment {
	var out []*hivev1.ClusterDeployment
	for _, o := range j.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		if cd := o.(*hivev1.ClusterDeployment); slotOf(cd) == key && stands(cd) {
			out = append(out, cd)
		}
	}
	return out
}

// stands reports whether something is left of a cluster.
func stands(cd *hivev1.ClusterDeployment) bool {
	return cd.DeletionTimestamp == nil || controllerutil.ContainsFinalizer(cd, hivev1.FinalizerDeprovision)
}

// leased checks that a cluster that names a customization is created while it has the lease, with
// that customization's content, and that no other cluster uses it.
func (j *judge) leased(c change[*hivev1.ClusterDeployment]) {
	name, key := c.after.Name, slotOf(c.after)
	again := j.leases.made[name]
	j.leases.made[name] = true
	j.identity(c.after)
	if key.Name == "" {
		return
	}
	if again || j.late[name] {
		j.leases.excused[name] = true
	}
	slot := j.slot(key)
	if !j.leases.excused[name] {
		if slot == nil {
			j.broke("cluster %s was made with customization %s, which does not exist", name, key.Name)
		} else if holder, _ := lease.Holder(slot); holder.Name != name {
			j.broke("cluster %s was made with customization %s, which %q has", name, key.Name, holder.Name)
		}
	}
	if !slices.Contains(c.after.Finalizers, hivev1.FinalizerLease) || c.after.Annotations[hivev1.AnnotationCustomizationVersion] == "" {
		j.broke("cluster %s has finalizers %v and annotations %v", name, c.after.Finalizers, c.after.Annotations)
	}
	j.alike(key)
}

// alike: no two clusters use one customization.
func (j *judge) alike(key types.NamespacedName) {
	var first string
	for _, cd := range j.users(key) {
		switch {
		case j.leases.excused[cd.Name]:
		case first == "":
			first = cd.Name
		default:
			j.broke("clusters %s and %s use customization %s", first, cd.Name, key.Name)
		}
	}
}

// identity: a cluster is called what its install-config calls it.
func (j *judge) identity(cd *hivev1.ClusterDeployment) {
	ref := cd.Spec.Provisioning.InstallConfigSecretRef
	secret, ok := j.store.GetSharedObject(&corev1.Secret{}, types.NamespacedName{Namespace: cd.Namespace, Name: ref.Name}).(*corev1.Secret)
	if !ok {
		return // somebody deletes its namespace
	}
	name, domain, err := config.ClusterIdentity(secret.Data[hivev1.SecretKeyInstallConfig])
	if err != nil || name != cd.Spec.ClusterName || domain != cd.Spec.BaseDomain {
		j.broke("cluster %s is called %s.%s, its install-config says %s.%s (%v)", cd.Name, cd.Spec.ClusterName, cd.Spec.BaseDomain, name, domain, err)
	}
}

// customization: a lease ends when its cluster does, and begins for one that is
// recorded with it, or names it.
func (j *judge) customization(c change[*hivev1.ClusterDeploymentCustomization]) {
	key := client.ObjectKeyFromObject(c.after)
	if c.gone && !c.created {
		if users := j.users(key); len(users) > 0 && !j.leases.excused[users[0].Name] {
			j.broke("customization %s is gone, and cluster %s uses it", key.Name, users[0].Name)
		}
	}
	if c.by == nil || c.created {
		return
	}
	was, had := lease.Holder(c.before)
	is, has := lease.Holder(c.after)
	if had && was != is {
		j.ending(c, was)
	}
	if had && has && was != is {
		j.broke("%s moved the lease of customization %s from %s to %s", c.by.Name, key.Name, was.Name, is.Name)
	}
	if has && was != is {
		j.taking(c, is.Name)
	}
	if available := lease.FindCondition(c.after, hivev1.CustomizationAvailable); was != is && (available == nil || (available.Status == "False") != has) {
		j.broke("customization %s is held by %q and says %+v", key.Name, is.Name, available)
	}
}

func (j *judge) ending(c change[*hivev1.ClusterDeploymentCustomization], was types.NamespacedName) {
	cd := j.clusterNamed(was.Name)
	switch {
	case cd != nil && slotOf(cd) == client.ObjectKeyFromObject(c.after) && stands(cd):
		if !j.late[cd.Name] {
			j.broke("%s ended the lease of customization %s, and cluster %s uses it", c.by.Name, c.after.Name, cd.Name)
		}
	case cd == nil:
		for _, o := range j.store.ListSharedObjects(&hivev1.ClusterPool{}) {
			if p := o.(*hivev1.ClusterPool); slices.Contains(p.Status.Pending, was.Name) && !j.leases.made[was.Name] {
				j.broke("%s ended the lease of customization %s, and cluster %s is about to be made", c.by.Name, c.after.Name, was.Name)
			}
		}
	}
}

// taking: a lease is taken for a name that is recorded with that customization, or for
// a cluster that was made with it. One of two processes that lead may find out too late
// that the record has changed; then it makes no cluster.
func (j *judge) taking(c change[*hivev1.ClusterDeploymentCustomization], holder string) {
	if cd := j.clusterNamed(holder); cd != nil && slotOf(cd) == client.ObjectKeyFromObject(c.after) {
		return
	}
	if c.after.DeletionTimestamp != nil || !slices.Contains(c.after.Finalizers, hivev1.FinalizerLease) {
		j.broke("%s took customization %s, and nothing holds it", c.by.Name, c.after.Name)
	}
	if !j.alone {
		return
	}
	for _, o := range j.store.ListSharedObjects(&hivev1.ClusterPool{}) {
		p := o.(*hivev1.ClusterPool)
		e := p.Status.Inventory[c.after.Name]
		if slices.Contains(p.Status.Pending, holder) && e.ClusterDeployment != nil && e.ClusterDeployment.Name == holder {
			return
		}
	}
	j.broke("%s took customization %s for cluster %s, and that is not recorded", c.by.Name, c.after.Name, holder)
}

// books: attempts are counted down once for each cluster that fails, and used up
// before a customization counts as broken by the cloud.
func (j *judge) books(c change[*hivev1.ClusterPool]) {
	for name, e := range c.after.Status.Inventory {
		was, known := c.before.Status.Inventory[name]
		if e.Attempts < 0 || e.Attempts > inventory.MaxAttempts {
			j.broke("pool %s has %d attempts left with %s", c.after.Name, e.Attempts, name)
		}
		if e.Status == hivev1.InventoryBrokenByCloud && e.Attempts > 0 {
			j.broke("pool %s says that %s is broken, and has %d attempts left", c.after.Name, name, e.Attempts)
		}
		if !known || e.Attempts > was.Attempts {
			for f := range j.leases.counted {
				if f.pool == c.after.UID && f.entry == name {
					delete(j.leases.counted, f)
				}
			}
		}
		before := was.Attempts
		if !known {
			before = inventory.MaxAttempts
		}
		if e.Attempts >= before {
			continue
		}
		f := failure{c.after.UID, name, e.Failed}
		cd := j.clusterNamed(e.Failed)
		switch {
		case before-e.Attempts > 1:
			j.broke("pool %s counts %d attempts with %s after %d", c.after.Name, e.Attempts, name, before)
		case e.Failed == "" || j.leases.counted[f] && !j.leases.excused[e.Failed]:
			j.broke("pool %s counts the failure of cluster %q with %s again", c.after.Name, e.Failed, name)
		case cd != nil && (facts.CustomizationOf(cd) != name || cd.Spec.Installed):
			j.broke("pool %s counts a failure of cluster %q with %s", c.after.Name, e.Failed, name)
		}
		j.leases.counted[f] = true
	}
}
