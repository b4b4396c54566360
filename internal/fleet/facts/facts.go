// Package facts translates between the objects of the fleet and the values that package scaling
// decides on: a FleetRegion, its InstanceTypes, DataPlanes and ServiceInstances become a
// scaling.Snapshot, and a scaling.Plan becomes their status. It also validates what the agents of
// data planes report.
//
// It is pure, as a decider is. The controllers read and write the objects; hotspare fleet evaluate
// reads them from files. An object that cannot be decoded is reported, and does not affect the
// others.
package facts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Objects are a region and the objects that its plan depends on, as read. This package does not
// change them.
type Objects struct {
	Region *v1alpha1.FleetRegion
	// Types are all InstanceTypes, by name.
	Types map[string]*v1alpha1.InstanceType
	// Planes are all DataPlanes in the region's namespace, Instances all ServiceInstances in any
	// namespace. Both may include objects of other regions.
	Planes    []*v1alpha1.DataPlane
	Instances []*v1alpha1.ServiceInstance
	// Pools are the ClusterPools in the region's namespace, by name. With PoolsAssumed, a pool that
	// is missing from Pools is assumed to exist and to be suitable.
	Pools        map[string]*hivev1.ClusterPool
	PoolsAssumed bool
	// Started is when this process started. Earlier answers of agents may have been restored from a
	// backup, and do not count. The zero time accepts every answer.
	Started time.Time
}

// BuildSnapshot returns the values that the region's plan depends on; its lists are in no
// particular order. It returns an error if the region cannot be decoded.
func (o Objects) BuildSnapshot(now time.Time) (scaling.Snapshot, error) {
	if err := o.Region.Whole(); err != nil {
		return scaling.Snapshot{}, fmt.Errorf("reading FleetRegion %s: %w", o.Region.Name, err)
	}
	spec := o.Region.Spec
	s := scaling.Snapshot{Now: now, Region: scaling.Region{
		Up: scaling.ScaleUp{
			Mode: scalingMode(spec.ScaleUp.Mode), MaxInFlight: max(1, int(spec.ScaleUp.MaxInFlight)),
			Timeout: parseDurationOr(spec.ScaleUp.ProvisionTimeout, 2*time.Hour), Backoff: parseDurationOr(spec.ScaleUp.Backoff, 10*time.Minute),
		},
		Down: scaling.ScaleDown{
			Mode: scalingMode(spec.ScaleDown.Mode), EmptyFor: parseDurationOr(spec.ScaleDown.EmptyFor, 0), Cooldown: parseDurationOr(spec.ScaleDown.CooldownAfterScaleUp, 0),
			MaxConcurrent: toIntPointer(spec.ScaleDown.MaxConcurrent),
		},
	}}
	byName := map[string]scaling.Type{}
	for _, rt := range spec.InstanceTypes {
		t := o.scalingType(rt)
		byName[t.Name] = t
		s.Region.Types = append(s.Region.Types, t)
	}
	here := map[string]bool{}
	planes := o.regionPlanes()
	s.Planes = make([]scaling.Plane, 0, len(planes)+len(o.Region.Status.Pending))
	for _, dp := range planes {
		here[dp.Name] = true
		s.Planes = append(s.Planes, o.scalingPlane(dp, byName))
	}
	for _, p := range o.Region.Status.Pending {
		if !here[p.Name] {
			t := byName[p.InstanceType]
			s.Planes = append(s.Planes, scaling.Plane{
				Name: p.Name, Created: now, Managed: true, MultiZone: t.MultiZone, Rooms: []scaling.Room{{Type: p.InstanceType, Max: t.Expected}},
			})
		}
	}
	instances := o.regionInstances(here)
	s.Instances = make([]scaling.Instance, 0, len(instances))
	for _, i := range instances {
		s.Instances = append(s.Instances, o.scalingInstance(i))
	}
	return s, nil
}

// regionPlanes returns the data planes of the region.
func (o Objects) regionPlanes() []*v1alpha1.DataPlane {
	var out []*v1alpha1.DataPlane
	for _, dp := range o.Planes {
		if dp.Namespace == o.Region.Namespace && dp.Spec.Provider == o.Region.Spec.Provider && dp.Spec.Region == o.Region.Spec.Region {
			out = append(out, dp)
		}
	}
	return out
}

