package clusterpool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/rbac"
)

const (
	// parallelWrites is the number of concurrent writes of a pass.
	parallelWrites = 16
)

// applyPlan executes the plan: first bindings, then power states, then the status with the names of
// new clusters, then the creation of those clusters, and deletions. It returns the delay before the
// next pass; 0 if only a change matters.
func (r *Reconciler) applyPlan(ctx context.Context, s *observation, p pool.Plan) (time.Duration, error) {
	held, err := r.reconcileFinalizer(ctx, s)
	if err != nil || held {
		return 0, err
	}
	errs := []error{
		forEachParallel(p.StepsOf(pool.Bind), func(st pool.Step) error { return r.bindCluster(ctx, s, st) }),
		forEachParallel(append(p.StepsOf(pool.Start), p.StepsOf(pool.Sleep)...), func(st pool.Step) error { return r.setPowerState(ctx, s, st) }),
	}
	errs = append(errs, r.setPositions(ctx, s, p))
	next := p.Next
	if err := r.reportInvalidCustomizations(ctx, s); err != nil {
		return next, errors.Join(append(errs, err)...)
	}
	if err := errors.Join(r.dropUnassignedPending(ctx, s), r.dropForeignPending(ctx, s), r.dropInterruptedPending(ctx, s)); err != nil {
		errs = append(errs, err)
	}
	if len(s.droppedNames) > 0 {
		next = soonerDelay(next, time.Millisecond) // the plan counted the dropped names as pending, and no event triggers the next pass
	}
	names, err := r.chooseNames(ctx, s, len(p.DueStepsOf(pool.Create)))
	if err != nil {
		errs = append(errs, err)
	}
	later, err := r.patchPoolStatus(ctx, s, p, names)
	if err != nil {
		return next, errors.Join(append(errs, err)...)
	}
	next = soonerDelay(next, later)
	errs = append(errs,
		r.createClusters(ctx, s, append(s.withoutDropped(s.snapshot.Pending), names...)),
		forEachParallel(p.DueStepsOf(pool.Delete), func(st pool.Step) error { return r.deleteCluster(ctx, s, st) }))
	if len(s.missing) > 0 {
		next = soonerDelay(next, dependenciesTTL)
	}
	if len(s.faults) > 0 {
		next = soonerDelay(next, templateTTL)
	}
	return next, errors.Join(errs...)
}

// chooseNames chooses names for n new clusters, after confirming that all existing clusters are
// known.
func (r *Reconciler) chooseNames(ctx context.Context, s *observation, n int) ([]string, error) {
	if n == 0 {
		return nil, nil
	}
	if err := r.confirmAllObserved(ctx, s); err != nil {
		return nil, err
	}
	names := s.generateNames(n, r.Suffix)
	if len(s.pool.Spec.Inventory) > 0 {
		for _, name := range names {
			s.inventoryPlan.ReserveFor(name)
		}
	}
	return names, nil
}

