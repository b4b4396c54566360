package clusterpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/controller/clusterclaim"
	"hotspare.io/hotspare/internal/controller/clusterpool"
	"hotspare.io/hotspare/internal/controller/customization"
	"hotspare.io/hotspare/internal/controller/namespace"
	"hotspare.io/hotspare/internal/crashtest"
	"hotspare.io/hotspare/internal/crashtest/chaos"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), rbacv1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// stage is a scenario with the controllers of pools, claims and leases, and a world in
// which installs succeed and machines obey at once.
func stage(t *testing.T, acts ...func(context.Context, client.Client) error) crashtest.Scenario {
	t.Helper()
	var ix chaos.Indexes
	if err := errors.Join(clusterpool.AddIndexes(t.Context(), &ix), clusterclaim.AddIndexes(t.Context(), &ix), customization.AddIndexes(t.Context(), &ix)); err != nil {
		t.Fatal(err)
	}
	serial := 0
	w := &watcher{}
	return crashtest.Scenario{
		Scheme:  newScheme(t),
		Kinds:   allKinds,
		Indexes: &ix,
		Acts: append([]func(context.Context, client.Client) error{func(context.Context, client.Client) error {
			*w = watcher{claimOf: map[string]string{}, homes: map[string]bool{}}
			return nil
		}, create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pools"}})}, acts...),
		World:  world,
		Always: w.check,
		Start: func(cached, live client.Client) []crashtest.Controller {
			now := clocktesting.NewFakePassiveClock(time.Now())
			recorder := events.NewFakeRecorder(10000)
			pools := &clusterpool.Reconciler{
				Client: cached, Live: live, Clock: now, Events: recorder,
				Suffix: func() string { serial++; return fmt.Sprintf("%05d", serial) },
			}
			claims := &clusterclaim.Reconciler{Client: cached, Live: live, Clock: now, Events: recorder}
			homes := &namespace.Reconciler{Client: cached, Live: live}
			leases := &customization.Reconciler{Client: cached, Live: live, Clock: now, Events: recorder}
			return []crashtest.Controller{
				every(cached, &hivev1.ClusterPoolList{}, pools), every(cached, &hivev1.ClusterClaimList{}, claims),
				every(cached, &corev1.NamespaceList{}, homes), every(cached, &hivev1.ClusterDeploymentCustomizationList{}, leases),
			}
		},
	}
}

// every reconciles all objects of a list's kind.
func every(c client.Client, list client.ObjectList, r reconcile.Reconciler) crashtest.Controller {
	return func(ctx context.Context) error {
		all := list.DeepCopyObject().(client.ObjectList)
		if err := c.List(ctx, all); err != nil {
			return err
		}
		var errs []error
		for _, key := range keysOf(all) {
			_, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}
}

func keysOf(list client.ObjectList) []client.ObjectKey {
	var out []client.ObjectKey
	switch l := list.(type) {
	case *hivev1.ClusterPoolList:
		for i := range l.Items {
			out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
		}
	case *hivev1.ClusterClaimList:
		for i := range l.Items {
			out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
		}
	case *hivev1.ClusterDeploymentCustomizationList:
		for i := range l.Items {
			out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
		}
	case *corev1.NamespaceList:
		for i := range l.Items {
			out = append(out, client.ObjectKeyFromObject(&l.Items[i]))
		}
	}
	return out
}

// world installs clusters, lets their machines do what they are told, and lets
// destroyed ones go.
func world(ctx context.Context, api client.Client) (bool, error) {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return false, err
	}
	changed := false
	for i := range list.Items {
		cd := &list.Items[i]
		power := hivev1.StatusRunning
		if cd.Spec.PowerState == hivev1.PowerHibernating {
			power = hivev1.StatusHibernating
		}
		var err error
		switch before := cd.DeepCopy(); {
		case cd.DeletionTimestamp != nil:
			if !controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision) {
				continue
			}
			err = api.Patch(ctx, cd, client.MergeFrom(before))
		case !cd.Spec.Installed:
			controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
			cd.Spec.Installed = true
			cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{InfraID: cd.Name}
			err = api.Patch(ctx, cd, client.MergeFrom(before))
		case cd.Status.PowerState != power:
			cd.Status.PowerState = power
			err = api.Status().Patch(ctx, cd, client.MergeFrom(before))
		default:
			continue
		}
		if err != nil {
			return false, err
		}
		changed = true
	}
	return changed, nil
}

// watcher remembers, to see that what may not change does not.
type watcher struct {
	claimOf map[string]string // by cluster
	homes   map[string]bool   // namespaces of clusters
}

func (w *watcher) check(ctx context.Context, api client.Client) error {
	var list hivev1.ClusterDeploymentList
	if err := api.List(ctx, &list); err != nil {
		return err
	}
	clusterOf := map[string]string{}
	var pools hivev1.ClusterPoolList
	if err := api.List(ctx, &pools); err != nil {
		return err
	}
	alive := 0
	for _, cd := range list.Items {
		if cd.DeletionTimestamp == nil && !withdrawn(pools.Items, &cd) {
			alive++
		}
		claim := cd.Spec.ClusterPoolRef.ClaimName
		if was := w.claimOf[cd.Name]; was != "" && was != claim {
			return fmt.Errorf("cluster %s was given to %s and then to %s", cd.Name, was, claim)
		}
		w.claimOf[cd.Name] = claim
		if claim == "" || cd.DeletionTimestamp != nil {
			continue
		}
		if other := clusterOf[claim]; other != "" {
			return fmt.Errorf("claim %s has clusters %s and %s", claim, other, cd.Name)
		}
		clusterOf[claim] = cd.Name
	}
	return errors.Join(enough(ctx, api, alive), w.recorded(ctx, api))
}

// withdrawn reports whether a cluster's entry was taken off its pool's inventory: the
// cluster is deleted after its replacement is begun.
func withdrawn(pools []hivev1.ClusterPool, cd *hivev1.ClusterDeployment) bool {
	ref := cd.Spec.ClusterPoolRef
	for _, p := range pools {
		if p.Name == ref.PoolName && ref.CustomizationRef != nil {
			return len(p.Spec.Inventory) > 0 && !slices.Contains(p.Spec.Inventory.Names(), ref.CustomizationRef.Name)
		}
	}
	return false
}

// recorded: the first thing that is made under a name finds it in the pool's status.
func (w *watcher) recorded(ctx context.Context, api client.Client) error {
	var spaces corev1.NamespaceList
	var pools hivev1.ClusterPoolList
	if err := errors.Join(api.List(ctx, &spaces), api.List(ctx, &pools)); err != nil {
		return err
	}
	var names []string
	for _, p := range pools.Items {
		names = append(names, p.Status.Pending...)
	}
	for _, s := range spaces.Items {
		if s.Labels[hivev1.LabelPoolName] == "" || w.homes[s.Name] {
			continue
		}
		if !slices.Contains(names, s.Name) {
			return fmt.Errorf("namespace %s was made before its name was recorded", s.Name)
		}
		w.homes[s.Name] = true
	}
	return nil
}

// enough: there is never a cluster more than the pool's size and one for each claim.
func enough(ctx context.Context, api client.Client, alive int) error {
	var pools hivev1.ClusterPoolList
	var claims hivev1.ClusterClaimList
	if err := errors.Join(api.List(ctx, &pools), api.List(ctx, &claims)); err != nil {
		return err
	}
	most := len(claims.Items)
	for _, p := range pools.Items {
		most += int(p.Spec.Size)
	}
	if alive > most {
		return fmt.Errorf("there are %d clusters, %d were asked for", alive, most)
	}
	return nil
}

func newPool(size, running int32) *hivev1.ClusterPool {
	return &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: "p"},
		Spec: hivev1.ClusterPoolSpec{
			Size: size, RunningCount: running, BaseDomain: "example.com",
			ImageSetRef: hivev1.ClusterImageSetReference{Name: "v1"},
			Platform:    hivev1.Platform{Local: &hivev1.LocalPlatform{}},
		},
	}
}