// regionInstances returns the instances of the region, and any that are on one of its data planes.
func (o Objects) regionInstances(planes map[string]bool) []*v1alpha1.ServiceInstance {
	var out []*v1alpha1.ServiceInstance
	for _, i := range o.Instances {
		if i.Spec.Provider == o.Region.Spec.Provider && i.Spec.Region == o.Region.Spec.Region || planes[i.Status.DataPlaneName] {
			out = append(out, i)
		}
	}
	return out
}

func scalingMode(m v1alpha1.ScalingMode) scaling.Mode {
	return cmp.Or(scaling.Mode(m), scaling.Auto)
}

// parseDurationOr parses a duration of the API, and returns otherwise if it is empty or cannot be
// parsed. The schema rejects such a value, so it was stored before that.
func parseDurationOr(d hivev1.Duration, otherwise time.Duration) time.Duration {
	if d == "" {
		return otherwise
	}
	parsed, err := d.Parse()
	if err != nil {
		return otherwise
	}
	return parsed
}

func toIntPointer(n *int32) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

// scalingType returns one type of the region.
func (o Objects) scalingType(rt v1alpha1.RegionType) scaling.Type {
	t := scaling.Type{
		Name: rt.Name, Limit: toIntPointer(rt.Limit), Slack: int(rt.SlackUnits), MinPlanes: int(rt.MinDataPlanes), MaxPlanes: toIntPointer(rt.MaxDataPlanes),
	}
	it := o.Types[rt.Name]
	switch {
	case it == nil:
		t.Unknown = fmt.Sprintf("InstanceType %q does not exist: create it, or remove it from spec.instanceTypes", rt.Name)
		return t
	case it.Unreadable != "":
		t.Unknown = fmt.Sprintf("InstanceType %s is ignored until it can be read: %s", rt.Name, it.Unreadable)
		return t
	}
	for _, z := range it.Spec.Sizes {
		t.Sizes = append(t.Sizes, int(z.Units))
	}
	t.MultiZone = it.Spec.MultiZone
	if _, most, ok := it.Spec.Nodes(o.Region.Spec.Provider); ok {
		t.Expected = int(it.Spec.UnitsOn(most))
		t.Blocked = o.missingSourceReason(it.Spec.MultiZone)
	} else {
		t.Blocked = fmt.Sprintf("InstanceType %s has no spec.nodePools entry for platform %s", rt.Name, o.Region.Spec.Provider)
	}
	if rt.Reserved != nil {
		size, _ := it.Spec.Size(cmp.Or(rt.Reserved.Size, "x1"))
		t.Reserved = scaling.Reserved{Count: int(rt.Reserved.Count), Size: cmp.Or(rt.Reserved.Size, "x1"), Units: int(size.Units)}
	}
	return t
}

// missingSourceReason returns why there is no source of clusters with that zone layout; "" when
// there is one.
func (o Objects) missingSourceReason(multiZone bool) string {
	source := o.Region.Spec.ClusterSource
	if d := source.Deployment; d != nil && d.MultiZone == multiZone {
		return ""
	}
	why := fmt.Sprintf("spec.clusterSource has no pool with multiZone %t", multiZone)
	if source.Claim == nil {
		return why
	}
	first := ""
	for _, p := range source.Claim.Pools {
		if p.MultiZone != multiZone {
			continue
		}
		words := ""
		switch pool := o.Pools[p.PoolRef.Name]; {
		case pool != nil:
			words = PoolUnsuitableReason(pool)
		case !o.PoolsAssumed:
			words = fmt.Sprintf("ClusterPool %s does not exist in namespace %s", p.PoolRef.Name, o.Region.Namespace)
		}
		if words == "" {
			return ""
		}
		first = cmp.Or(first, words)
	}
	return cmp.Or(first, why)
}

// PoolUnsuitableReason returns why the clusters of a pool are not suitable for data planes: they
// would be hibernated, or destroyed, while instances run on them. It returns "" for a suitable
// pool.
func PoolUnsuitableReason(p *hivev1.ClusterPool) string {
	switch l := p.Spec.ClaimLifetime; {
	case p.DeletionTimestamp != nil:
		return fmt.Sprintf("ClusterPool %s is being deleted", p.Name)
	case l != nil && (isDurationSet(l.Default) || isDurationSet(l.Maximum)):
		return fmt.Sprintf("ClusterPool %s has spec.claimLifetime, which would delete data planes: remove it, or use another pool", p.Name)
	case isDurationSet(p.Spec.HibernateAfter):
		return fmt.Sprintf("ClusterPool %s has spec.hibernateAfter, which would hibernate data planes: remove it, or use another pool", p.Name)
	}
	return ""
}

