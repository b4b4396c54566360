package clusterpool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/inventory/lease"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/pool"
)

// An execution executes one plan. It has what the pass finds out and writes after the observation,
// which it does not change.
type execution struct {
	*Reconciler
	seen *observation
	// pool is the pool as this pass last wrote it; until then, as observed.
	pool *hivev1.ClusterPool
	// ended is set when the pass must not write anything more.
	ended bool
	// poolConfirmed is set if the API server has confirmed, in this pass, that the pool is as
	// observed: it accepted a write of the pool, or returned it.
	poolConfirmed bool
	// inventoryPlan is the observed plan, with reservations for the clusters of this pass.
	inventoryPlan inventory.Plan
	// builder builds the objects of new clusters; see prepareCreations.
	builder clusterBuilder

	// confirming has the capacity 1. The step that confirms allObserved fills it, so that the other
	// concurrent steps wait for the result. It is a channel, because the step sends requests
	// meanwhile: a test with a simulated clock does not see that a goroutine waits for a mutex.
	confirming chan struct{}
	// allObserved is set if the pool certainly has no clusters except the observed and the recorded
	// ones.
	allObserved bool

	// mu guards droppedNames and the memo of the steps, which concurrent steps change.
	mu sync.Mutex
	// droppedNames are the recorded names that the next status no longer records.
	droppedNames []string
}

func newExecution(r *Reconciler, s *observation) *execution {
	return &execution{
		Reconciler: r, seen: s, pool: s.pool, inventoryPlan: s.inventoryPlan,
		confirming: make(chan struct{}, 1), allObserved: s.allObserved,
	}
}

// A stage is a set of steps that are executed concurrently: those with one of its verbs.
type stage struct {
	verbs []pool.Verb
	apply func(*execution, context.Context, pool.Step) error
	// prepare runs once before the steps, if there are any; nil does nothing.
	prepare func(*execution, context.Context) error
	// endsPass is set if the pass ends when a step fails. Otherwise the next stage follows.
	endsPass bool
}

// The stages of a pass, in order. The status is written between the two lists: it records the
// names of new clusters before anything is created under them.
var (
	stagesBeforeStatus = []stage{
		// A pool has the finalizer before anything is created for it. After its removal, the pool
		// may no longer exist.
		{verbs: []pool.Verb{pool.AddFinalizer}, apply: (*execution).addFinalizer, endsPass: true},
		{verbs: []pool.Verb{pool.RemoveFinalizer}, apply: (*execution).removeFinalizer, endsPass: true},
		// Claims wait for these.
		{verbs: []pool.Verb{pool.Bind}, apply: (*execution).bindCluster},
		{verbs: []pool.Verb{pool.Start, pool.Hibernate}, apply: (*execution).setPowerState},
		{verbs: []pool.Verb{pool.Bootstrap}, prepare: (*execution).confirmBootstraps, apply: (*execution).bootstrapCluster},
		{verbs: []pool.Verb{pool.SetPosition}, apply: (*execution).setPosition},
		// An invalid customization is reported before the status records another one for its name: a
		// process that has not seen the error, and is about to acquire the lease, then gets a
		// conflict.
		{verbs: []pool.Verb{pool.ReportInvalid}, apply: (*execution).reportInvalid, endsPass: true},
		{verbs: []pool.Verb{pool.DropName}, apply: (*execution).dropName},
	}
	stagesAfterStatus = []stage{
		{verbs: []pool.Verb{pool.CompleteCreation, pool.Create}, prepare: (*execution).prepareCreations, apply: (*execution).createCluster},
		{verbs: []pool.Verb{pool.Delete}, apply: (*execution).deleteCluster},
	}
)

