package poolpolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/sizing/record"
)

// A storedRecord is the record of a pool in memory, and where it is saved.
type storedRecord struct {
	tracker *record.Tracker
	// stored is the ConfigMap as it was read or written last; nil if there is none.
	stored *corev1.ConfigMap
	// owner is the pool that the ConfigMap belongs to.
	owner *hivev1.ClusterPool
	// imported is the value of AnnotationClaimsImported when it was read.
	imported string
	// problem is why the record on the hub is neither used nor overwritten; nil if it is.
	problem *obstacle
	// refusal is why the last write was refused; empty if it was not.
	refusal string
	// unreadable is set if stored has a record that could not be read, which the next write must keep.
	unreadable bool
}

// openRecord returns the record of a pool. It reads it from the hub once, and again as long as it
// cannot be used, and after claims were imported. What was recorded since the last write is then recorded again, but
// for claims that were deleted meanwhile.
func (r *Reconciler) openRecord(ctx context.Context, pool types.NamespacedName, imported string) (*storedRecord, error) {
	if known := r.records[pool]; known != nil && known.imported != imported {
		delete(r.records, pool)
	}
	s, err := r.findRecord(ctx, pool)
	if s != nil {
		s.imported = imported
	}
	return s, err
}

// findRecord returns the record in memory, or else that on the hub, or else a new one.
func (r *Reconciler) findRecord(ctx context.Context, pool types.NamespacedName) (*storedRecord, error) {
	known := r.records[pool]
	if known != nil && known.problem == nil {
		known.problem = aheadProblem(known.tracker, pool, r.Clock.Now())
		return known, nil
	}
	key := types.NamespacedName{Namespace: pool.Namespace, Name: record.ConfigMapName(pool.Name)}
	var found corev1.ConfigMap
	err := r.Live.Get(ctx, key, &found)
	switch {
	case apierrors.IsNotFound(err):
		return r.keepRecord(pool, known, nil, nil), nil
	case err != nil:
		return nil, fmt.Errorf("reading the record of claims, ConfigMap %s: %w", key, err)
	case found.Labels[v1alpha1.LabelDemandRecord] != pool.Name:
		return r.keepRecord(pool, known, nil, &obstacle{v1alpha1.ReasonRecordForeign, fmt.Sprintf(
			"ConfigMap %s has no label %s=%s, so hotspare does not write the record of claims to it: delete the ConfigMap, or set the label if it is a record.",
			key.Name, v1alpha1.LabelDemandRecord, pool.Name)}), nil
	}
	decoded, lost, err := record.Read(found.BinaryData, found.Data, r.Clock.Now())
	if lost != nil {
		ctrl.LoggerFrom(ctx).Info("began the charts of a pool anew", "configMap", key.Name, "reason", lost.Error())
	}
	switch {
	case errors.Is(err, record.ErrFuture):
		return r.keepRecord(pool, known, nil, futureProblem(key.Name)), nil
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("set an unreadable record of claims aside", "configMap", key.Name, "reason", err.Error())
		setAside := &storedRecord{tracker: record.NewTracker(nil), stored: &found, unreadable: true}
		setAside.tracker.SetAside = err.Error()
		return r.remember(pool, setAside), nil
	}
	return r.remember(pool, &storedRecord{tracker: record.NewTracker(decoded), stored: &found}), nil
}

// keepRecord continues what is in memory, or begins a record.
func (r *Reconciler) keepRecord(pool types.NamespacedName, known *storedRecord, stored *corev1.ConfigMap, problem *obstacle) *storedRecord {
	if known == nil || known.tracker.IsAhead(r.Clock.Now()) && problem == nil {
		known = &storedRecord{tracker: record.NewTracker(nil)}
	}
	known.stored, known.problem = stored, problem
	return r.remember(pool, known)
}

func (r *Reconciler) remember(pool types.NamespacedName, s *storedRecord) *storedRecord {
	if r.records == nil {
		r.records = map[types.NamespacedName]*storedRecord{}
	}
	r.records[pool] = s
	return s
}

func aheadProblem(t *record.Tracker, pool types.NamespacedName, now time.Time) *obstacle {
	if !t.IsAhead(now) {
		return nil
	}
	return futureProblem(record.ConfigMapName(pool.Name))
}

func futureProblem(name string) *obstacle {
	return &obstacle{v1alpha1.ReasonRecordFromFuture, fmt.Sprintf(
		"The record of claims in ConfigMap %s ends in the future, so a clock is or was wrong: it is neither used nor changed until then."+
			" Correct the clock, or delete the ConfigMap to begin a record.", name)}
}

// saveRecord saves a record if it is time, and returns why the API server refuses it; empty if it does not. Other
// errors only delay it: the record is in memory.
func (r *Reconciler) saveRecord(ctx context.Context, s *storedRecord, pool *hivev1.ClusterPool) string {
	s.owner = pool
	if s.problem != nil || !s.tracker.NeedsSave(r.Clock.Now()) {
		return s.refusal
	}
	err := r.writeRecord(ctx, s)
	switch {
	case err == nil:
		s.tracker.MarkSaved(r.Clock.Now())
		return ""
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return fmt.Sprintf("The record of claims cannot be saved, and is lost when hotspare stops: %s", fault.OneLine(err))
	case fault.KindOf(err) == fault.Gone:
		s.stored = nil // somebody has deleted it: the next pass creates it again, with what is in memory
	case fault.KindOf(err) == fault.Conflict, apierrors.IsAlreadyExists(err):
		// Somebody else has written it: what exists is read again by the next pass, and of what is in memory the claims
		// that still exist are recorded again.
		delete(r.records, client.ObjectKeyFromObject(pool))
	default:
		ctrl.LoggerFrom(ctx).Error(err, "saving the record of claims")
	}
	return s.refusal
}

