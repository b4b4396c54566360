package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/kstatus"
)

// BuildRegionStatus returns the region's status for a plan. It does not update the pending data
// planes: the caller that creates them records them.
func (o Objects) BuildRegionStatus(p scaling.Plan, now time.Time) v1alpha1.FleetRegionStatus {
	st := *o.Region.Status.DeepCopy()
	st.ObservedGeneration, st.Plan = o.Region.Generation, p.Summarize()
	before := map[string]*v1alpha1.ScalingDecision{}
	for _, t := range st.InstanceTypes {
		before[t.Name] = t.Decision
	}
	st.InstanceTypes = nil
	for _, t := range p.Types {
		st.InstanceTypes = append(st.InstanceTypes, v1alpha1.RegionTypeStatus{
			Name: t.Name, DataPlanes: int32(t.DataPlanes), InFlight: int32(t.InFlight), MaxUnits: int32(t.MaxUnits), UsedUnits: int32(t.UsedUnits),
			FreeUnits: int32(t.FreeUnits), PendingUnits: int32(t.PendingUnits), BiggestFits: t.BiggestFits,
			Decision: buildScalingDecision(t.Decision, before[t.Name], now),
		})
	}
	for _, c := range []metav1.Condition{o.capacityAvailableCondition(p), o.poolSuitableCondition(), o.validCondition()} {
		c.ObservedGeneration = o.Region.Generation
		setCondition(&st.Conditions, c, now)
	}
	kstatus.ReportFleetRegion(o.Region, &st, now)
	return st
}

// buildScalingDecision returns the status of a decision. It keeps the time of before if action and
// reason are the same.
func buildScalingDecision(d scaling.Decision, before *v1alpha1.ScalingDecision, now time.Time) *v1alpha1.ScalingDecision {
	action := "None"
	if d.Action == scaling.Create {
		action = "Create"
	}
	out := &v1alpha1.ScalingDecision{Action: action, Reason: string(d.Reason), Message: d.Message, At: metav1.NewTime(now)}
	if before != nil && before.Action == out.Action && before.Reason == out.Reason {
		out.At = before.At
	}
	return out
}

// sufficientReasons are the reasons of a type that has all it needs, or all it may have.
var sufficientReasons = []scaling.Reason{scaling.Sufficient, scaling.LimitReached, scaling.LimitCovered}

func (o Objects) capacityAvailableCondition(p scaling.Plan) metav1.Condition {
	var words []string
	for _, t := range p.Types {
		switch r := t.Decision.Reason; {
		case slices.Contains(sufficientReasons, r), r == scaling.BelowSlack && t.BiggestFits:
		case (r == scaling.InFlight || r == scaling.SwitchedOff) && t.BiggestFits:
		default:
			words = append(words, t.Name+": "+t.Decision.Message)
		}
	}
	if len(words) == 0 {
		return metav1.Condition{
			Type: v1alpha1.RegionCapacityAvailable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonEnough,
			Message: "Every type has room for its biggest size, or for everything that its limit still allows.",
		}
	}
	return metav1.Condition{
		Type: v1alpha1.RegionCapacityAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotEnough, Message: strings.Join(words, "; "),
	}
}

func (o Objects) poolSuitableCondition() metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.RegionPoolSuitable, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPoolSuitable, Message: "Clusters of its pools do not expire and do not hibernate.",
	}
	if o.Region.Spec.ClusterSource.Claim == nil {
		c.Message = "The region installs its clusters and claims none."
		return c
	}
	var words []string
	for _, p := range o.Region.Spec.ClusterSource.Claim.Pools {
		pool := o.Pools[p.PoolRef.Name]
		switch {
		case pool == nil && !o.PoolsAssumed:
			c.Reason = v1alpha1.ReasonPoolMissing
			words = append(words, "ClusterPool "+p.PoolRef.Name+" does not exist")
		case pool != nil && PoolUnsuitableReason(pool) != "":
			c.Reason = v1alpha1.ReasonPoolUnsuitable
			words = append(words, PoolUnsuitableReason(pool))
		}
	}
	if len(words) > 0 {
		c.Status, c.Message = metav1.ConditionFalse, strings.Join(words, "; ")
	}
	return c
}

func (o Objects) validCondition() metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.RegionValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRegionValid, Message: "All its types and sizes exist.",
	}
	for _, rt := range o.Region.Spec.InstanceTypes {
		t := o.scalingType(rt)
		switch {
		case t.Unknown != "":
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonUnknownType, t.Unknown
			return c
		case t.Reserved.Count > 0 && t.Reserved.Units == 0:
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonUnknownSize
			c.Message = "reserved.size of type " + rt.Name + " is " + t.Reserved.Size + ", which is not one of its sizes, " + joinSizeNames(o.Types[rt.Name])
			return c
		}
	}
	return c
}

// PlacedCondition returns the condition Placed of an instance for a plan's decision.
func PlacedCondition(i *v1alpha1.ServiceInstance, p scaling.Placement) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.InstancePlaced, Status: metav1.ConditionFalse, Reason: string(p.Decision.Reason), Message: p.Decision.Message,
		ObservedGeneration: i.Generation,
	}
	if p.Decision.Action == scaling.Place {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// BuildTypeStatus returns the status of an InstanceType.
func BuildTypeStatus(it *v1alpha1.InstanceType, now time.Time) v1alpha1.InstanceTypeStatus {
	st := *it.Status.DeepCopy()
	st.ObservedGeneration, st.BiggestUnits = it.Generation, it.Spec.BiggestUnits()
	c := metav1.Condition{
		Type: v1alpha1.TypeValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTypeValid, ObservedGeneration: it.Generation,
		Message: "Every size fits on a data plane of each of its platforms.",
	}
	for _, p := range it.Spec.NodePools {
		if _, most, _ := it.Spec.Nodes(p.Platform); it.Spec.UnitsOn(most) < st.BiggestUnits {
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonSizeTooBig
			c.Message = sizeTooBigMessage(it, p.Platform)
			break
		}
	}
	setCondition(&st.Conditions, c, now)
	kstatus.ReportInstanceType(it, &st, now)
	return st
}

func sizeTooBigMessage(it *v1alpha1.InstanceType, platform string) string {
	_, most, _ := it.Spec.Nodes(platform)
	return fmt.Sprintf("The biggest size needs %d units, and the %d nodes of a data plane on %s have room for %d: raise maxNodes, or remove the size.",
		it.Spec.BiggestUnits(), most, platform, it.Spec.UnitsOn(most))
}
