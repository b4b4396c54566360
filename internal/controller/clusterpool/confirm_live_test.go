package clusterpool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/crashtest/chaos"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// cached are the kinds that processes have caches of.
var cached = []client.Object{
	&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}, &hivev1.ClusterImageSet{}, &corev1.Namespace{},
	&rbacv1.Role{}, &rbacv1.RoleBinding{}, &hivev1.ClusterDeploymentCustomization{},
	&v1alpha1.PoolPolicy{}, &v1alpha1.ClusterBootstrap{}, &v1alpha1.ClaimSet{},
}

// allKinds are all kinds that the API has.
var allKinds = append([]client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}, cached...)

// lab is a pool of one cluster, made and seen, and a cache that was shown the pool
// as it is now, but no cluster.
type lab struct {
	t     *testing.T
	clock *clocktesting.FakePassiveClock
	store *chaos.Store
	view  *chaos.View
	pools *clusterpool.Reconciler
	pool  *hivev1.ClusterPool
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, clock: clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), pool: newPool(1, 0)}
	l.store = chaos.New(newScheme(t), l.clock, allKinds...)
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}}, imageSet(), l.pool} {
		if err := l.store.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	l.restart()
	l.view.ShowAllWrites()
	l.pass()
	l.view.ShowAllWrites()
	l.pass()
	if l.clusters() != 1 {
		t.Fatalf("%d clusters", l.clusters())
	}
	return l
}

// restart starts another process, whose cache is empty but for image sets.
func (l *lab) restart() {
	l.t.Helper()
	var ix chaos.Indexes
	if err := clusterpool.AddIndexes(l.t.Context(), &ix); err != nil {
		l.t.Fatal(err)
	}
	l.view = l.store.NewView(&ix)
	l.view.ShowNextWrites(&hivev1.ClusterImageSet{}, 9)
	serial := l.store.CountWrites()
	l.pools = &clusterpool.Reconciler{
		Client: withoutDestruction{l.view.NewClient()}, Live: l.store.NewClient(), Clock: l.clock, Events: &events.FakeRecorder{},
		Suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) },
	}
}

// withoutDestruction creates clusters whose deletion ends at once: package provision, which destroys
// them, does not run.
type withoutDestruction struct{ client.Client }

func (d withoutDestruction) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	controllerutil.RemoveFinalizer(o, hivev1.FinalizerDeprovision)
	return d.Client.Create(ctx, o, opts...)
}

func (l *lab) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(l.pool)}
}

func (l *lab) pass() {
	l.t.Helper()
	if _, err := l.pools.Reconcile(l.t.Context(), l.request()); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) clusters() int { return len(l.store.ListSharedObjects(&hivev1.ClusterDeployment{})) }

func (l *lab) stored() *hivev1.ClusterPool {
	p, _ := l.store.GetSharedObject(l.pool, client.ObjectKeyFromObject(l.pool)).(*hivev1.ClusterPool)
	return p
}

// edit changes the pool as a user does; no cache shows it yet.
func (l *lab) edit(change func(*hivev1.ClusterPoolSpec)) {
	l.t.Helper()
	before := l.stored().DeepCopy()
	after := before.DeepCopy()
	change(&after.Spec)
	if err := l.store.NewClient().Patch(l.t.Context(), after, client.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
}

// counter counts lists.
type counter struct {
	client.Reader
	lists int
}

func (c *counter) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	c.lists++
	return c.Reader.List(ctx, into, opts...)
}

func TestAProcessAsksOnceForAPoolsClusters(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 30 }) // in batches, which the cache does not show
	l.restart()
	live := &counter{Reader: l.store.NewClient()}
	l.pools.Live = live
	l.view.ShowAllWrites()
	for range 6 {
		l.pass()
		l.view.ShowNextWrites(l.pool, 99)
	}
	if n := l.clusters(); n != 30 || live.lists != 1 {
		t.Errorf("%d clusters made with %d lists, want 30 with 1", n, live.lists)
	}
	for _, o := range l.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		cd := o.DeepCopyObject().(*hivev1.ClusterDeployment)
		l.store.EditObject(t.Context(), cd, func() { cd.Spec.Installed, cd.Status.PowerState = true, hivev1.StatusRunning })
	}
	for i := range 5 { // each is served, and replaced
		if err := l.store.Create(t.Context(), claim(fmt.Sprint("x", i))); err != nil {
			t.Fatal(err)
		}
		l.view.ShowAllWrites()
		l.pass()
	}
	if live.lists != 1 {
		t.Errorf("claims took %d lists more", live.lists-1)
	}
}

