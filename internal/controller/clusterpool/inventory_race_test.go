package clusterpool_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/inventory/lease"
)

// A process died between the Secret of a cluster and the cluster; then the customization
// was edited, or another one was taken. What is made then is not made from the old Secret.
func TestAClusterIsMadeFromItsOwnInstallConfig(t *testing.T) {
	a := named("a", "one")
	s := newShelf(t, listing(1, "a"), a)
	died := errors.New("died")
	s.pools.Client = &mortal{Client: s.Client, err: died}
	key := types.NamespacedName{Namespace: "pools", Name: "p"}
	if _, err := s.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); !errors.Is(err, died) {
		t.Fatalf("it made the cluster: %v", err)
	}
	s.pools.Client = s.Client
	s.get(a)
	a.Spec.InstallConfigPatches[0].Value.Raw = []byte(`"two"`)
	if err := s.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.keep("p", 2)
	s.want("clusters", s.clusters(), "p-00001 of a as two.example.com")
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "p-00001", Name: "p-00001"}}
	s.get(cd)
	if raw := s.installConfig(cd); !strings.Contains(raw, "name: two") {
		t.Errorf("it is made from an older install-config:\n%s", raw)
	}
}

// mortal makes no clusters.
type mortal struct {
	client.Client
	err error
}

func (m *mortal) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, ok := o.(*hivev1.ClusterDeployment); ok {
		return m.err
	}
	return m.Client.Create(ctx, o, opts...)
}

// Of two pools with different errors for a customization, only one reports its error, and they do
// not overwrite each other forever.
func TestTwoPoolsDoNotQuarrelOverWhyACustomizationDoesNotApply(t *testing.T) {
	a := named("a", "one")
	word := &runtime.RawExtension{Raw: []byte(`"example.com"`)}
	a.Spec.InstallConfigPatches = []hivev1.PatchEntity{{Op: "test", Path: "/baseDomain", Value: word}, {Op: "remove", Path: "/nowhere"}}
	q := listing(1, "a")
	q.Name, q.Spec.BaseDomain = "q", "example.org"
	s := newShelf(t, listing(1, "a"), q, a)
	s.keep("p", 1)
	s.keep("q", 1)
	s.get(a)
	told := lease.FindCondition(a, hivev1.CustomizationApplySucceeded)
	if told.Reason != hivev1.ReasonBrokenBySyntax || !strings.HasPrefix(told.Message, "pool p: ") || !strings.Contains(told.Message, "nowhere") {
		t.Errorf("it says %s: %s", told.Reason, told.Message)
	}
	version := a.ResourceVersion
	for range 3 {
		s.keep("p", 1)
		s.keep("q", 1)
	}
	if s.get(a); a.ResourceVersion != version {
		t.Error("they write it again and again")
	}

	t.Log("edited, it is told anew")
	a.Spec.InstallConfigPatches[1].Path = "/elsewhere"
	a.Generation++ // an API server would
	if err := s.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.keep("q", 1)
	s.get(a)
	if told := lease.FindCondition(a, hivev1.CustomizationApplySucceeded); !strings.HasPrefix(told.Message, "pool q: ") {
		t.Errorf("it says %s", told.Message)
	}
}

// A cache that is behind shows a new cluster's customization as held by the one before:
// that makes no second cluster in its place.
func TestAClusterThatOnlySeemsDisplacedIsNotReplaced(t *testing.T) {
	a, b := named("a", "one"), named("b", "two")
	s := newShelf(t, listing(1, "a", "b"), a, b)
	s.keep("p", 2)
	s.get(a)
	stale := &behind{Client: s.Client, shows: a.DeepCopy()}
	lease.Acquire(stale.shows, types.NamespacedName{Namespace: "p-0", Name: "p-0"}, types.NamespacedName{Namespace: "pools", Name: "p"}, noon, "")
	stale.shows.ResourceVersion = "1"
	p := nextPools(s, stale)
	if _, err := p.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "pools", Name: "p"}}); err != nil {
		t.Fatal(err)
	}
	s.want("clusters", s.clusters(), "p-00001 of a as one.example.com")
	s.want("who has b", s.holder(b), "")
}

