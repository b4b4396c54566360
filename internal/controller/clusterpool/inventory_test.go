package clusterpool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus/kstatustest"
)

// named is a customization that names its cluster.
func named(name, cluster string) *hivev1.ClusterDeploymentCustomization {
	return &hivev1.ClusterDeploymentCustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name},
		Spec: hivev1.ClusterDeploymentCustomizationSpec{InstallConfigPatches: []hivev1.PatchEntity{{
			Op: "replace", Path: "metadata/name", Value: &runtime.RawExtension{Raw: fmt.Appendf(nil, "%q", cluster)},
		}}},
	}
}

// shelf is a line whose pools have inventories.
type shelf struct {
	*line
	t *testing.T
}

func newShelf(t *testing.T, objects ...client.Object) *shelf {
	t.Helper()
	l := newLine(t, append(objects, imageSet())...)
	serial := 0
	l.pools.Suffix = func() string { serial++; return fmt.Sprintf("%05d", serial) }
	return &shelf{l, t}
}

// listing is a pool named p of that size with an inventory.
func listing(size int32, entries ...string) *hivev1.ClusterPool {
	p := newPool(size, 0)
	for _, name := range entries {
		p.Spec.Inventory = append(p.Spec.Inventory, hivev1.InventoryEntry{Name: name})
	}
	return p
}

// keep lets the controller of pools look n times at the pool of that name.
func (s *shelf) keep(name string, n int) {
	s.t.Helper()
	for range n {
		if _, err := s.pools.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "pools", Name: name}}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *shelf) get(o client.Object) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		s.t.Fatal(err)
	}
}

// entries are the pool's books: "a Reserved 3 p-00001", one after the other.
func (s *shelf) entries(name string) string {
	s.t.Helper()
	p := newPool(0, 0)
	p.Name = name
	s.get(p)
	var parts []string
	for _, entry := range slices.Sorted(maps.Keys(p.Status.Inventory)) {
		e := p.Status.Inventory[entry]
		words := fmt.Sprintf("%s %s %d", entry, e.Status, e.Attempts)
		if e.ClusterDeployment != nil {
			words += " " + e.ClusterDeployment.Name
		}
		parts = append(parts, words)
	}
	return strings.Join(parts, ", ")
}

// clusters are the clusters with their customizations: "p-00001 of a as one.example.com".
func (s *shelf) clusters() string {
	s.t.Helper()
	var list hivev1.ClusterDeploymentList
	if err := s.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	var parts []string
	for _, cd := range list.Items {
		of := "none"
		if ref := cd.Spec.ClusterPoolRef.CustomizationRef; ref != nil {
			of = ref.Name
		}
		parts = append(parts, fmt.Sprintf("%s of %s as %s.%s", cd.Name, of, cd.Spec.ClusterName, cd.Spec.BaseDomain))
	}
	return strings.Join(parts, ", ")
}

// installConfig is what a cluster is made from.
func (s *shelf) installConfig(cd *hivev1.ClusterDeployment) string {
	s.t.Helper()
	var secret corev1.Secret
	secret.Namespace, secret.Name = cd.Namespace, cd.Spec.Provisioning.InstallConfigSecretRef.Name
	s.get(&secret)
	return string(secret.Data[hivev1.SecretKeyInstallConfig])
}

func (s *shelf) holder(c *hivev1.ClusterDeploymentCustomization) string {
	s.t.Helper()
	s.get(c)
	h, _ := lease.Holder(c)
	return h.Name
}

func (s *shelf) want(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

func TestEachClusterOfAnInventoryHasACustomization(t *testing.T) {
	a, b := named("a", "one"), named("b", "two")
	s := newShelf(t, listing(3, "a", "b"), a, b)
	s.keep("p", 2)
	s.want("entries", s.entries("p"), "a Reserved 3 p-00001, b Reserved 3 p-00002")
	s.want("clusters", s.clusters(), "p-00001 of a as one.example.com, p-00002 of b as two.example.com")
	s.want("who has a", s.holder(a), "p-00001")
	s.want("who has b", s.holder(b), "p-00002")

	var cd hivev1.ClusterDeployment
	cd.Namespace, cd.Name = "p-00001", "p-00001"
	s.get(&cd)
	if raw := s.installConfig(&cd); !strings.Contains(raw, "name: one") {
		t.Errorf("the install-config does not name the cluster one:\n%s", raw)
	}
	if !slices.Contains(cd.Finalizers, hivev1.FinalizerLease) || cd.Annotations[hivev1.AnnotationCustomizationVersion] == "" {
		t.Errorf("it has finalizers %v, annotations %v", cd.Finalizers, cd.Annotations)
	}

	p := newPool(0, 0)
	s.get(p)
	c := condition.Find(p.Status.Conditions, hivev1.PoolInventoryValid)
	s.want("InventoryValid", fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message),
		"False TooSmall 2 of 2 can be used, and the pool's size is 3: add customizations, or lower size")
	c = condition.Find(p.Status.Conditions, hivev1.PoolCapacityAvailable)
	s.want("CapacityAvailable", fmt.Sprintf("%s %s", c.Status, c.Reason), "False InventoryExhausted")
	s.want("plan", p.Status.Plan, "installing 2; 1 short: no customization of the inventory is free")
}