func TestANewProcessThatDoesNotSeeAClusterYetMakesNoOther(t *testing.T) {
	l := newLab(t)
	l.restart()
	l.view.ShowNextWrites(l.pool, 99)
	l.pass()
	if n, p := l.clusters(), l.stored().Status.Pending; n != 1 || len(p) > 0 {
		t.Errorf("%d clusters, and %v recorded", n, p)
	}
}

func TestAClusterThatTheCacheDoesNotShowForLongIsNotMadeAgain(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 2 })
	for range 5 {
		l.view.ShowNextWrites(l.pool, 99) // the watch of clusters hangs
		l.pass()
		l.clock.SetTime(l.clock.Now().Add(time.Minute))
	}
	if n := l.clusters(); n != 2 {
		t.Errorf("%d clusters, want 2", n)
	}
}

func TestAPoolDoesNotGoBeforeAClusterThatTheCacheDoesNotShow(t *testing.T) {
	l := newLab(t)
	if err := l.store.Delete(t.Context(), l.pool, nil); err != nil {
		t.Fatal(err)
	}
	l.restart()
	l.view.ShowNextWrites(l.pool, 99)
	l.pass()
	if l.stored() == nil {
		t.Fatal("the pool is gone, and its cluster is left")
	}
	for range 3 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if l.stored() != nil || l.clusters() > 0 {
		t.Errorf("%d clusters, pool %+v", l.clusters(), l.stored())
	}
}

// A claim was given a cluster, deleted before it was told of it, and made again
// with the same name on another pool.
func TestAClaimOfTheSameNameOnAnotherPoolHoldsNoCluster(t *testing.T) {
	l := newLab(t)
	other := claim("x").(*hivev1.ClusterClaim)
	other.Spec.ClusterPoolName = "another"
	if err := l.store.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	given := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
	l.store.EditObject(t.Context(), given, func() { given.Spec.ClusterPoolRef.ClaimName = "x" })
	passes := func() {
		for range 3 {
			l.view.ShowAllWrites()
			l.pass()
		}
	}
	passes()
	if l.store.GetSharedObject(given, client.ObjectKeyFromObject(given)) == nil {
		t.Fatal("the cluster is gone at once: somebody may be using it")
	}
	missing := condition.Find(l.stored().Status.Conditions, hivev1.PoolClaimsMissing)
	if missing == nil || missing.Status != corev1.ConditionTrue || !strings.Contains(missing.Message, given.Name+" (claim x)") {
		t.Errorf("the pool says %+v of it", missing)
	}
	l.clock.SetTime(l.clock.Now().Add(10 * time.Minute))
	passes()
	if l.store.GetSharedObject(given, client.ObjectKeyFromObject(given)) != nil {
		t.Error("the cluster is there, and nobody will ever have it")
	}
	if c := condition.Find(l.stored().Status.Conditions, hivev1.PoolClaimsMissing); c == nil || c.Status != corev1.ConditionFalse {
		t.Errorf("the pool says %+v when it is gone", c)
	}
}

// A claim went with its cluster, and was made again under its name. The cache shows
// the new claim, and still the old cluster.
func TestAClaimIsNotToldOfAClusterThatIsGone(t *testing.T) {
	l := newLab(t)
	given := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
	l.store.EditObject(t.Context(), given, func() { given.Spec.ClusterPoolRef.ClaimName = "x" })
	l.view.ShowAllWrites()
	if err := l.store.Delete(t.Context(), given, nil); err != nil {
		t.Fatal(err)
	}
	again := claim("x")
	if err := l.store.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	l.view.ShowNextWrites(again, 1)
	l.pass()
	got := l.store.GetSharedObject(again, client.ObjectKeyFromObject(again)).(*hivev1.ClusterClaim)
	if got.Spec.Namespace != "" {
		t.Errorf("it was told of %s", got.Spec.Namespace)
	}
}

