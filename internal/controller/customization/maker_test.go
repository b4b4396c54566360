package customization

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/patch"
)

// slot is the key of the customization of most tests.
var slot = types.NamespacedName{Namespace: "pools", Name: "slot"}

// maker stands in for the controller of pools: it makes clusters in the order that
// leases rely on, and nothing else. A name is recorded with its customization; the
// customization is held, then leased; then the cluster is made, and once that is seen
// the record goes.
type maker struct {
	client client.Client
	live   client.Reader
	clock  clock.PassiveClock
	suffix func() string
}

// Reconcile makes the pool's clusters, one more at a time.
func (m *maker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p hivev1.ClusterPool
	if err := m.client.Get(ctx, req.NamespacedName, &p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if p.Unreadable != "" {
		return ctrl.Result{}, nil
	}
	if err := m.record(ctx, &p); err != nil {
		return ctrl.Result{}, err
	}
	var errs []error
	for _, slot := range sortedKeys(p.Status.Inventory) {
		if ref := p.Status.Inventory[slot].ClusterDeployment; ref != nil && slices.Contains(p.Status.Pending, ref.Name) {
			errs = append(errs, m.make(ctx, &p, slot, ref.Name))
		}
	}
	return ctrl.Result{}, errors.Join(errs...)
}

func sortedKeys(m map[string]hivev1.InventoryEntryStatus) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// record drops the names of clusters that are seen, and those that cannot be made, and
// adds one for a free customization while there are too few.
func (m *maker) record(ctx context.Context, p *hivev1.ClusterPool) error {
	before := p.DeepCopy()
	var clusters hivev1.ClusterDeploymentList
	if err := m.client.List(ctx, &clusters); err != nil {
		return err
	}
	have := 0
	for _, cd := range clusters.Items {
		p.Status.Pending = slices.DeleteFunc(p.Status.Pending, func(name string) bool { return name == cd.Name })
		if cd.Spec.ClusterPoolRef.PoolName == p.Name && cd.DeletionTimestamp == nil {
			have++
		}
	}
	if err := m.giveUp(ctx, p); err != nil {
		return err
	}
	if len(p.Status.Pending)+have < int(p.Spec.Size) {
		if err := m.choose(ctx, p); err != nil {
			return err
		}
	}
	_, err := patch.Status(ctx, m.client, before, p)
	return err
}

// giveUp drops names whose customization somebody else has, if nothing was made under them.
func (m *maker) giveUp(ctx context.Context, p *hivev1.ClusterPool) error {
	for _, slot := range sortedKeys(p.Status.Inventory) {
		ref := p.Status.Inventory[slot].ClusterDeployment
		if !slices.Contains(p.Status.Pending, ref.Name) {
			continue
		}
		var c hivev1.ClusterDeploymentCustomization
		err := m.live.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: slot}, &c)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if holder, leased := lease.Holder(&c); err == nil && c.DeletionTimestamp == nil && (!leased || holder.Name == ref.Name) {
			continue
		}
		err = m.live.Get(ctx, types.NamespacedName{Namespace: ref.Name, Name: ref.Name}, &hivev1.ClusterDeployment{})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			p.Status.Pending = slices.DeleteFunc(p.Status.Pending, func(name string) bool { return name == ref.Name })
		}
	}
	return nil
}

func (m *maker) choose(ctx context.Context, p *hivev1.ClusterPool) error {
	var list hivev1.ClusterDeploymentCustomizationList
	if err := m.client.List(ctx, &list); err != nil {
		return err
	}
	for _, c := range list.Items {
		ref := p.Status.Inventory[c.Name].ClusterDeployment
		busy := ref != nil && slices.Contains(p.Status.Pending, ref.Name)
		if _, leased := lease.Holder(&c); leased || busy || c.DeletionTimestamp != nil || c.Unreadable != "" {
			continue
		}
		name := p.Name + "-" + m.suffix()
		if p.Status.Inventory == nil {
			p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{}
		}
		p.Status.Inventory[c.Name] = hivev1.InventoryEntryStatus{
			Status: hivev1.InventoryReserved, ClusterDeployment: &hivev1.ClusterDeploymentReference{Namespace: name, Name: name},
		}
		p.Status.Pending = append(p.Status.Pending, name)
		return nil
	}
	return nil
}

// make takes the lease, unless the cluster has it already, and makes the cluster, if
// it is still wanted.
func (m *maker) make(ctx context.Context, p *hivev1.ClusterPool, slot, name string) error {
	var c hivev1.ClusterDeploymentCustomization
	if err := m.client.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: slot}, &c); err != nil {
		return client.IgnoreNotFound(err)
	}
	cluster := types.NamespacedName{Namespace: name, Name: name}
	if holder, leased := lease.Holder(&c); c.DeletionTimestamp != nil || c.Unreadable != "" || leased && holder != cluster {
		return nil
	} else if !leased {
		if err := m.lease(ctx, &c, cluster, client.ObjectKeyFromObject(p)); err != nil {
			return err
		}
	}
	var now hivev1.ClusterPool
	if err := m.live.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return client.IgnoreNotFound(err)
	}
	if now.ResourceVersion != p.ResourceVersion || !slices.Contains(now.Status.Pending, name) {
		return nil
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		newCluster(name, p.Name, slot),
	} {
		if err := m.client.Create(ctx, o); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating %T %s: %w", o, name, err)
		}
	}
	return nil
}

func (m *maker) lease(ctx context.Context, c *hivev1.ClusterDeploymentCustomization, cluster, pool types.NamespacedName) error {
	before := c.DeepCopy()
	controllerutil.AddFinalizer(c, hivev1.FinalizerLease)
	if _, err := patch.Object(ctx, m.client, before, c); err != nil {
		return err
	}
	before = c.DeepCopy()
	lease.Acquire(c, cluster, pool, m.clock.Now(), "[]")
	_, err := patch.Status(ctx, m.client, before, c)
	return err
}

func newCluster(name, pool, slot string) *hivev1.ClusterDeployment {
	return &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, Finalizers: []string{hivev1.FinalizerLease}},
		Spec: hivev1.ClusterDeploymentSpec{ClusterName: name, ClusterPoolRef: &hivev1.ClusterPoolReference{
			Namespace: "pools", PoolName: pool, CustomizationRef: &corev1.LocalObjectReference{Name: slot},
		}},
	}
}

func newPool(name string, size int32) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name}, Spec: hivev1.ClusterPoolSpec{Size: size}}
}

func newSlot(name string) *hivev1.ClusterDeploymentCustomization {
	return &hivev1.ClusterDeploymentCustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name}}
}

// everything is every kind in these tests; cached are those that are read from caches.
var (
	everything = []client.Object{&corev1.Namespace{}, &hivev1.ClusterPool{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterDeploymentCustomization{}}
	cached     = everything[1:]
)

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s))
}

// keysOf are what a cache's watches would have woken: the customizations, and those
// that clusters name.
func keysOf(clusters []hivev1.ClusterDeployment, slots []types.NamespacedName) []types.NamespacedName {
	for i := range clusters {
		if key := customizationOf(&clusters[i]); isRelevantCluster(&clusters[i]) && !slices.Contains(slots, key) {
			slots = append(slots, key)
		}
	}
	return slots
}