// A cache that is behind shows a cluster that failed and was counted before the one that
// failed last: it is not counted again. Nor does one that was installed forgive anything.
func TestAClusterThatIsGoneIsNotCounted(t *testing.T) {
	for name, ghost := range map[string]func(*hivev1.ClusterDeployment){
		"failed": func(cd *hivev1.ClusterDeployment) {
			condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionStopped, "True", "InstallAttemptsLimitReached", "", noon)
		},
		"installed": func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, listing(1, "a"), named("a", "one"))
			s.keep("p", 2)
			cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "p-00001", Name: "p-00001"}}
			s.get(cd)
			shown := cd.DeepCopy()
			shown.Namespace, shown.Name, shown.UID = "p-00000", "p-00000", "of one from before"
			ghost(shown)
			if err := s.Delete(t.Context(), cd); err != nil {
				t.Fatal(err)
			}
			p := listing(0, "a")
			s.get(p)
			e := p.Status.Inventory["a"]
			e.Attempts, e.Failed = 1, "p-00001"
			p.Status.Inventory["a"], p.Status.Pending = e, nil
			if err := s.Status().Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			next := nextPools(s, &haunted{Client: s.Client, ghost: shown})
			if _, err := next.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p)}); err != nil {
				t.Fatal(err)
			}
			s.want("the books", s.entries("p"), "a Unavailable 1") // its lease has yet to end
		})
	}
}

// haunted is a cache that shows a cluster which is gone, and no other.
type haunted struct {
	client.Client
	ghost *hivev1.ClusterDeployment
}

func (h *haunted) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if l, ok := list.(*hivev1.ClusterDeploymentList); ok {
		l.Items = []hivev1.ClusterDeployment{*h.ghost.DeepCopy()}
		return nil
	}
	return h.Client.List(ctx, list, opts...)
}

// The customization of a recorded name was taken off the list, and does not apply any
// longer: nothing can be made with it, and the name takes another one.
func TestANameWhoseCustomizationWasTakenOffAndBrokenTakesAnother(t *testing.T) {
	a, b := named("a", "one"), named("b", "two")
	s := newShelf(t, listing(1, "a"), a, b)
	s.pools.Client = &mortal{Client: s.Client, err: errors.New("died")}
	key := types.NamespacedName{Namespace: "pools", Name: "p"}
	if _, err := s.pools.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		t.Fatal("it made the cluster")
	}
	s.pools.Client = s.Client
	p := newPool(0, 0)
	s.get(p)
	s.get(a)
	p.Spec.Inventory[0].Name = "b"
	a.Spec.InstallConfigPatches[0].Path = "/metadata/nowhere"
	if err := errors.Join(s.Update(t.Context(), p), s.Update(t.Context(), a)); err != nil {
		t.Fatal(err)
	}
	s.keep("p", 2)
	s.want("clusters", s.clusters(), "p-00001 of b as two.example.com")
}

// Another process dropped the name after this one had looked: what it takes is not used.
func TestANameThatWasDroppedIsNotMade(t *testing.T) {
	a := named("a", "one")
	s := newShelf(t, listing(1, "a"), a)
	late := nextPools(s, &dropper{Client: s.Client, drop: func() {
		p := newPool(0, 0)
		s.get(p)
		p.Status.Pending, p.Status.Inventory = nil, nil
		if err := s.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}})
	if _, err := late.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "pools", Name: "p"}}); err != nil {
		t.Fatal(err) // a conflict is tried again, it is no error
	}
	s.want("who has a", s.holder(a), "p-00001")
	s.want("clusters", s.clusters(), "")
}

// dropper calls drop when the first customization is held.
type dropper struct {
	client.Client
	drop func()
}

func (d *dropper) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if _, ok := o.(*hivev1.ClusterDeploymentCustomization); ok {
		d.drop()
	}
	return d.Client.Patch(ctx, o, p, opts...)
}

// nextPools is the controller of another process, with that cache.
func nextPools(s *shelf, cache client.Client) *clusterpool.Reconciler {
	return &clusterpool.Reconciler{Client: cache, Live: s.Client, Clock: s.clock, Events: s.pools.Events, Suffix: s.pools.Suffix}
}