// A cluster was given away, and its claim told, by a process that is no leader any more.
// The next one's cache shows the cluster, but not the claim, for longer than a pool keeps a cluster whose claim is missing.
func TestAClusterIsNotTakenFromAClaimThatTheCacheDoesNotShow(t *testing.T) {
	l := newLab(t)
	given := l.given("x")
	c := claim("x").(*hivev1.ClusterClaim)
	c.Spec.Namespace = given.Name
	if err := l.store.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	l.restart()
	exists := func() bool {
		for range 3 {
			l.view.ShowNextWrites(l.pool, 99)
			l.view.ShowNextWrites(given, 99)
			l.pass()
			l.clock.SetTime(l.clock.Now().Add(10 * time.Minute))
		}
		left, _ := l.store.GetSharedObject(given, client.ObjectKeyFromObject(given)).(*hivev1.ClusterDeployment)
		return left != nil && left.DeletionTimestamp == nil
	}
	if !exists() {
		t.Fatal("the cluster is gone, and its claim is not")
	}
	if err := l.store.Delete(t.Context(), c, nil); err != nil {
		t.Fatal(err)
	}
	if exists() {
		t.Error("the claim is gone, and its cluster is not")
	}
}

// A pool is made smaller. Before the next process sees it, the cluster that is now one
// too many was given away.
func TestAClusterIsDestroyedOnlyAsItWasSeen(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 0 })
	l.restart()
	l.view.ShowAllWrites()
	given := l.given("x") // which the cache does not show
	l.pass()
	if l.store.GetSharedObject(given, client.ObjectKeyFromObject(given)) == nil {
		t.Fatal("the cluster is gone, and had been given to a claim")
	}
}

// given is the lab's cluster, given to a claim.
func (l *lab) given(name string) *hivev1.ClusterDeployment {
	l.t.Helper()
	cd := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
	l.store.EditObject(l.t.Context(), cd, func() { cd.Spec.ClusterPoolRef.ClaimName = name })
	return cd
}

// A process has recorded a name and made nothing of it yet. Another leads, lets the pool
// go, and stops. What the first one's cache shows of the pool is its own last write.
func TestNothingIsMadeForAPoolThatAnotherProcessLetGo(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 2 })
	l.view.ShowAllWrites()
	whole := l.pools.Client
	l.pools.Client = barren{whole}
	if _, err := l.pools.Reconcile(t.Context(), l.request()); err == nil {
		t.Fatal("a cluster was made")
	}
	l.view.ShowNextWrites(l.pool, 99)
	first, view := l.pools, l.view
	if err := l.store.Delete(t.Context(), l.pool, nil); err != nil {
		t.Fatal(err)
	}
	l.restart()
	for range 3 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if l.stored() != nil || l.clusters() > 0 {
		t.Fatalf("%d clusters, pool %+v", l.clusters(), l.stored())
	}
	l.pools, l.view = first, view
	l.pools.Client = whole
	l.pass()
	if n := l.clusters(); n > 0 {
		t.Errorf("%d clusters of a pool that is gone", n)
	}
}

// barren makes no clusters.
type barren struct{ client.Client }

func (b barren) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, ok := o.(*hivev1.ClusterDeployment); ok {
		return errors.New("the API server is not there")
	}
	return b.Client.Create(ctx, o, opts...)
}

