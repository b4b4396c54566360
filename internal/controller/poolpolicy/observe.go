package poolpolicy

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/pool/demandfacts"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/counts"
	"hotspare.io/hotspare/internal/sizing/ladder"
	"hotspare.io/hotspare/internal/sizing/policy"
	"hotspare.io/hotspare/internal/sizing/record"
)

const reasonUnreadable = hivev1.ReasonUnreadable

// An obstacle is why the counts of a pool cannot be set.
type obstacle struct{ reason, message string }

// An observation is everything that a pass has read. The pool belongs to the cache and must not be
// changed.
type observation struct {
	policy policy.Policy
	pool   *hivev1.ClusterPool
	// obstacle is why there is nothing to decide; nil if there is.
	obstacle *obstacle
	record   *storedRecord
	snapshot counts.Snapshot
	// ladder is what hotspare has decided about the depths of sleep; nil if it does not decide.
	ladder *ladder.Plan
}

func (r *Reconciler) observePolicy(ctx context.Context, p *v1alpha1.PoolPolicy, parsed policy.Policy) (*observation, error) {
	s := &observation{policy: parsed}
	key := client.ObjectKeyFromObject(p)
	var pool hivev1.ClusterPool
	err := r.Client.Get(ctx, key, &pool)
	switch {
	case apierrors.IsNotFound(err):
		s.obstacle = &obstacle{hivev1.ReasonPoolNotFound, fmt.Sprintf("There is no ClusterPool %s: create it, or delete this PoolPolicy, which has the name of its pool.", key)}
		return s, nil
	case err != nil:
		return nil, fmt.Errorf("reading its pool: %w", err)
	case pool.Unreadable != "":
		s.obstacle = &obstacle{reasonUnreadable, "The pool cannot be read: " + pool.Unreadable}
		return s, nil
	case pool.DeletionTimestamp != nil:
		s.obstacle = &obstacle{hivev1.ReasonPoolDeleting, "The pool is being deleted."}
		return s, nil
	}
	s.pool = &pool
	if s.record, err = r.openRecord(ctx, key, p.Annotations[v1alpha1.AnnotationClaimsImported]); err != nil {
		return nil, err
	}
	adoptRecord(s.record, s.pool)
	objects, err := r.observeObjects(ctx, key)
	if err != nil {
		return nil, err
	}
	if parsed.Objective != (sizing.Objective{}) { // the record keeps the calendar that it has while the policy is not valid
		s.record.tracker.Calendar = parsed.Calendar
	}
	s.record.tracker.Observe(objects, parsed.Objective, parsed.Zone.String())
	s.snapshot = newSnapshot(p, s, objects)
	return s, nil
}

func newSnapshot(p *v1alpha1.PoolPolicy, s *observation, objects record.Objects) counts.Snapshot {
	t := s.record.tracker
	limits := s.policy.Limits
	limits.Budget.Spent = t.Spent(limits.Prices, objects.Now)
	if most := s.pool.Spec.MaxSize; most != nil && (limits.Size.Max == 0 || int(*most) < limits.Size.Max) {
		if limits.Size.Max = int(*most); *most <= 0 {
			limits.Size.Max = sizing.None
		}
		limits.Size.MaxReason = fmt.Sprintf("maxSize of the pool is %d", *most)
		if least := limits.Size.Min; least > int(*most) {
			limits.Size.MaxReason += fmt.Sprintf(", which is below your minimum of %d: raise the one or lower the other", least)
		}
	}
	_, resume := p.Annotations[v1alpha1.AnnotationResumeSizing]
	return counts.Snapshot{
		Auto: s.policy.Auto, Zone: s.policy.Zone, Pool: poolSetting(s.pool),
		Applied: counts.ParseApplied(s.pool.Annotations[v1alpha1.AnnotationSizing]),
		Manual:  manualFromStatus(p.Status.ManualChange), Resume: resume,
		Sizing: sizing.Snapshot{
			Now: objects.Now, Objective: s.policy.Objective, Limits: limits, Durations: t.Measured(), Calendar: s.policy.Calendar,
			Learned: t.Learned, RecordedSince: t.Since, Waiting: objects.Waiting, Sleeping: objects.CountSleepers(),
		},
	}
}

func poolSetting(p *hivev1.ClusterPool) sizing.Setting {
	return sizing.Setting{Running: int(p.Spec.RunningCount), Size: int(p.Spec.Size)}
}

// decide calls counts.Decide. Before it respects a change by hand for the first time, it reads who has
// made it, and when.
func (r *Reconciler) decide(ctx context.Context, s *observation) (counts.Plan, error) {
	if s.snapshot.NeedsChange() {
		var live hivev1.ClusterPool
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.pool), &live); err != nil {
			return counts.Plan{}, fmt.Errorf("reading pool %s: %w", client.ObjectKeyFromObject(s.pool), err)
		}
		s.snapshot.Changed = lastChange(live.ManagedFields)
	}
	return counts.Decide(s.snapshot), nil
}

// lastChange returns when another field manager has last written one of the counts; nil if none is
// recorded. The time may be later than the change, if the same manager has written other fields since,
// but not earlier.
func lastChange(entries []metav1.ManagedFieldsEntry) *counts.Change {
	var out *counts.Change
	for _, e := range entries {
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if e.Manager == FieldManager || e.FieldsV1 == nil || e.Time == nil || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		_, size := owned.Spec["f:size"]
		_, running := owned.Spec["f:runningCount"]
		if (size || running) && (out == nil || e.Time.After(out.At)) {
			out = &counts.Change{At: e.Time.Time, By: e.Manager}
		}
	}
	return out
}

// observeObjects reads the claims and the clusters of a pool.
func (r *Reconciler) observeObjects(ctx context.Context, pool client.ObjectKey) (record.Objects, error) {
	var clusters hivev1.ClusterDeploymentList
	// The lists are only read: copying every object would be wasteful.
	if err := r.Client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return record.Objects{}, fmt.Errorf("listing clusters: %w", err)
	}
	var claims hivev1.ClusterClaimList
	if err := r.Client.List(ctx, &claims, client.InNamespace(pool.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return record.Objects{}, fmt.Errorf("listing claims: %w", err)
	}
	return demandfacts.NewObjects(pool, clusters.Items, claims.Items, r.Clock.Now()), nil
}

func manualFromStatus(m *v1alpha1.ManualChange) *counts.Manual {
	if m == nil {
		return nil
	}
	return &counts.Manual{
		Setting: sizing.Setting{Running: int(m.Running), Size: int(m.Size)},
		Since:   m.Since.UTC(), Until: m.Until.UTC(), By: m.By,
	}
}
