package chaos_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

var (
	seed = flag.Uint64("chaos.seed", 0, "seed of the random calls; 0 takes one from the clock")
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), hivev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

func newStore(t *testing.T) *chaos.Store {
	t.Helper()
	return chaos.New(newScheme(t), clocktesting.NewFakePassiveClock(noon),
		&corev1.Namespace{}, &corev1.Secret{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{})
}

// both is the same API twice: a Store, and the fake client of controller-runtime.
type both struct {
	t    *testing.T
	apis [2]client.Client
	// read contains claims as each API returned them at some time.
	read          [][2]*hivev1.ClusterClaim
	serial, names int
}

// TestTheStoreAnswersAsTheFakeClientDoes makes the same random calls to both, many of them on
// objects that were read long ago, and compares each answer and the stored result. It leaves out
// what the fake client does not support: generations, namespaces, and preconditions on the UID.
func TestTheStoreAnswersAsTheFakeClientDoes(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-chaos.seed=%d", s)
	r := rand.New(rand.NewPCG(s, 1))
	for range 3 {
		store := newStore(t)
		b := &both{t: t, apis: [2]client.Client{
			store.NewClient(), fake.NewClientBuilder().WithScheme(newScheme(t)).WithStatusSubresource(&hivev1.ClusterClaim{}).Build(),
		}}
		b.do("create", func(_ int, c client.Client) error {
			return c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		})
		for range 150 {
			b.call(r)
			b.compare()
			if t.Failed() {
				return
			}
		}
	}
}

func (b *both) do(what string, call func(i int, c client.Client) error) {
	b.t.Helper()
	var got [2]string
	for i, c := range b.apis {
		if err := call(i, c); err != nil {
			got[i] = string(apierrors.ReasonForError(err))
		}
	}
	if got[0] != got[1] {
		b.t.Errorf("%s: the store answers %q, the fake client %q", what, got[0], got[1])
	}
}

func (b *both) call(r *rand.Rand) {
	ctx := b.t.Context()
	b.serial++
	value := fmt.Sprint(b.serial)
	// Names are not reused: the versions that the fake client gives to the second object of a name
	// start where those of the first did.
	key := types.NamespacedName{Namespace: "n", Name: fmt.Sprintf("c%d", b.names-r.IntN(4))}
	switch r.IntN(6) {
	case 0:
		key.Name = fmt.Sprintf("c%d", b.names)
		if r.IntN(2) == 0 || b.apis[0].Get(ctx, key, &hivev1.ClusterClaim{}) != nil {
			b.names++
			key.Name = fmt.Sprintf("c%d", b.names)
		}
		b.do("create", func(_ int, c client.Client) error {
			claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			claim.Spec.ClusterPoolName = value
			if b.serial%2 == 0 {
				claim.Finalizers = []string{"example.com/a"}
			}
			return c.Create(ctx, claim)
		})
	case 1, 2:
		var now [2]*hivev1.ClusterClaim
		b.do("get", func(i int, c client.Client) error {
			now[i] = &hivev1.ClusterClaim{}
			return c.Get(ctx, key, now[i])
		})
		if now[0].Name != "" && now[1].Name != "" {
			b.read = append(b.read, now)
		}
	default:
		if len(b.read) > 0 {
			b.write(r, b.read[max(0, len(b.read)-1-r.IntN(6))], value)
		}
	}
}

// write writes an object based on an earlier read.
func (b *both) write(r *rand.Rand, read [2]*hivev1.ClusterClaim, value string) {
	ctx := b.t.Context()
	lock := r.IntN(4) > 0
	patch := func(i int) client.Patch {
		if lock {
			return client.MergeFromWithOptions(read[i], client.MergeFromWithOptimisticLock{})
		}
		return client.MergeFrom(read[i])
	}
	kind := r.IntN(4)
	var now hivev1.ClusterClaim
	if b.apis[0].Get(ctx, client.ObjectKeyFromObject(read[0]), &now) == nil && now.DeletionTimestamp != nil && kind == 3 {
		return // the fake client creates another version when it deletes again
	}
	b.do(fmt.Sprintf("write %d, lock %t", kind, lock), func(i int, c client.Client) error {
		o := read[i].DeepCopy()
		switch kind {
		case 0:
			o.Spec.Namespace = value
			if o.Spec.Lifetime == nil {
				o.Spec.Lifetime = new(hivev1.Duration)
			} else {
				o.Spec.Lifetime = nil
			}
			metav1.SetMetaDataLabel(&o.ObjectMeta, "l", value)
			o.Status.Conditions = []hivev1.Condition{{Type: "dropped"}}
			return c.Patch(ctx, o, patch(i))
		case 1:
			o.Spec.ClusterPoolName = "dropped"
			o.Status.Conditions = []hivev1.Condition{{Type: value}}
			return c.Status().Patch(ctx, o, patch(i))
		case 2:
			metav1.SetMetaDataLabel(&o.ObjectMeta, "l", value)
			if o.DeletionTimestamp != nil || len(o.Finalizers) > 0 {
				controllerutil.RemoveFinalizer(o, "example.com/a")
			}
			return c.Patch(ctx, o, patch(i))
		default:
			if lock {
				return c.Delete(ctx, o, client.Preconditions{ResourceVersion: &o.ResourceVersion})
			}
			return c.Delete(ctx, o)
		}
	})
}

func (b *both) compare() {
	b.t.Helper()
	var lists [2]hivev1.ClusterClaimList
	b.do("list", func(i int, c client.Client) error {
		err := c.List(b.t.Context(), &lists[i], client.InNamespace("n"))
		for j := range lists[i].Items {
			o := &lists[i].Items[j]
			o.TypeMeta, o.ResourceVersion, o.UID, o.CreationTimestamp, o.Generation, o.ManagedFields = metav1.TypeMeta{}, "", "", metav1.Time{}, 0, nil
			if o.DeletionTimestamp != nil {
				o.DeletionTimestamp = &metav1.Time{}
			}
		}
		return err
	})
	if diff := cmp.Diff(lists[1].Items, lists[0].Items); diff != "" {
		b.t.Errorf("after call %d the fake client (-) and the store (+) have\n%s", b.serial, diff)
	}
}

func TestGenerationsCountChangesOfTheSpec(t *testing.T) {
	s := newStore(t)
	c := s.NewClient()
	claim := made(t, c, "")
	step := func(want int64, change func(), write func(client.Patch) error) {
		t.Helper()
		before, version := claim.DeepCopy(), claim.ResourceVersion
		change()
		if err := write(client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		if claim.Generation != want {
			t.Errorf("generation %d, want %d", claim.Generation, want)
		}
		if claim.ResourceVersion == version {
			t.Error("the version is the same")
		}
	}
	object := func(p client.Patch) error { return c.Patch(t.Context(), claim, p) }
	status := func(p client.Patch) error { return c.Status().Patch(t.Context(), claim, p) }
	step(2, func() { claim.Spec.Namespace = "a" }, object)
	step(2, func() { claim.Labels = map[string]string{"a": "b"} }, object)
	step(2, func() { claim.Status.Conditions = []hivev1.Condition{{Type: "x"}} }, status)
	version := claim.ResourceVersion
	if err := c.Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, []byte(`{}`))); err != nil || claim.ResourceVersion != version {
		t.Errorf("a write that changes nothing makes another version: %v", err)
	}
}