func create(objects ...client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, api client.Client) error {
		for _, o := range objects {
			if err := api.Create(ctx, o.DeepCopyObject().(client.Object)); err != nil {
				return err
			}
		}
		return nil
	}
}

func imageSet() client.Object {
	return &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "v1"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "x:v1"}}
}

func claim(name string) client.Object {
	return &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pools", Name: name},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: "p"},
	}
}

func remove(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, api client.Client) error {
		return api.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}

// expect checks what is left: unclaimed clusters, claims with their clusters, and
// namespaces for exactly the clusters that exist.
func expect(unclaimed int, served ...string) func(context.Context, client.Client) error {
	return func(ctx context.Context, api client.Client) error {
		var clusters hivev1.ClusterDeploymentList
		var claims hivev1.ClusterClaimList
		var spaces corev1.NamespaceList
		if err := errors.Join(api.List(ctx, &clusters), api.List(ctx, &claims), api.List(ctx, &spaces)); err != nil {
			return err
		}
		var free int
		names := map[string]string{}
		for _, cd := range clusters.Items {
			names[cd.Name] = cd.Spec.ClusterPoolRef.ClaimName
			if cd.Spec.ClusterPoolRef.ClaimName == "" {
				free++
			}
		}
		var got []string
		for _, c := range claims.Items {
			if names[c.Spec.Namespace] != c.Name {
				return fmt.Errorf("claim %s names cluster %q, which is %q's", c.Name, c.Spec.Namespace, names[c.Spec.Namespace])
			}
			if len(c.Status.Conditions) != 2 || c.Status.Conditions[0].Reason != hivev1.ReasonRunning {
				return fmt.Errorf("claim %s says %+v", c.Name, c.Status.Conditions)
			}
			got = append(got, c.Name)
		}
		if free != unclaimed || !slices.Equal(got, served) {
			return fmt.Errorf("%d unclaimed clusters and claims %v served, want %d and %v", free, got, unclaimed, served)
		}
		if homes := len(spaces.Items) - 1; homes != len(clusters.Items) { // the pool has one itself
			return fmt.Errorf("%d namespaces for %d clusters", homes, len(clusters.Items))
		}
		return nil
	}
}

func TestCrashWhileAPoolFillsAndServes(t *testing.T) { // B1
	t.Parallel()
	s := stage(t, create(imageSet(), newPool(2, 1)), create(claim("a"), claim("b")), remove(claim("a")))
	s.Finally = expect(2, "b")
	crashtest.Run(t, s)
}

func TestCrashWhileAPoolGoes(t *testing.T) {
	t.Parallel()
	s := stage(t, create(imageSet(), newPool(2, 1)), create(claim("a")), remove(newPool(0, 0)), remove(claim("a")))
	s.Finally = func(ctx context.Context, api client.Client) error {
		var pools hivev1.ClusterPoolList
		if err := errors.Join(api.List(ctx, &pools), expect(0)(ctx, api)); err != nil {
			return err
		}
		if len(pools.Items) > 0 {
			return fmt.Errorf("the pool is still there: %+v", pools.Items[0].Status)
		}
		return nil
	}
	crashtest.Run(t, s)
}
