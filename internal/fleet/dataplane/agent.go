package dataplane

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// maxListedInstances is the number of instances that a DataPlaneAgent can list.
const maxListedInstances = 1000

// ownsAgent reports whether the DataPlaneAgent belongs to this data plane. One that an earlier data
// plane of the same name has left behind does not.
func (s Snapshot) ownsAgent() bool {
	return s.Agent != nil && s.Agent.Spec.DataPlaneUID == string(s.Plane.UID)
}

// ensureAgent plans to write the nodes and instances that should exist to the DataPlaneAgent. It
// returns why that is impossible; "" if it is possible.
func (s Snapshot) ensureAgent(p *Plan, reserve []scaling.ReservedInstance) (why string) {
	pools, instances := s.agentPools(p.Status), s.agentInstances(p.Status, reserve)
	switch {
	case s.Agent == nil:
		a := &v1alpha1.DataPlaneAgent{ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Plane.Namespace, Name: s.Plane.Name,
			Annotations: map[string]string{v1alpha1.AnnotationDataPlane: string(s.Plane.UID)},
		}}
		a.Spec = v1alpha1.DataPlaneAgentSpec{DataPlaneUID: string(s.Plane.UID), Pools: pools, Instances: instances}
		p.addSteps(Step{Verb: CreateAgent, Agent: a})
	case !s.ownsAgent():
		return "DataPlaneAgent " + s.Agent.Name + " belongs to another data plane: delete it."
	default:
		want := s.Agent.DeepCopy()
		want.Spec.Pools, want.Spec.Instances = pools, instances
		if at, ok := s.inquiryTime(); ok && (want.Spec.InquiryAt == nil || want.Spec.InquiryAt.Time.Before(at)) {
			want.Spec.InquiryAt = &metav1.Time{Time: at}
		}
		if !equality.Semantic.DeepEqual(want.Spec, s.Agent.Spec) {
			p.addSteps(Step{Verb: UpdateAgent, Agent: want})
		}
	}
	return ""
}

// agentPools returns the nodes of each type. For a type that no longer exists, it keeps the values
// that are already listed.
func (s Snapshot) agentPools(st v1alpha1.DataPlaneStatus) []v1alpha1.AgentPool {
	var out []v1alpha1.AgentPool
	for _, name := range slices.Sorted(slices.Values(s.Plane.Spec.InstanceTypes)) {
		pool := v1alpha1.AgentPool{Type: name, MaxNodes: st.Capacity[name].MaxNodes}
		if pool.MaxNodes == 0 {
			continue
		}
		if it := s.Types[name]; it != nil {
			pool.NodesPerUnit, pool.UnitsPerNode = it.Spec.NodesPerUnit, it.Spec.UnitsPerNode
		} else if was, ok := s.listedPool(name); ok {
			pool.NodesPerUnit, pool.UnitsPerNode = was.NodesPerUnit, was.UnitsPerNode
		} else {
			continue
		}
		out = append(out, pool)
	}
	return out
}

func (s Snapshot) listedPool(instanceType string) (v1alpha1.AgentPool, bool) {
	if !s.ownsAgent() {
		return v1alpha1.AgentPool{}, false
	}
	return s.Agent.Spec.Pool(instanceType)
}

// agentInstances returns all instances that should be on the data plane, real ones first. An
// instance without a ServiceInstance is not listed: the ServiceInstance is deleted only after the
// agent has reported that nothing of the instance is left.
func (s Snapshot) agentInstances(st v1alpha1.DataPlaneStatus, reserve []scaling.ReservedInstance) []v1alpha1.AgentInstance {
	var out []v1alpha1.AgentInstance
	all := slices.SortedFunc(slices.Values(s.assignedInstances()), func(a, b *v1alpha1.ServiceInstance) int { return cmp.Compare(a.UID, b.UID) })
	// If there are too many instances, those that are already listed stay listed.
	slices.SortStableFunc(all, func(a, b *v1alpha1.ServiceInstance) int { return s.listingRank(a) - s.listingRank(b) })
	for _, i := range all {
		if i.Status.Units > 0 {
			out = append(out, s.agentInstance(st, i))
		}
	}
	slices.SortFunc(out[:min(len(out), maxListedInstances)], func(a, b v1alpha1.AgentInstance) int { return cmp.Compare(a.UID, b.UID) })
	out = append(out, s.movedAgentInstances()...)
	for _, r := range reserve {
		out = append(out, v1alpha1.AgentInstance{
			UID: r.Name, Name: r.Name, Type: r.Type, Size: r.Size, Units: int32(r.Units), Reserved: true, PlacementID: r.Name,
			Capacity: s.sizeCapacity(r.Type, r.Size), Versions: v1alpha1.InstanceVersions{Strimzi: r.Strimzi, Kafka: r.Kafka, KafkaIBP: r.KafkaIBP},
		})
	}
	return out[:min(len(out), maxListedInstances)]
}