// made creates a claim, optionally with a finalizer.
func made(t *testing.T, c client.Client, finalizer string) *hivev1.ClusterClaim {
	t.Helper()
	claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}}
	if finalizer != "" {
		claim.Finalizers = []string{finalizer}
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if err := c.Create(t.Context(), claim); !apierrors.IsNotFound(err) {
		t.Fatalf("a claim in a namespace that does not exist: %v", err)
	}
	if err := errors.Join(c.Create(t.Context(), space), c.Create(t.Context(), claim)); err != nil {
		t.Fatal(err)
	}
	return claim
}

func TestANamespaceGoesWithWhatIsInIt(t *testing.T) {
	s := newStore(t)
	c := s.NewClient()
	claim := made(t, c, "example.com/a")
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}}
	if err := errors.Join(c.Create(t.Context(), secret.DeepCopy()), c.Delete(t.Context(), space)); err != nil {
		t.Fatal(err)
	}
	err := c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "late"}})
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a Secret in a namespace that is being deleted: %v", err)
	}
	if !s.SweepNamespace(t.Context(), "n") || s.SweepNamespace(t.Context(), "n") {
		t.Error("a finalizer holds what is left, once the rest is gone")
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || claim.DeletionTimestamp == nil {
		t.Fatalf("the claim: %+v, %v", claim, err)
	}
	before := claim.DeepCopy()
	claim.Finalizers = append(claim.Finalizers, "example.com/b")
	if err := c.Patch(t.Context(), claim, client.MergeFrom(before)); !apierrors.IsInvalid(err) {
		t.Errorf("a new finalizer on what is being deleted: %v", err)
	}
	claim.Finalizers = nil
	if err := c.Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if !s.SweepNamespace(t.Context(), "n") || len(s.ListSharedObjects(space)) > 0 {
		t.Error("the namespace is still there")
	}
}