// forEachParallel runs do for every step, several at a time, and joins their errors.
func forEachParallel[T any](steps []T, do func(T) error) error {
	errs := make([]error, len(steps))
	slots := make(chan struct{}, parallelWrites)
	var wg sync.WaitGroup
	for i, st := range steps {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = do(st)
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// reconcileFinalizer adds the finalizer to a pool before anything is created for it, and removes it
// when nothing is left of a deleted pool. It reports whether the pass ends here.
func (r *Reconciler) reconcileFinalizer(ctx context.Context, s *observation) (bool, error) {
	before := s.pool.DeepCopy()
	going := s.pool.DeletionTimestamp != nil
	if going && len(s.clusters) == 0 {
		if err := r.confirmAllObserved(ctx, s); err != nil {
			return true, err
		}
		left, err := r.pendingClusterExists(ctx, s)
		if err != nil || left {
			return true, err
		}
		controllerutil.RemoveFinalizer(s.pool, hivev1.FinalizerPool)
	}
	if !going {
		controllerutil.AddFinalizer(s.pool, hivev1.FinalizerPool)
	}
	wrote, err := patch.Object(ctx, r.Client, before, s.pool)
	if err != nil {
		return true, fmt.Errorf("holding pool %s: %w", s.pool.Name, err)
	}
	if wrote {
		r.recordPoolWrite(s)
	}
	return going && wrote, nil
}

// pendingClusterExists reports whether the API server has a cluster under one of the pool's recorded
// names.
func (r *Reconciler) pendingClusterExists(ctx context.Context, s *observation) (bool, error) {
	for _, name := range s.pool.Status.Pending {
		var cd hivev1.ClusterDeployment
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
		if err == nil {
			return true, nil
		}
		if !apierrors.IsNotFound(err) {
			return true, fmt.Errorf("looking for cluster %s: %w", name, err)
		}
	}
	return false, nil
}

// bindCluster binds a cluster to a claim in two writes: first to the cluster, a race that only one
// claim can win, then to the claim.
func (r *Reconciler) bindCluster(ctx context.Context, s *observation, st pool.Step) error {
	cd, claim := s.clusters[st.Cluster].DeepCopy(), s.claims[st.Claim].DeepCopy()
	if cd.Spec.ClusterPoolRef.ClaimName == "" {
		before, now := cd.DeepCopy(), metav1.NewTime(r.Clock.Now())
		cd.Spec.ClusterPoolRef.ClaimName = claim.Name
		cd.Spec.ClusterPoolRef.ClaimedTimestamp = &now
		cd.Spec.PowerState = hivev1.PowerRunning
		syncTemplate(s.pool, cd)
		if err := r.patchCluster(ctx, before, cd); err != nil {
			return fmt.Errorf("giving cluster %s to claim %s: %w", cd.Name, claim.Name, err)
		}
	} else if err := r.confirmAssigned(ctx, cd); err != nil {
		return err
	}
	before := claim.DeepCopy()
	claim.Spec.Namespace = cd.Name
	controllerutil.AddFinalizer(claim, hivev1.FinalizerClaim)
	wrote, err := patch.Object(ctx, r.Client, before, claim)
	if apierrors.IsNotFound(err) {
		s.cache.recordClaimUnaware(cd)
	}
	if err != nil {
		err = errors.Join(err, r.reportRefusal(ctx, before, cd, err))
		return fmt.Errorf("telling claim %s of cluster %s: %w", claim.Name, cd.Name, err)
	}
	if wrote {
		r.claims.RecordWrite(claim, r.Clock.Now())
		r.recordEvent(claim, cd, "Assigned", "Bind", "has cluster %s", cd.Name)
		r.Metrics.RecordAssignment(claim, r.Clock.Now())
	}
	return nil
}

// powerEventReasons are the reasons of the events on power.
var powerEventReasons = map[pool.Verb]string{pool.Start: "Resuming", pool.Sleep: "Hibernating"}

// confirmAssigned confirms with the API server that a cluster that was bound earlier still exists:
// the cache may still show one that was deleted with an older claim of the same name. No conflict
// would prevent writing it into the claim: only the claim is written.
func (r *Reconciler) confirmAssigned(ctx context.Context, seen *hivev1.ClusterDeployment) error {
	var cd hivev1.ClusterDeployment
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), &cd); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for cluster %s: %w", seen.Name, err)
	}
	if cd.UID != seen.UID || cd.DeletionTimestamp != nil {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s is going or gone", seen.Name))
	}
	return nil
}

// setPowerState sets the desired power state of a cluster.
func (r *Reconciler) setPowerState(ctx context.Context, s *observation, st pool.Step) error {
	cd := s.clusters[st.Cluster].DeepCopy()
	before := cd.DeepCopy()
	cd.Spec.PowerState = hivev1.PowerRunning
	if st.Verb == pool.Sleep {
		cd.Spec.PowerState = hivev1.PowerHibernating
	}
	syncTemplate(s.pool, cd)
	if err := r.patchCluster(ctx, before, cd); err != nil {
		return fmt.Errorf("telling cluster %s to be %s: %w", cd.Name, cd.Spec.PowerState, err)
	}
	r.Metrics.RecordPoolStep(s.poolKey(), st)
	if before.Spec.PowerState != "" { // the first power state of a new cluster is part of creating it
		r.recordEvent(s.pool, cd, powerEventReasons[st.Verb], "SetPower", "cluster %s: %s", cd.Name, st.Reason)
	}
	return nil
}

func (r *Reconciler) patchCluster(ctx context.Context, before, cd *hivev1.ClusterDeployment) error {
	wrote, err := patch.Object(ctx, r.Client, before, cd)
	if wrote && err == nil {
		r.clusters.RecordWrite(cd, r.Clock.Now())
	}
	return err
}