// Somebody deletes a cluster. The next process's cache still shows it as it was, and the
// list by which that process makes sure of the pool's clusters shows it going.
func TestAClusterThatGoesUnseenCountsAgainstMaxConcurrent(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size, p.MaxConcurrent = 2, ptr.To[int32](1) })
	cd := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
	l.store.EditObject(t.Context(), cd, func() {
		cd.Spec.Installed, cd.Status.PowerState, cd.Finalizers = true, hivev1.StatusRunning, []string{hivev1.FinalizerDeprovision}
	})
	l.restart()
	l.view.ShowAllWrites()
	if err := l.store.Delete(t.Context(), cd, nil); err != nil {
		t.Fatal(err)
	}
	l.pass()
	if n := l.clusters(); n != 1 {
		t.Errorf("%d clusters: one goes and another is made, maxConcurrent is 1", n)
	}
}

// A user who may create a ClusterDeployment can give it the labels of any pool, or name any pool in its spec.
func TestClustersOfOthersDoNotStopAPool(t *testing.T) {
	l := newLab(t)
	labels := map[string]string{hivev1.LabelPoolNamespace: "pools", hivev1.LabelPoolName: l.pool.Name}
	labeled := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "eve", Name: "labeled", Labels: labels}}
	named := labeled.DeepCopy()
	named.Name = "named"
	named.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{Namespace: "pools", PoolName: l.pool.Name}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "eve"}}, labeled, named} {
		if err := l.store.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 2 })
	l.restart()
	for range 3 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if n := l.clusters(); n != 4 {
		t.Errorf("there are %d clusters, want two of the pool beside two others", n)
	}
	if err := l.store.Delete(t.Context(), l.pool, nil); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if l.stored() != nil || l.clusters() != 2 {
		t.Errorf("the pool is %+v, and there are %d clusters", l.stored(), l.clusters())
	}
}

// A cluster that was stored under another schema may lack the reference to its pool.
func TestAClusterWithoutAReadablePoolCountsAsASpare(t *testing.T) {
	l := newLab(t)
	cd := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
	l.store.EditObject(t.Context(), cd, func() { cd.Spec.ClusterPoolRef, cd.Unreadable = nil, "spec.clusterPoolRef: 1 is not an object" })
	l.restart()
	for range 3 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if n, plan := l.clusters(), l.stored().Status.Plan; n != 1 || !strings.Contains(plan, cd.Name) {
		t.Errorf("there are %d clusters, and the plan is %q", n, plan)
	}
}

// forbidding is a client of a hub that refuses namespaces while it has a message.
type forbidding struct {
	client.Client
	message *string
}

func (f forbidding) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if _, isNamespace := o.(*corev1.Namespace); isNamespace && *f.message != "" {
		return apierrors.NewForbidden(corev1.Resource("namespaces"), o.GetName(), errors.New(*f.message))
	}
	return f.Client.Create(ctx, o, opts...)
}

func TestAPoolSaysWhatTheHubRefuses(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 2 })
	for _, o := range l.store.ListSharedObjects(&hivev1.ClusterDeployment{}) {
		cd := o.DeepCopyObject().(*hivev1.ClusterDeployment)
		l.store.EditObject(t.Context(), cd, func() {
			cd.Spec.Installed, cd.Spec.PowerState, cd.Status.PowerState = true, hivev1.PowerHibernating, hivev1.StatusHibernating
		})
	}
	message := "label team is missing"
	l.pools.Client = forbidding{l.pools.Client, &message}
	for range 2 {
		l.view.ShowAllWrites()
		if _, err := l.pools.Reconcile(t.Context(), l.request()); err == nil {
			t.Fatal("the pass succeeded")
		}
	}
	c := condition.Find(l.stored().Status.Conditions, hivev1.PoolProgressing)
	if c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, message) {
		t.Errorf("the pool says %+v", c)
	}
	writes := l.store.CountWrites()
	l.view.ShowAllWrites()
	if _, err := l.pools.Reconcile(t.Context(), l.request()); err == nil || l.store.CountWrites() != writes {
		t.Errorf("another attempt wrote %d times: %v", l.store.CountWrites()-writes, err)
	}
	message = ""
	for range 2 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if c := condition.Find(l.stored().Status.Conditions, hivev1.PoolProgressing); l.clusters() != 2 || strings.Contains(c.Message, "refuses") {
		t.Errorf("there are %d clusters, and the pool says %+v", l.clusters(), c)
	}
}