func isDurationSet(d *hivev1.Duration) bool { return d != nil && *d != "" }

// scalingPlane returns the values of a data plane that a plan depends on.
func (o Objects) scalingPlane(dp *v1alpha1.DataPlane, region map[string]scaling.Type) scaling.Plane {
	st := dp.Status
	p := scaling.Plane{
		Name: dp.Name, Created: dp.CreationTimestamp.Time, Phase: scaling.Phase(st.Phase), MultiZone: dp.Spec.MultiZone,
		Managed:   dp.Spec.Ownership != v1alpha1.Registered,
		Protected: dp.Spec.Protected, Cordoned: dp.Spec.Schedulable != nil && !*dp.Spec.Schedulable,
		Silent:   meta.IsStatusConditionFalse(st.Conditions, v1alpha1.DataPlaneAgentLive),
		Released: st.ReleasedAt != nil, Deleting: dp.DeletionTimestamp != nil, Unreadable: dp.Unreadable,
	}
	for _, u := range st.Unlisted {
		p.Unlisted = append(p.Unlisted, cmp.Or(u.Name, u.UID))
	}
	p.Gone = IsClusterGone(dp)
	p.Discard, p.Unknown, p.Confirmed = dp.Spec.DiscardUnlisted, contentsUnknownReason(st), HasAnsweredInquiry(st, o.Started)
	p.Since = p.Created
	if st.PhaseSince != nil {
		p.Since = st.PhaseSince.Time
	}
	if st.EmptySince != nil {
		p.EmptySince = st.EmptySince.Time
	}
	p.Rooms = make([]scaling.Room, 0, len(dp.Spec.InstanceTypes))
	for _, name := range dp.Spec.InstanceTypes {
		p.Rooms = append(p.Rooms, scaling.Room{
			Type: name, Max: o.planeUnits(dp, name, region[name]),
			Reported: st.Capacity[name].ReportedAt != nil, Used: int(st.Capacity[name].UsedUnits),
			Remaining: int(st.Capacity[name].RemainingUnits), Known: int(st.Capacity[name].KnownUnits),
		})
	}
	for _, b := range st.Bookings {
		p.Bookings = append(p.Bookings, scaling.Booking{
			Instance: types.NamespacedName{Namespace: b.Namespace, Name: b.Name}.String(), UID: b.UID, Type: b.Type, Units: int(b.Units),
		})
	}
	p.Versions = toScalingVersions(st.Versions)
	return p
}

func toScalingVersions(all []v1alpha1.OperatorVersion) []scaling.Version {
	var out []scaling.Version
	for _, v := range all {
		out = append(out, scaling.Version{Strimzi: v.Strimzi, Ready: v.Ready, Kafka: v.Kafka, KafkaIBP: v.KafkaIBP})
	}
	return out
}

// IsClusterGone reports whether the cluster of a data plane that was Ready is gone or is being
// destroyed, although the controller did not release it.
func IsClusterGone(dp *v1alpha1.DataPlane) bool {
	served := dp.Status.Phase == v1alpha1.PhaseReady || dp.Status.Phase == v1alpha1.PhaseDeprovisioning
	reason := notReadyReason(dp)
	return served && (reason == v1alpha1.ReasonClusterGone || reason == v1alpha1.ReasonClusterDeleting)
}

// notReadyReason returns the reason of the condition Ready if it is False; "" otherwise.
func notReadyReason(dp *v1alpha1.DataPlane) string {
	c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneReady)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Reason
}

// contentsUnknownReason returns why the contents of a data plane are unknown; "" when its agent has
// reported them, or when its controller has not checked yet: the controller checks again before it
// releases the data plane.
func contentsUnknownReason(st v1alpha1.DataPlaneStatus) string {
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.DataPlaneInstancesListed); c != nil && c.Status == metav1.ConditionUnknown {
		return "its agent has not reported what is on it"
	}
	return ""
}

// HasAnsweredInquiry reports whether the agent has reported the contents of its data plane since
// the data plane was marked for removal, and since this process started.
func HasAnsweredInquiry(st v1alpha1.DataPlaneStatus, started time.Time) bool {
	return st.PhaseSince != nil && st.Agent != nil && st.Agent.AnsweredAt != nil && !st.Agent.AnsweredAt.Time.Before(InquiryTime(st.PhaseSince.Time, started))
}