// deleteCluster deletes the version of a cluster that the plan was made for.
func (r *Reconciler) deleteCluster(ctx context.Context, s *observation, st pool.Step) error {
	cd := s.clusters[st.Cluster]
	if err := r.confirmUnused(ctx, s, cd); err != nil {
		return err
	}
	err := r.Client.Delete(ctx, cd, client.Preconditions{UID: &cd.UID, ResourceVersion: &cd.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting cluster %s: %w", cd.Name, err)
	}
	if err == nil {
		r.Metrics.RecordPoolStep(s.poolKey(), st)
		r.recordEvent(s.pool, cd, "Deleting", "Delete", "cluster %s: %s", cd.Name, st.Reason)
	}
	return nil
}

// confirmUnused confirms with the API server that a claimed cluster's claim no longer needs it: a
// claim that the cache does not show may be too new for the cache.
func (r *Reconciler) confirmUnused(ctx context.Context, s *observation, cd *hivev1.ClusterDeployment) error {
	if s.inventoryPlan.Displaced[cd.Name] != "" && !facts.IsMarkedForRemoval(cd) {
		return r.confirmDisplaced(ctx, s, cd)
	}
	ref := cd.Spec.ClusterPoolRef
	if ref == nil || ref.ClaimName == "" || facts.IsMarkedForRemoval(cd) {
		return nil
	}
	var claim hivev1.ClusterClaim
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.pool.Namespace, Name: ref.ClaimName}, &claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading claim %s: %w", ref.ClaimName, err)
	case claim.DeletionTimestamp != nil, claim.Spec.ClusterPoolName != s.pool.Name,
		claim.Spec.Namespace != "" && claim.Spec.Namespace != cd.Name:
		return nil
	}
	return fault.New(fault.Conflict, fmt.Errorf("claim %s still has cluster %s", claim.Name, cd.Name))
}

// createClusters creates the recorded clusters. It does not change objects that exist already.
func (r *Reconciler) createClusters(ctx context.Context, s *observation, names []string) error {
	if len(names) == 0 || s.snapshot.Settings.Blocked != "" || s.pool.DeletionTimestamp != nil {
		return nil
	}
	if err := r.confirmAllObserved(ctx, s); err != nil {
		return err
	}
	if err := r.confirmPoolUnchanged(ctx, s); err != nil {
		return err
	}
	from, err := r.newClusterBuilder(ctx, s)
	if err != nil {
		return err
	}
	return forEachParallel(names, func(name string) error { return r.createCluster(ctx, s, from, name) })
}

func (r *Reconciler) createCluster(ctx context.Context, s *observation, from clusterBuilder, name string) error {
	var c *hivev1.ClusterDeploymentCustomization
	if len(s.pool.Spec.Inventory) > 0 {
		if s.inventoryPlan.Homes[name] == "" {
			return nil // no customization is available now
		}
		var err error
		if c, err = r.acquireLease(ctx, s, name); err != nil {
			return err
		}
		if err = r.confirmRecorded(ctx, s, name, c.Name); err != nil {
			return err
		}
	}
	objects, cd, err := from.buildObjects(name, c)
	if err != nil {
		return err
	}
	for _, o := range append(objects, cd) {
		err := r.Client.Create(ctx, o)
		if apierrors.IsAlreadyExists(err) {
			err = r.confirmExisting(ctx, s, o, *cd.Spec.ClusterPoolRef)
		}
		if err != nil {
			return fmt.Errorf("creating %s of cluster %s: %w", describeObject(o), name, err)
		}
	}
	if cd.ResourceVersion != "" {
		r.clusters.RecordWrite(cd, r.Clock.Now())
		r.Metrics.RecordPoolStep(s.poolKey(), pool.Step{Verb: pool.Create})
		r.recordEvent(s.pool, cd, "Created", "Create", "cluster %s", name)
	}
	return nil
}

// confirmExisting returns an error unless the object that exists in place of o was created for the
// cluster, and has the content that it would be created with now.
func (r *Reconciler) confirmExisting(ctx context.Context, s *observation, o client.Object, ref hivev1.ClusterPoolReference) error {
	switch o := o.(type) {
	case *corev1.Namespace:
		return r.confirmNamespace(ctx, s, o.Name, ref)
	case *corev1.Secret:
		return r.confirmSecret(ctx, o)
	}
	return nil
}

// confirmNamespace returns an error unless the namespace that exists under the name of a new
// cluster was created for it. Otherwise the pool's Secrets would be copied into somebody else's
// namespace.
func (r *Reconciler) confirmNamespace(ctx context.Context, s *observation, name string, ref hivev1.ClusterPoolReference) error {
	var ns corev1.Namespace
	if err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &ns); err != nil {
		return err
	}
	if rbac.IsPoolNamespace(&ns, ref) {
		return nil
	}
	return fault.NewDenied("namespace %s was not made for a cluster of pool %s", name, s.pool.Name)
}

func describeObject(o client.Object) string {
	switch o.(type) {
	case *corev1.Namespace:
		return "the namespace"
	case *corev1.Secret:
		return "Secret " + o.GetName()
	default:
		return "the ClusterDeployment"
	}
}