// A name that is recorded is known to all who may read the pool. One of them creates its namespace first.
func TestAPoolTakesAnotherNameIfANamespaceIsTaken(t *testing.T) {
	l := newLab(t)
	l.edit(func(p *hivev1.ClusterPoolSpec) { p.Size = 2 })
	l.view.ShowAllWrites()
	whole := l.pools.Client
	message := "the API server is not there yet"
	l.pools.Client = forbidding{whole, &message}
	if _, err := l.pools.Reconcile(t.Context(), l.request()); err == nil {
		t.Fatal("a cluster was made")
	}
	l.pools.Client = whole
	recorded := l.stored().Status.Pending
	if len(recorded) != 1 {
		t.Fatalf("%v are recorded", recorded)
	}
	l.view.ShowAllWrites()
	if err := l.store.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: recorded[0]}}); err != nil {
		t.Fatal(err)
	}
	if result, err := l.pools.Reconcile(t.Context(), l.request()); err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Fatalf("the next pass is in %s: %v", result.RequeueAfter, err)
	}
	for range 3 {
		l.view.ShowAllWrites()
		l.pass()
	}
	if n, p := l.clusters(), l.stored().Status.Pending; n != 2 || len(p) > 0 {
		t.Errorf("there are %d clusters, and %v is recorded", n, p)
	}
}

// What steps refer to is read every five seconds only: a cluster that has begun newer steps than the pool knows is not
// stale.
func TestAClusterWithNewerStepsThanThePoolKnowsIsKept(t *testing.T) {
	l := newLab(t)
	api := l.store.NewClient()
	manifests := func(name string) map[string]string {
		return map[string]string{"a": fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"}}`, name)}
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "steps"}, Data: manifests("one")}
	for _, o := range []client.Object{
		cm,
		&v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "b"}, Spec: v1alpha1.ClusterBootstrapSpec{Steps: []v1alpha1.BootstrapStep{{
			Name: "base", Manifests: &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{{ConfigMapRef: &v1alpha1.ManifestReference{Name: "steps"}}}},
		}}}},
		&v1alpha1.PoolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"}, Spec: v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "b"}}},
	} {
		if err := l.store.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	l.view.ShowAllWrites()
	l.pass() // it reads the steps
	before := cm.DeepCopy()
	cm.Data = manifests("two")
	if err := api.Patch(t.Context(), cm, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	reader := sparerequirements.Reader{Cached: l.view.NewClient(), Live: api}
	required, err := reader.ReadRequirements(t.Context(), client.ObjectKeyFromObject(l.pool), &sparerequirements.Memo{}, l.clock.Now())
	if err != nil || required.Steps.Version == "" {
		t.Fatalf("%+v, %v", required.Steps, err)
	}
	cd := l.store.ListSharedObjects(&hivev1.ClusterDeployment{})[0].DeepCopyObject().(*hivev1.ClusterDeployment)
	was := cd.DeepCopy()
	cd.Spec.Installed, cd.Spec.PowerState = true, hivev1.PowerRunning
	if err := api.Patch(t.Context(), cd, client.MergeFrom(was)); err != nil {
		t.Fatal(err)
	}
	was = cd.DeepCopy()
	cd.Status.PowerState = hivev1.StatusRunning
	cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: required.Steps.Version, Step: "base"}
	if err := api.Status().Patch(t.Context(), cd, client.MergeFrom(was)); err != nil {
		t.Fatal(err)
	}
	l.view.ShowAllWrites()
	for range 3 {
		if _, err := l.pools.Reconcile(t.Context(), l.request()); err != nil {
			t.Logf("%v", err)
		}
		l.view.ShowAllWrites()
	}
	if now, _ := l.store.GetSharedObject(cd, client.ObjectKeyFromObject(cd)).(*hivev1.ClusterDeployment); now == nil || now.DeletionTimestamp != nil {
		t.Error("the pool has deleted it")
	}
}