func TestAnotherObjectOfTheSameNameIsNotDeleted(t *testing.T) {
	c := newStore(t).NewClient()
	claim, other := made(t, c, ""), types.UID("other")
	if err := c.Delete(t.Context(), claim, client.Preconditions{UID: &other}); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if err := c.Delete(t.Context(), claim, client.Preconditions{UID: &claim.UID}); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestAViewShowsWhatItWasShown(t *testing.T) {
	s := newStore(t)
	var ix chaos.Indexes
	like := &hivev1.ClusterClaim{}
	if err := ix.IndexField(t.Context(), like, "pool", func(o client.Object) []string {
		return []string{o.(*hivev1.ClusterClaim).Spec.ClusterPoolName}
	}); err != nil {
		t.Fatal(err)
	}
	v := s.NewView(&ix)
	claim := made(t, v.NewClient(), "")
	before := claim.DeepCopy()
	claim.Spec.ClusterPoolName = "p"
	if err := errors.Join(v.NewClient().Patch(t.Context(), claim, client.MergeFrom(before)), v.NewClient().Delete(t.Context(), claim)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 0, 1, 0} {
		var list hivev1.ClusterClaimList
		if err := v.NewClient().List(t.Context(), &list, client.MatchingFields{"pool": "p"}); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != want || v.CountUnseenWrites(like) != 3-i {
			t.Errorf("after %d writes: %d claims on p, want %d; behind by %d", i, len(list.Items), want, v.CountUnseenWrites(like))
		}
		v.ShowNextWrites(like, 1)
	}
}

func TestPatchesOfAnyFieldAreAsTheFakeClients(t *testing.T) {
	b := &both{t: t, apis: [2]client.Client{newStore(t).NewClient(), fake.NewClientBuilder().WithScheme(newScheme(t)).Build()}}
	about := metav1.ObjectMeta{Namespace: "n", Name: "s", Labels: map[string]string{"l": "x"}}
	b.do("create", func(_ int, c client.Client) error {
		return errors.Join(c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}}),
			c.Create(t.Context(), &corev1.Secret{ObjectMeta: *about.DeepCopy(), Data: map[string][]byte{"a": []byte("a")}}))
	})
	for _, patch := range []string{
		`{"data":{"b":"Yg==","c":"Yw=="}}`, `{"data":{"b":null,"none":null}}`, `{"type":"t"}`, `{"immutable":true}`, `{"immutable":null,"type":null}`,
		`{"metadata":{"labels":{"m":"y"}},"data":{"c":"ZA=="}}`, `{"metadata":{"labels":{"l":null}}}`, `{"metadata":{"labels":null}}`,
		`{"metadata":{"finalizers":["example.com/a"]}}`, `{"metadata":{"finalizers":null}}`, `{"nonsense":{"a":1}}`, `{"data":null}`, `{}`,
	} {
		b.do(patch, func(_ int, c client.Client) error {
			return c.Patch(t.Context(), &corev1.Secret{ObjectMeta: about}, client.RawPatch(types.MergePatchType, []byte(patch)))
		})
		var now [2]corev1.Secret
		b.do("get", func(i int, c client.Client) error {
			err := c.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "s"}, &now[i])
			now[i].TypeMeta, now[i].ResourceVersion, now[i].UID, now[i].CreationTimestamp, now[i].Generation = metav1.TypeMeta{}, "", "", metav1.Time{}, 0
			return err
		})
		if diff := cmp.Diff(now[1], now[0]); diff != "" {
			t.Errorf("after %s the fake client (-) and the store (+) have\n%s", patch, diff)
		}
	}
	for _, patch := range []string{`{"data":"x"}`, `{"metadata":{"labels":{"l":1}}}`, `x`} {
		for i, c := range b.apis {
			if err := c.Patch(t.Context(), &corev1.Secret{ObjectMeta: about}, client.RawPatch(types.MergePatchType, []byte(patch))); err == nil {
				t.Errorf("API %d takes %s", i, patch)
			}
		}
	}
}