// B4, B5: all that there is to say is said in one write, and not again.
func TestACustomizationIsReservedInOneWrite(t *testing.T) {
	a := named("a", "one")
	s := newShelf(t, listing(1, "a"), a)
	s.keep("p", 1)
	s.get(a)
	taken := a.DeepCopy()
	s.keep("p", 5)
	s.get(a)
	if a.ResourceVersion != taken.ResourceVersion {
		t.Error("it is written again and again")
	}
	available, applied := lease.FindCondition(a, hivev1.CustomizationAvailable), lease.FindCondition(a, hivev1.CustomizationApplySucceeded)
	s.want("Available", fmt.Sprintf("%s %s %s", available.Status, available.Reason, available.Message),
		"False ClusterDeploymentCustomizationInUse Currently in use by cluster deployment p-00001 of clusterpool p")
	s.want("ApplySucceeded", fmt.Sprintf("%s %s", applied.Status, applied.Reason), "False InstallationPending")
	s.want("what was applied", a.Status.LastAppliedConfiguration,
		`{"installConfigPatches":[{"op":"replace","path":"metadata/name","value":"one"}]}`)
}

// B6: the second pool takes nothing from the first.
func TestTwoPoolsShareAnInventory(t *testing.T) {
	a, b, q := named("a", "one"), named("b", "two"), listing(2, "a", "b")
	q.Name = "q"
	s := newShelf(t, listing(1, "a", "b"), q, a, b)
	for range 3 {
		s.keep("p", 1)
		s.keep("q", 1)
	}
	s.want("entries of p", s.entries("p"), "a Reserved 3 p-00001, b Unavailable 3")
	s.want("entries of q", s.entries("q"), "a Unavailable 3, b Reserved 3 q-00002")
	s.want("clusters", s.clusters(), "p-00001 of a as one.example.com, q-00002 of b as two.example.com")
}

// B20: without its leading slash a path means the same, and one that leads nowhere is told.
func TestAPatchThatDoesNotApplyIsToldAndSkipped(t *testing.T) {
	bad, good := named("bad", "one"), named("good", "two")
	bad.Spec.InstallConfigPatches[0].Path = "metadata/names"
	s := newShelf(t, listing(1, "bad", "good"), bad, good)
	s.keep("p", 2)
	s.want("entries", s.entries("p"), "bad BrokenByConfiguration 3, good Reserved 3 p-00001")
	s.get(bad)
	applied := lease.FindCondition(bad, hivev1.CustomizationApplySucceeded)
	if applied.Reason != hivev1.ReasonBrokenBySyntax || !strings.Contains(applied.Message, "metadata/names") {
		t.Errorf("ApplySucceeded says %s: %s", applied.Reason, applied.Message)
	}
	kstatustest.ExpectStatus(t, bad, "Failed BrokenBySyntax")
	s.get(good)
	kstatustest.ExpectStatus(t, good, "InProgress InstallationPending")
	version := bad.ResourceVersion
	s.keep("p", 3)
	if s.get(bad); bad.ResourceVersion != version {
		t.Error("it is told again and again")
	}
	p := newPool(0, 0)
	s.get(p)
	if c := condition.Find(p.Status.Conditions, hivev1.PoolInventoryValid); c.Reason != hivev1.ReasonInventoryInvalid || !strings.Contains(c.Message, "metadata/names") {
		t.Errorf("InventoryValid says %s: %s", c.Reason, c.Message)
	}

	t.Log("repaired, it is tried again")
	bad.Spec.InstallConfigPatches[0].Path = "/metadata/name"
	p.Spec.Size = 2
	if err := errors.Join(s.Update(t.Context(), bad), s.Update(t.Context(), p)); err != nil {
		t.Fatal(err)
	}
	s.keep("p", 2)
	s.want("entries", s.entries("p"), "bad Reserved 3 p-00002, good Reserved 3 p-00001")
}