// writeRecord creates or updates the ConfigMap.
func (r *Reconciler) writeRecord(ctx context.Context, s *storedRecord) error {
	binaryData, data, err := s.tracker.Write(r.Clock.Now())
	if err != nil {
		return err
	}
	if s.stored == nil {
		cm := newRecordMap(s.owner, binaryData, data)
		if err := r.Client.Create(ctx, cm); err != nil {
			return err
		}
		s.stored = cm
		return nil
	}
	cm := s.stored.DeepCopy()
	cm.OwnerReferences = ownerReferences(s.owner)
	if s.unreadable {
		setAside(cm)
	}
	if cm.BinaryData == nil {
		cm.BinaryData = map[string][]byte{}
	}
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	maps.Copy(cm.BinaryData, binaryData)
	maps.Copy(cm.Data, data)
	if _, err := patch.Object(ctx, r.Client, s.stored.DeepCopy(), cm); err != nil {
		return err
	}
	s.stored, s.unreadable = cm, false
	return nil
}

// setAside keeps what was found in a ConfigMap and could not be read under other keys, instead of what was kept before.
func setAside(cm *corev1.ConfigMap) {
	const most = 200_000 // two records; an object has at most a megabyte
	if raw := cm.BinaryData[record.ClaimsKey]; len(raw) > 0 && len(raw) < most {
		cm.BinaryData[record.SetAsidePrefix+record.ClaimsKey] = raw
	}
	if text := cm.Data[record.DetailsKey]; text != "" && len(text) < most {
		cm.Data[record.SetAsidePrefix+record.DetailsKey] = text
	}
}

func newRecordMap(pool *hivev1.ClusterPool, binaryData map[string][]byte, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pool.Namespace, Name: record.ConfigMapName(pool.Name), Labels: map[string]string{v1alpha1.LabelDemandRecord: pool.Name},
			OwnerReferences: ownerReferences(pool),
		},
		BinaryData: binaryData, Data: data,
	}
}

// ownerReferences let the record be deleted with its pool.
func ownerReferences(pool *hivev1.ClusterPool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterPool", Name: pool.Name, UID: pool.UID}}
}

// adoptRecord has a record saved at once that belongs to an earlier pool of this name, which was deleted or
// restored from a backup: otherwise it would be deleted with that one.
func adoptRecord(s *storedRecord, pool *hivev1.ClusterPool) {
	if s.stored != nil && !equality.Semantic.DeepEqual(s.stored.OwnerReferences, ownerReferences(pool)) {
		s.tracker.MarkUnsaved()
	}
}

// closeRecord saves what is not saved of a record, and forgets it: its policy or its pool is gone.
func (r *Reconciler) closeRecord(ctx context.Context, pool types.NamespacedName) error {
	s := r.records[pool]
	if s == nil {
		return nil
	}
	if err := r.saveBeforeClose(ctx, pool, s); err != nil {
		return fmt.Errorf("saving the record of claims of pool %s: %w", pool, err)
	}
	delete(r.records, pool)
	return nil
}

// saveBeforeClose saves what is not saved of a record. If somebody else has written or deleted the ConfigMap, or the API server refuses
// to change it, what they have left stays.
func (r *Reconciler) saveBeforeClose(ctx context.Context, pool types.NamespacedName, s *storedRecord) error {
	if !s.isWritable(r.Clock.Now()) {
		return nil
	}
	var owner hivev1.ClusterPool
	if err := r.Client.Get(ctx, pool, &owner); err != nil || owner.UID != s.owner.UID || owner.DeletionTimestamp != nil {
		return client.IgnoreNotFound(err) // the record goes with its pool
	}
	err := r.writeRecord(ctx, s)
	if isRefusal(err) || apierrors.IsAlreadyExists(err) || fault.KindOf(err) == fault.Conflict || fault.KindOf(err) == fault.Gone {
		ctrl.LoggerFrom(ctx).Info("did not save the last claims of a record whose policy or pool is gone", "pool", pool.String(), "reason", err.Error())
		return nil
	}
	return err
}

// isWritable reports whether there is something to save, and a place for it.
func (s *storedRecord) isWritable(now time.Time) bool {
	return s.problem == nil && s.owner != nil && s.tracker.HasUnsaved() && !s.tracker.IsAhead(now)
}

// exitTimeout is how long the writes at the end of the process may take.
const exitTimeout = 3 * time.Second

// saveAtExit saves all records when the process ends, or another one becomes the leader. One that
// cannot be saved lacks the claims of the last minutes.
func (r *Reconciler) saveAtExit(ctx context.Context) error {
	<-ctx.Done()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	for pool, s := range r.records {
		if !s.isWritable(r.Clock.Now()) {
			continue
		}
		if err := r.writeRecord(last, s); err != nil {
			ctrl.LoggerFrom(ctx).Info("did not save a record of claims at exit", "pool", pool.String(), "reason", err.Error())
		}
	}
	return nil
}
