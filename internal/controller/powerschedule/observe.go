package powerschedule

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/power/schedule"
)

// parsedSpec is a parsed specification.
type parsedSpec struct {
	timetable schedule.Timetable
	// The selectors are named after their fields; one that is not set is nil.
	clusters, namespaces, claims labels.Selector
}

// parseSpec parses a specification. If it returns errors, the parsedSpec must not be used.
func parseSpec(spec v1alpha1.PowerScheduleSpec) (parsedSpec, []schedule.FieldError) {
	var p parsedSpec
	var faults []schedule.FieldError
	p.timetable, faults = schedule.Parse(spec.Windows)
	for _, f := range []struct {
		name string
		from *metav1.LabelSelector
		to   *labels.Selector
	}{
		{"clusterSelector", spec.ClusterSelector, &p.clusters},
		{"namespaceSelector", spec.NamespaceSelector, &p.namespaces},
		{"claimSelector", spec.ClaimSelector, &p.claims},
	} {
		if f.from == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(f.from)
		if err != nil {
			faults = append(faults, schedule.FieldError{
				Reason: v1alpha1.ReasonInvalidSelector, Field: "spec." + f.name, Value: metav1.FormatLabelSelector(f.from),
				Problem: fmt.Sprintf("is not a label selector (%v): use matchLabels, such as {team: web}", err),
			})
			continue
		}
		*f.to = selector
	}
	return p, faults
}

// snapshot is the input of a pass. The clusters belong to the cache and must not be changed.
type snapshot struct {
	schedule.Snapshot
	clusters map[string]*hivev1.ClusterDeployment
}

func (r *Reconciler) observeClusters(ctx context.Context, ps *v1alpha1.PowerSchedule, p parsedSpec) (*snapshot, error) {
	found, err := r.selectClusters(ctx, ps, p)
	if err != nil {
		return nil, err
	}
	s := &snapshot{
		Snapshot: schedule.Snapshot{
			Timetable: p.timetable, Created: ps.CreationTimestamp.Time, SkipUntil: timeOrZero(ps.Spec.SkipUntil),
			Record: recordFromStatus(ps.Status.LastSlot),
		},
		clusters: map[string]*hivev1.ClusterDeployment{},
	}
	for _, cd := range found {
		if !isSwitchable(cd) {
			continue
		}
		c := describeCluster(cd)
		s.clusters[c.Name] = cd
		s.Clusters = append(s.Clusters, c)
	}
	return s, nil
}

// selectClusters returns the clusters that the schedule selects.
func (r *Reconciler) selectClusters(ctx context.Context, ps *v1alpha1.PowerSchedule, p parsedSpec) ([]*hivev1.ClusterDeployment, error) {
	switch {
	case p.claims != nil:
		return r.listClaimedClusters(ctx, ps.Namespace, p.claims)
	case p.clusters == nil:
		return nil, nil // the schema does not allow this
	case p.namespaces != nil:
		return r.listClustersInNamespaces(ctx, p)
	}
	return r.listClustersByLabel(ctx, p.clusters, client.InNamespace(ps.Namespace))
}

func (r *Reconciler) listClustersByLabel(ctx context.Context, by labels.Selector, opts ...client.ListOption) ([]*hivev1.ClusterDeployment, error) {
	var list hivev1.ClusterDeploymentList
	// The list is only read: copying every cluster would be wasteful.
	opts = append(opts, client.MatchingLabelsSelector{Selector: by}, client.UnsafeDisableDeepCopy)
	if err := r.Client.List(ctx, &list, opts...); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	out := make([]*hivev1.ClusterDeployment, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}

// listClustersInNamespaces lists the selected clusters in the selected namespaces.
func (r *Reconciler) listClustersInNamespaces(ctx context.Context, p parsedSpec) ([]*hivev1.ClusterDeployment, error) {
	var spaces corev1.NamespaceList
	if err := r.Client.List(ctx, &spaces, client.MatchingLabelsSelector{Selector: p.namespaces}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	mine := map[string]bool{}
	for i := range spaces.Items {
		mine[spaces.Items[i].Name] = true
	}
	all, err := r.listClustersByLabel(ctx, p.clusters)
	var out []*hivev1.ClusterDeployment
	for _, cd := range all {
		if mine[cd.Namespace] {
			out = append(out, cd)
		}
	}
	return out, err
}

// listClaimedClusters lists the clusters of the selected claims. Claim and cluster must refer to
// each other: either reference alone may have been written to reach somebody else's object.
func (r *Reconciler) listClaimedClusters(ctx context.Context, namespace string, by labels.Selector) ([]*hivev1.ClusterDeployment, error) {
	var claims hivev1.ClusterClaimList
	if err := r.Client.List(ctx, &claims, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: by}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing claims: %w", err)
	}
	var out []*hivev1.ClusterDeployment
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Spec.Namespace == "" || claim.DeletionTimestamp != nil || claim.Unreadable != "" {
			continue
		}
		var cd hivev1.ClusterDeployment
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: claim.Spec.Namespace, Name: claim.Spec.Namespace}, &cd)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading the cluster of claim %s: %w", claim.Name, err)
		}
		if ref := cd.Spec.ClusterPoolRef; err == nil && ref != nil && ref.Namespace == claim.Namespace && ref.ClaimName == claim.Name {
			out = append(out, &cd)
		}
	}
	return out, nil
}