// After the template is fixed, a customization applies that did not before, though nobody edits it.
func TestATemplateThatChangesIsTriedAgain(t *testing.T) {
	a := named("a", "one")
	a.Spec.InstallConfigPatches = append(a.Spec.InstallConfigPatches, hivev1.PatchEntity{Op: "replace", Path: "/networking/networkType", Value: &runtime.RawExtension{Raw: []byte(`"X"`)}})
	template := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "template"}, Data: map[string][]byte{
		hivev1.SecretKeyInstallConfig: []byte("platform: {local: {}}\n"),
	}}
	p := listing(1, "a")
	p.Spec.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: template.Name}
	s := newShelf(t, p, a, template)
	s.keep("p", 2)
	s.want("entries", s.entries("p"), "a BrokenByConfiguration 3")
	template.Data[hivev1.SecretKeyInstallConfig] = []byte("platform: {local: {}}\nnetworking: {networkType: Y}\n")
	s.get(&corev1.Secret{ObjectMeta: template.ObjectMeta})
	template.ResourceVersion = ""
	if err := s.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	s.keep("p", 2)
	s.want("entries", s.entries("p"), "a Reserved 3 p-00001")
}

// B24: a cluster whose entry was taken off the list is told of as any stale one is.
func TestAClusterOfARemovedEntryIsDeleted(t *testing.T) {
	a, b := named("a", "one"), named("b", "two")
	s := newShelf(t, listing(1, "a", "b"), a, b)
	s.keep("p", 2)
	if _, err := world(t.Context(), s.Client); err != nil { // it is installed
		t.Fatal(err)
	}
	p := newPool(0, 0)
	s.get(p)
	p.Spec.Inventory = p.Spec.Inventory[1:]
	waiting := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "x"}, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: "p"}}
	if err := errors.Join(s.Update(t.Context(), p), s.Create(t.Context(), waiting)); err != nil {
		t.Fatal(err)
	}
	s.keep("p", 1)
	s.get(p)
	c := condition.Find(p.Status.Conditions, hivev1.PoolAllClustersCurrent)
	s.want("AllClustersCurrent", fmt.Sprintf("%s %s", c.Reason, c.Message),
		"SomeClusterDeploymentsStale Some unassigned ClusterDeployments do not match the pool configuration: p-00001")
	s.want("entries", s.entries("p"), "a ToBeDeleted 3 p-00001, b Reserved 3 p-00002")
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "p-00001", Name: "p-00001"}}
	s.get(cd)
	if cd.DeletionTimestamp == nil {
		t.Error("the unclaimed cluster of the entry that was taken off stays, while another is installed")
	}
	if cd.Spec.PowerState == hivev1.PowerRunning {
		t.Error("it is woken for the claim that waits")
	}
}

func TestANameWithoutACustomizationIsDropped(t *testing.T) {
	a := named("a", "one")
	s := newShelf(t, listing(1, "a"), a)
	p := newPool(0, 0)
	s.get(p)
	p.Status.Pending = []string{"p-x"}
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{"a": {
		Status: hivev1.InventoryReserved, Attempts: 3, ClusterDeployment: &hivev1.ClusterDeploymentReference{Name: "p-x", Namespace: "p-x"},
	}}
	s.get(a)
	lease.Acquire(a, types.NamespacedName{Namespace: "q-1", Name: "q-1"}, types.NamespacedName{Namespace: "pools", Name: "q"}, noon, "")
	if err := errors.Join(s.Status().Update(t.Context(), p), s.Status().Update(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	s.keep("p", 2)
	s.get(p)
	s.want("entries", s.entries("p"), "a Unavailable 3")
	if len(p.Status.Pending) > 0 || s.clusters() != "" {
		t.Errorf("recorded are %v, made %s", p.Status.Pending, s.clusters())
	}
}

// A race for a customization has one winner: the other gets a conflict, and makes nothing.
func TestTheLoserOfARaceMakesNothing(t *testing.T) {
	a := named("a", "one")
	s := newShelf(t, listing(1, "a"), a)
	p := newPool(0, 0)
	s.get(p)
	p.Status.Pending = []string{"p-x"}
	p.Status.Inventory = map[string]hivev1.InventoryEntryStatus{"a": {
		Status: hivev1.InventoryReserved, Attempts: 3, ClusterDeployment: &hivev1.ClusterDeploymentReference{Name: "p-x", Namespace: "p-x"},
	}}
	if err := s.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	stale := &behind{Client: s.Client, shows: a.DeepCopy()}
	s.get(stale.shows)
	s.get(a)
	lease.Acquire(a, types.NamespacedName{Namespace: "q-1", Name: "q-1"}, types.NamespacedName{Namespace: "pools", Name: "q"}, noon, "")
	if err := s.Status().Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.pools.Client = stale
	if _, err := s.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
		t.Fatal(err) // a conflict is tried again, it is no error
	}
	s.want("who has a", s.holder(a), "q-1")
	s.want("clusters", s.clusters(), "")
}

// behind is a cache that shows a customization as it was.
type behind struct {
	client.Client
	shows *hivev1.ClusterDeploymentCustomization
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if c, ok := o.(*hivev1.ClusterDeploymentCustomization); ok && key == client.ObjectKeyFromObject(b.shows) {
		b.shows.DeepCopyInto(c)
		return nil
	}
	return b.Client.Get(ctx, key, o, opts...)
}