// applySteps executes the plan's due steps, stage by stage, and joins their errors.
func (t *execution) applySteps(ctx context.Context, p pool.Plan, stages []stage) error {
	var errs []error
	for _, st := range stages {
		steps := p.DueStepsOf(st.verbs...)
		if t.ended || len(steps) == 0 {
			continue
		}
		err := t.applyStage(ctx, st, steps)
		t.ended = t.ended || err != nil && st.endsPass
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// parallelWrites is the number of concurrent writes of a pass.
const parallelWrites = 16

// applyStage executes steps, several at a time, and joins their errors: first those that follow no other step, and then those
// whose step has succeeded.
func (t *execution) applyStage(ctx context.Context, st stage, steps []pool.Step) error {
	if st.prepare != nil {
		if err := st.prepare(t, ctx); err != nil {
			return err
		}
	}
	var first, following []pool.Step
	for _, step := range steps {
		if step.After == "" {
			first = append(first, step)
		} else {
			following = append(following, step)
		}
	}
	failed := map[string]bool{}
	errs := t.applyConcurrently(ctx, st, first)
	for i, step := range first {
		failed[step.Claim] = errs[i] != nil
	}
	following = slices.DeleteFunc(following, func(s pool.Step) bool { return failed[s.After] })
	return errors.Join(append(errs, t.applyConcurrently(ctx, st, following)...)...)
}

// applyConcurrently executes steps, several at a time, and returns the error of each.
func (t *execution) applyConcurrently(ctx context.Context, st stage, steps []pool.Step) []error {
	errs := make([]error, len(steps))
	slots := make(chan struct{}, parallelWrites)
	var wg sync.WaitGroup
	for i, step := range steps {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = st.apply(t, ctx, step)
			<-slots
		})
	}
	wg.Wait()
	return errs
}

// addFinalizer adds hotspare's finalizer to the pool.
func (t *execution) addFinalizer(ctx context.Context, _ pool.Step) error {
	after := t.pool.DeepCopy()
	controllerutil.AddFinalizer(after, hivev1.FinalizerPool)
	return t.patchPool(ctx, after)
}

// removeFinalizer removes hotspare's finalizer from a deleted pool, after confirming that it has no
// cluster. The pass ends here.
func (t *execution) removeFinalizer(ctx context.Context, _ pool.Step) error {
	t.ended = true
	if err := t.confirmAllObserved(ctx); err != nil {
		return err
	}
	if left, err := t.pendingClusterExists(ctx); err != nil || left {
		return err
	}
	after := t.pool.DeepCopy()
	controllerutil.RemoveFinalizer(after, hivev1.FinalizerPool)
	return t.patchPool(ctx, after)
}

// patchPool writes the pool's metadata.
func (t *execution) patchPool(ctx context.Context, after *hivev1.ClusterPool) error {
	if _, err := patch.Object(ctx, t.Client, t.pool, after); err != nil {
		return fmt.Errorf("writing the finalizers of pool %s: %w", after.Name, err)
	}
	t.recordPoolWrite(after)
	return nil
}

// recordPoolWrite records the pool as just written.
func (t *execution) recordPoolWrite(after *hivev1.ClusterPool) {
	t.pool, t.poolConfirmed = after, true
	t.pools.RecordWrite(after, t.Clock.Now())
	if t.allObserved {
		t.seen.cache.version = after.ResourceVersion
	}
}

// powerEventReasons are the reasons of the events on power.
var powerEventReasons = map[pool.Verb]string{pool.Start: "Resuming", pool.Hibernate: "Hibernating"}

// setPowerState sets the desired power state of a cluster.
func (t *execution) setPowerState(ctx context.Context, st pool.Step) error {
	before := t.seen.clusters[st.Cluster]
	cd := before.DeepCopy()
	cd.Spec.PowerState = hivev1.PowerRunning
	if st.Verb == pool.Hibernate {
		cd.Spec.PowerState = hivev1.PowerHibernating
	}
	if st.Depth != "" {
		metav1.SetMetaDataAnnotation(&cd.ObjectMeta, hivev1.AnnotationSleepDepth, st.Depth)
	}
	syncTemplate(t.pool, cd)
	if err := t.patchCluster(ctx, cd); err != nil {
		return fmt.Errorf("setting the power state of cluster %s to %s: %w", cd.Name, cd.Spec.PowerState, err)
	}
	t.Metrics.RecordPoolStep(t.seen.poolKey(), st)
	if before.Spec.PowerState != "" { // the first power state of a new cluster is part of creating it
		t.recordEvent(t.pool, cd, powerEventReasons[st.Verb], "SetPower", "cluster %s: %s", cd.Name, st.Reason)
	}
	return nil
}

