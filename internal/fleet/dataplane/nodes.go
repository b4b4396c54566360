package dataplane

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// The default pool has the name that installers give to the workers that they create.
const (
	defaultPoolName = "worker"
	defaultMinNodes = 6
	defaultMaxNodes = 18
)

// MachinePoolName returns the name of the machine pool of an instance type.
func MachinePoolName(instanceType string) string { return "kafka-" + instanceType }

// recordMaxNodes records the maximum number of nodes of each type for which it is not known yet.
// The number does not change afterward: the agent repeats it, and placements depend on it. It
// returns whether it has added a number, and why the number of a type is unknown.
func (s Snapshot) recordMaxNodes(p *Plan) (added bool, why string) {
	for _, name := range s.Plane.Spec.InstanceTypes {
		if p.Status.Capacity[name].MaxNodes > 0 {
			continue
		}
		most, words := s.maxNodesForType(name)
		if words != "" {
			if why == "" {
				why = words
			}
			continue
		}
		if p.Status.Capacity == nil {
			p.Status.Capacity = map[string]v1alpha1.TypeCapacity{}
		}
		c := p.Status.Capacity[name]
		c.MaxNodes, added = most, true
		p.Status.Capacity[name] = c
	}
	return added, why
}

func (s Snapshot) maxNodesForType(name string) (int32, string) {
	it := s.Types[name]
	switch {
	case it == nil:
		return 0, fmt.Sprintf("InstanceType %s does not exist: create it.", name)
	case it.Unreadable != "":
		return 0, fmt.Sprintf("InstanceType %s cannot be read: %s.", name, it.Unreadable)
	}
	_, most, ok := it.Spec.Nodes(s.Plane.Spec.Provider)
	if !ok {
		return 0, fmt.Sprintf("InstanceType %s has no spec.nodePools entry for platform %s: add one.", name, s.Plane.Spec.Provider)
	}
	return most, ""
}

// ensureMachinePools plans to create or update the MachinePools of the cluster: one for each type,
// and the default pool of a managed cluster.
func (s Snapshot) ensureMachinePools(p *Plan) {
	if s.Cluster == nil {
		return
	}
	for _, name := range slices.Sorted(slices.Values(s.Plane.Spec.InstanceTypes)) {
		if most := p.Status.Capacity[name].MaxNodes; most > 0 {
			s.ensureMachinePool(p, MachinePoolName(name), s.machineType(name), s.typePoolEdit(name, most))
		}
	}
	if s.isManaged() && s.Region != nil {
		d := s.Region.Spec.DefaultNodePool
		s.ensureMachinePool(p, defaultPoolName, d.MachineType, func(mp *hivev1.MachinePool) {
			mp.Spec.Autoscaling = newAutoscaling(valueOrDefault(d.MinNodes, defaultMinNodes), valueOrDefault(d.MaxNodes, defaultMaxNodes))
		})
	}
}

func valueOrDefault(n, otherwise int32) int32 {
	if n == 0 {
		return otherwise
	}
	return n
}

func newAutoscaling(least, most int32) *hivev1.MachinePoolAutoscaling {
	return &hivev1.MachinePoolAutoscaling{MinReplicas: min(least, most), MaxReplicas: most}
}

// typePoolEdit returns a function that makes a pool the pool of a type: with nodes that are labeled
// for the type, and tainted for all others.
func (s Snapshot) typePoolEdit(name string, most int32) func(*hivev1.MachinePool) {
	return func(mp *hivev1.MachinePool) {
		least := int32(1)
		if it := s.Types[name]; it != nil {
			if n, _, ok := it.Spec.Nodes(s.Plane.Spec.Provider); ok {
				least = n
			}
		} else if a := mp.Spec.Autoscaling; a != nil {
			least = a.MinReplicas // the type no longer exists, but its nodes do
		}
		mp.Spec.Autoscaling = newAutoscaling(least, most)
		if mp.Spec.Labels == nil {
			mp.Spec.Labels = map[string]string{}
		}
		mp.Spec.Labels[v1alpha1.LabelInstanceType] = name
		taint := corev1.Taint{Key: v1alpha1.LabelInstanceType, Value: name, Effect: corev1.TaintEffectNoExecute}
		if !slices.ContainsFunc(mp.Spec.Taints, func(t corev1.Taint) bool { return t == taint }) {
			mp.Spec.Taints = append(slices.DeleteFunc(mp.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key }), taint)
		}
	}
}

func (s Snapshot) machineType(name string) string {
	it := s.Types[name]
	if it == nil {
		return ""
	}
	for _, n := range it.Spec.NodePools {
		if n.Platform == s.Plane.Spec.Provider {
			return n.MachineType
		}
	}
	return ""
}

// ensureMachinePool plans to create a MachinePool, or to change it as edit requires. The machine
// type is set only on creation: it cannot be changed for existing machines.
func (s Snapshot) ensureMachinePool(p *Plan, name, machineType string, edit func(*hivev1.MachinePool)) {
	for _, have := range s.Nodes {
		if have.Spec.Name != name {
			continue
		}
		want := have.DeepCopy()
		want.Spec.Replicas = nil
		edit(want)
		if have.DeletionTimestamp == nil && !equality.Semantic.DeepEqual(have.Spec, want.Spec) {
			p.addSteps(Step{Verb: UpdateMachinePool, Nodes: want})
		}
		return
	}
	mp := &hivev1.MachinePool{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Cluster.Namespace, Name: s.Cluster.Name + "-" + name,
		Annotations: map[string]string{v1alpha1.AnnotationDataPlane: string(s.Plane.UID)},
	}}
	mp.Spec.ClusterDeploymentRef.Name, mp.Spec.Name = s.Cluster.Name, name
	mp.Spec.Platform = platformSettings(s.Cluster.Spec.Platform.Name(), machineType)
	edit(mp)
	p.addSteps(Step{Verb: CreateMachinePool, Nodes: mp})
}

// platformSettings returns the platform settings of a MachinePool; the field for the machine type
// depends on the platform. Local machines have one size, and no settings.
func platformSettings(platform, machineType string) *runtime.RawExtension {
	if machineType == "" || platform == localPlatform {
		return nil
	}
	field := "type"
	if platform == "openstack" {
		field = "flavor"
	}
	return &runtime.RawExtension{Raw: fmt.Appendf(nil, `{%q:{%q:%q}}`, platform, field, machineType)}
}