// InquiryTime returns when to ask the agent for the contents of a data plane that has been marked
// for removal at since: no earlier than the start of this process.
func InquiryTime(since, started time.Time) time.Time {
	started = started.Truncate(time.Second) // the precision of times in the API
	if since.Before(started) {
		return started
	}
	return since
}

// knownCapacityPhases are the phases in which a data plane's capacity is known, or does not matter.
var knownCapacityPhases = []v1alpha1.DataPlanePhase{v1alpha1.PhaseReady, v1alpha1.PhaseDeprovisioning, v1alpha1.PhaseCleanup, v1alpha1.PhaseFailed}

// planeUnits returns the number of units of a type on a data plane; for one on its way, the
// expected number.
func (o Objects) planeUnits(dp *v1alpha1.DataPlane, name string, t scaling.Type) int {
	c := dp.Status.Capacity[name]
	it := o.Types[name]
	switch {
	case c.MaxUnits > 0 || slices.Contains(knownCapacityPhases, dp.Status.Phase):
		return int(c.MaxUnits)
	case c.MaxNodes > 0 && it != nil:
		return int(it.Spec.UnitsOn(c.MaxNodes))
	default:
		return t.Expected
	}
}

// scalingInstance returns the values of an instance that a plan depends on.
func (o Objects) scalingInstance(i *v1alpha1.ServiceInstance) scaling.Instance {
	out := scaling.Instance{
		Name: types.NamespacedName{Namespace: i.Namespace, Name: i.Name}.String(), UID: string(i.UID), Created: i.CreationTimestamp.Time,
		Type: i.Spec.Type, Units: int(i.Status.Units), Plane: i.Status.DataPlaneName, Pin: i.Spec.DataPlaneName, Deleting: i.DeletionTimestamp != nil,
	}
	for _, r := range i.Status.Refusals {
		if r.Generation != 0 && r.Generation != i.Generation {
			continue // the refusal was of another generation of the spec
		}
		out.Refusals = append(out.Refusals, scaling.Refusal{
			Plane: r.DataPlaneName, Until: r.Until.Time, Remaining: int(r.RemainingUnits), Versions: r.Versions, Vacant: r.Vacant,
		})
	}
	if i.Unreadable != "" {
		out.Reason, out.Fault = scaling.Unreadable, "it is not changed until it can be read: "+i.Unreadable
	}
	if out.Units > 0 {
		return out
	}
	units, reason, fault := o.InstanceUnits(i)
	out.Units = units
	if out.Fault == "" {
		out.Reason, out.Fault = reason, fault
	}
	return out
}

// InstanceUnits returns the number of units of an instance by its type and size. It is for the
// first time only; later, its status has them. If the number cannot be determined, it returns 0,
// the reason, and a message.
func (o Objects) InstanceUnits(i *v1alpha1.ServiceInstance) (units int, reason scaling.Reason, fault string) {
	it := o.Types[i.Spec.Type]
	switch {
	case it == nil:
		return 0, scaling.UnknownType, fmt.Sprintf("InstanceType %q does not exist: use another in spec.type", i.Spec.Type)
	case it.Unreadable != "":
		return 0, scaling.UnknownType, fmt.Sprintf("InstanceType %s cannot be read: %s", i.Spec.Type, it.Unreadable)
	}
	size, ok := it.Spec.Size(i.Spec.Size)
	if !ok {
		return 0, scaling.UnknownSize, fmt.Sprintf("InstanceType %s has no size %q: use one of %s in spec.size", i.Spec.Type, i.Spec.Size, joinSizeNames(it))
	}
	return int(size.Units), "", ""
}

func joinSizeNames(it *v1alpha1.InstanceType) string {
	words := ""
	for n, z := range it.Spec.Sizes {
		if n > 0 {
			words += ", "
		}
		words += z.Name
	}
	return words
}

// RegionDuplicateReason returns a message that names an older FleetRegion in all with the same
// provider and region; "" when there is none. Two such regions would both create data planes, and
// place the same instances.
func RegionDuplicateReason(r *v1alpha1.FleetRegion, all []*v1alpha1.FleetRegion) string {
	for _, other := range all {
		if other.Spec.Provider == r.Spec.Provider && other.Spec.Region == r.Spec.Region && isOlderRegion(other, r) {
			return fmt.Sprintf("FleetRegion %s/%s has the same provider and region, and is older: delete one of them", other.Namespace, other.Name)
		}
	}
	return ""
}

func isOlderRegion(a, b *v1alpha1.FleetRegion) bool {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
}