// isSwitchable reports whether a schedule may change the cluster's power state. It returns false
// for clusters that are being deleted, that are paused, or that wait unclaimed in their pool,
// which decides about their power itself.
func isSwitchable(cd *hivev1.ClusterDeployment) bool {
	ref := cd.Spec.ClusterPoolRef
	return cd.DeletionTimestamp == nil && cd.Unreadable == "" && !hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause) &&
		(ref == nil || ref.PoolName == "" || ref.ClaimName != "")
}

func describeCluster(cd *hivev1.ClusterDeployment) schedule.Cluster {
	c := schedule.Cluster{
		Name: client.ObjectKeyFromObject(cd).String(), Seed: string(cd.UID), Since: cd.CreationTimestamp.Time,
		PowerState: cd.Spec.PowerState, LastSlot: schedule.ParseSlot(cd.Annotations[v1alpha1.AnnotationSlot]),
	}
	if c.PowerState == "" {
		c.PowerState = hivev1.PowerRunning
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.ClaimedTimestamp != nil && ref.ClaimedTimestamp.After(c.Since) {
		c.Since = ref.ClaimedTimestamp.Time
	}
	return c
}

// missedSlotDelay is the delay from which a slot counts as missed. Somebody may have changed a
// cluster since then, and that change takes precedence.
const missedSlotDelay = time.Minute

// observeLastChanges reads when the power state of the clusters in steps was last changed.
func (r *Reconciler) observeLastChanges(ctx context.Context, s *snapshot, steps []schedule.Step) error {
	changed := map[string]time.Time{}
	for _, st := range steps {
		var cd hivev1.ClusterDeployment
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.clusters[st.Cluster]), &cd); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading cluster %s: %w", st.Cluster, err)
		}
		changed[st.Cluster] = powerChangedAt(&cd, r.Clock.Now())
	}
	for i := range s.Clusters {
		s.Clusters[i].ChangedAt = changed[s.Clusters[i].Name]
	}
	return nil
}

// powerChangedAt returns when the cluster's power state was last changed. The result may be later
// than the change, but never earlier: if in doubt, the cluster is left as it is.
//
// The API server's managedFields record who set which field when, but not for every object: the
// hub of `hotspare up` keeps none for the clusters of a pool (ADR 0012). In that case the result
// is the time when the change was acted upon, or now if it has not been yet.
func powerChangedAt(cd *hivev1.ClusterDeployment, now time.Time) time.Time {
	if len(cd.ManagedFields) > 0 {
		return powerFieldWrittenAt(cd.ManagedFields)
	}
	wanted := cmp.Or(cd.Spec.PowerState, hivev1.PowerRunning)
	told := schedule.ParseSlot(cd.Annotations[v1alpha1.AnnotationSlot])
	switch t := cd.Status.PowerTransition; {
	case told.Power == wanted:
		return told.At // set by its schedule
	case t == nil && wanted == hivev1.PowerRunning:
		return time.Time{} // unchanged since its creation
	case t == nil || t.Target != wanted:
		return now
	default:
		return t.StartedAt.Time
	}
}

// powerFieldWrittenAt returns when the manager that last set spec.powerState wrote the object.
func powerFieldWrittenAt(entries []metav1.ManagedFieldsEntry) time.Time {
	var out time.Time
	for _, e := range entries {
		var owned struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if e.FieldsV1 == nil || e.Time == nil || e.Subresource != "" || json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		if _, ok := owned.Spec["f:powerState"]; ok && e.Time.After(out) {
			out = e.Time.Time
		}
	}
	return out
}

func recordFromStatus(last *v1alpha1.TakenSlot) schedule.Record {
	if last == nil {
		return schedule.Record{}
	}
	return schedule.Record{
		Slot:    schedule.Slot{At: last.Time.UTC(), Power: last.PowerState},
		Outcome: last.Outcome, StartedAt: last.StartedAt.UTC(), FinishedAt: timeOrZero(last.FinishedAt), Clusters: int(last.Clusters),
	}
}

func timeOrZero(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