// listingRank returns the sort key of an instance: those that the agent knows come first.
func (s Snapshot) listingRank(i *v1alpha1.ServiceInstance) int {
	if s.isListed(string(i.UID)) {
		return 0
	}
	return 1
}

// overflowMessage returns a message about instances for which the agent's list has no room; "" if
// there are none.
func (s Snapshot) overflowMessage() string {
	over := len(s.assignedInstances()) - maxListedInstances
	if over <= 0 {
		return ""
	}
	return fmt.Sprintf(" Its agent accepts a list of %d instances, and the data plane has %d more: delete some, and set spec.schedulable to false.", maxListedInstances, over)
}

// movedAgentInstances returns the instances that have lost their place here and of which something
// may be left: the agent may have found room after its refusal, and an operator that refuses an
// instance may have created some of its objects. An instance with fewer placements than the agent's
// list shows was read from a stale cache, and stays as it is.
func (s Snapshot) movedAgentInstances() []v1alpha1.AgentInstance {
	var out []v1alpha1.AgentInstance
	if !s.ownsAgent() {
		return nil
	}
	for _, was := range s.Agent.Spec.Instances {
		n := slices.IndexFunc(s.Moved, func(i *v1alpha1.ServiceInstance) bool { return string(i.UID) == was.UID })
		if n < 0 || was.Reserved || s.isReportedDeleted(was) {
			continue
		}
		placement, err := strconv.Atoi(strings.TrimPrefix(was.PlacementID, was.UID+"-"))
		was.Deleted = was.Deleted || err == nil && placement <= int(s.Moved[n].Status.Placements)
		out = append(out, was)
	}
	return out
}

// isReportedDeleted reports whether the agent has reported that nothing of an instance is left.
func (s Snapshot) isReportedDeleted(was v1alpha1.AgentInstance) bool {
	r := s.Agent.Status.Report
	return r != nil && r.DataPlaneUID == string(s.Plane.UID) && slices.ContainsFunc(r.Instances, func(i v1alpha1.InstanceReport) bool {
		return i.UID == was.UID && i.PlacementID == was.PlacementID && i.Phase == v1alpha1.AgentDeleted
	})
}

func (s Snapshot) agentInstance(st v1alpha1.DataPlaneStatus, i *v1alpha1.ServiceInstance) v1alpha1.AgentInstance {
	out := v1alpha1.AgentInstance{
		UID: string(i.UID), Namespace: i.Namespace, Name: i.Name, Type: i.Spec.Type, Size: i.Spec.Size, Units: i.Status.Units,
		PlacementID: i.PlacementID(), Deleted: i.DeletionTimestamp != nil, Capacity: s.sizeCapacity(i.Spec.Type, i.Spec.Size),
		Parameters: i.Spec.Parameters.DeepCopy(),
	}
	if s.ownsAgent() {
		for _, was := range s.Agent.Spec.Instances {
			if was.UID == out.UID {
				out.Versions = was.Versions // listing an instance does not upgrade it
				if out.Capacity == nil {
					out.Capacity = was.Capacity
				}
			}
		}
	}
	if out.Versions.Strimzi == "" {
		out.Versions = newestVersions(st.Versions)
	}
	return out
}

// sizeCapacity returns the capacity of a size of an InstanceType; nil if there is none.
func (s Snapshot) sizeCapacity(instanceType, size string) *v1alpha1.KafkaCapacity {
	if it := s.Types[instanceType]; it != nil {
		if z, ok := it.Spec.Size(size); ok {
			return z.Capacity.DeepCopy()
		}
	}
	return nil
}

func newestVersions(all []v1alpha1.OperatorVersion) v1alpha1.InstanceVersions {
	var list []scaling.Version
	for _, v := range all {
		list = append(list, scaling.Version{Strimzi: v.Strimzi, Ready: v.Ready, Kafka: v.Kafka, KafkaIBP: v.KafkaIBP})
	}
	strimzi, kafka, ibp, _ := scaling.NewestVersions(list)
	return v1alpha1.InstanceVersions{Strimzi: strimzi, Kafka: kafka, KafkaIBP: ibp}
}

// remainingInstances returns the names of everything that prevents the release of the data plane,
// sorted: instances, and bookings that may not be in an instance's status yet.
func (s Snapshot) remainingInstances() []string {
	names := map[string]bool{}
	for _, i := range s.assignedInstances() {
		names[i.Namespace+"/"+i.Name] = true
	}
	for _, b := range s.Plane.Status.Bookings {
		names[b.Namespace+"/"+b.Name] = true
	}
	out := make([]string, 0, len(names))
	for n := range names {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// listFirst joins the first five names of a list.
func listFirst(names []string) string {
	const few = 5
	if len(names) > few {
		return strings.Join(names[:few], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