// bootstrapCluster records that a cluster begins the steps of the pool's bootstrap, which another controller then takes. What
// its gates found before that counts no more.
func (t *execution) bootstrapCluster(ctx context.Context, st pool.Step) error {
	before, now := t.seen.clusters[st.Cluster], t.Clock.Now()
	cd := before.DeepCopy()
	cd.Status.Bootstrap = &hivev1.BootstrapRecord{Version: t.seen.required.Steps.Version}
	gate.Forget(cd, now)
	kstatus.ReportClusterDeployment(cd, now)
	if _, err := patch.Status(ctx, t.Client, before, cd); err != nil {
		return fmt.Errorf("recording that cluster %s begins the steps of the bootstrap: %w", cd.Name, err)
	}
	t.clusters.RecordWrite(cd, now)
	t.Metrics.RecordPoolStep(t.seen.poolKey(), st)
	t.recordEvent(t.pool, cd, "Bootstrapping", "Bootstrap", "cluster %s takes the steps of the bootstrap: %s", cd.Name, st.Reason)
	return nil
}

// patchCluster writes the changes of a cluster since it was observed.
func (t *execution) patchCluster(ctx context.Context, after *hivev1.ClusterDeployment) error {
	wrote, err := patch.Object(ctx, t.Client, t.seen.clusters[after.Name], after)
	if wrote && err == nil {
		t.clusters.RecordWrite(after, t.Clock.Now())
	}
	return err
}

// setPosition writes the position of a waiting claim, and when its cluster is likely to run, into
// its status.
func (t *execution) setPosition(ctx context.Context, st pool.Step) error {
	before := t.seen.claims[st.Claim]
	claim := before.DeepCopy()
	claim.Status.Position, claim.Status.EstimatedReadyTime = new(int32(st.Position)), nil
	if !st.Ready.IsZero() {
		at := metav1.NewTime(st.Ready).Rfc3339Copy()
		claim.Status.EstimatedReadyTime = &at
	}
	if _, err := patch.Status(ctx, t.Client, before, claim); err != nil {
		return fmt.Errorf("setting the position of claim %s: %w", claim.Name, err)
	}
	t.claims.RecordWrite(claim, t.Clock.Now())
	return nil
}

// reportInvalid sets ApplySucceeded=False on a customization that does not apply to the pool, with
// the reason.
func (t *execution) reportInvalid(ctx context.Context, st pool.Step) error {
	before, now := t.seen.customizations[st.Customization], t.Clock.Now()
	c := before.DeepCopy()
	lease.ReportInvalid(c, st.Reason, now)
	kstatus.ReportCustomization(c, now)
	wrote, err := patch.Status(ctx, t.Client, before, c)
	if err != nil {
		return fmt.Errorf("reporting that customization %s does not apply: %w", c.Name, err)
	}
	if wrote {
		t.customizations.RecordWrite(c, now)
	}
	return nil
}

// dropName drops a recorded name; the status is then written without it.
func (t *execution) dropName(ctx context.Context, st pool.Step) error {
	if err := t.confirmUnusable(ctx, st); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("dropped a recorded name", "cluster", st.Cluster, "why", st.Reason)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.droppedNames = append(t.droppedNames, st.Cluster)
	return nil
}

// withoutDropped returns names without the dropped ones.
func (t *execution) withoutDropped(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(t.droppedNames, name) })
}

// deleteCluster deletes the version of a cluster that the plan was made for.
func (t *execution) deleteCluster(ctx context.Context, st pool.Step) error {
	cd := t.seen.clusters[st.Cluster]
	if err := errors.Join(t.confirmUnused(ctx, cd), t.confirmStale(ctx, st)); err != nil {
		return err
	}
	err := t.Client.Delete(ctx, cd, client.Preconditions{UID: &cd.UID, ResourceVersion: &cd.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting cluster %s: %w", cd.Name, err)
	}
	if err == nil {
		t.Metrics.RecordPoolStep(t.seen.poolKey(), st)
		t.recordEvent(t.pool, cd, "Deleting", "Delete", "cluster %s: %s", cd.Name, st.Reason)
	}
	return nil
}
