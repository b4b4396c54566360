// Package machinepool decides what is to be done in a cluster for a MachinePool.
//
// There are two kinds of clusters. OpenShift's make machines themselves: Sets decides
// about their MachineSets and MachineAutoscalers. Those of the local platform do not:
// Workers decides about each machine and its node, and Scale about how many there are
// when the pool is autoscaled.
//
// The package is pure: the same observation and time give the same decision.
package machinepool

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Pool is what a MachinePool asks for.
type Pool struct {
	// Name is the pool's in the cluster: worker.
	Name string
	// Replicas is how many machines; without meaning if Range is set.
	Replicas int64
	// Range bounds the number of machines if the pool is autoscaled.
	Range *Range
	// Labels are for nodes, MachineLabels for machines, Taints for nodes.
	Labels, MachineLabels map[string]string
	Taints                []corev1.Taint
	// Owned is what the pool has set so far, as far as it was recorded.
	Owned OwnedMetadata
	// Deleted asks for nothing to be left.
	Deleted bool
	// Rival is an older MachinePool of the same name in the cluster; "" if there is none.
	Rival string
}

// controlPlaneName is the name of what is no pool: the control plane.
const controlPlaneName = "master"

// systemLabelPrefix begin the keys by which the cluster itself tells machines apart.
const systemLabelPrefix = "machine.openshift.io/cluster-api-"

// unsupportedCondition says why the pool can have nothing; nil if it can.
func (p Pool) unsupportedCondition() *condition.Value {
	var v condition.Value
	switch {
	case p.Rival != "":
		v = blockingCondition(hivev1.ReasonDuplicatePool,
			"MachinePool %s is pool %s of this cluster already: delete one of the two, or make another with another spec.name.", p.Rival, p.Name)
	case p.Name == controlPlaneName:
		v = blockingCondition(hivev1.ReasonUnsupportedName, "spec.name %s is the control plane's: make a MachinePool with another spec.name.", p.Name)
	case len(validation.IsDNS1123Label(p.Name)) > 0:
		v = blockingCondition(hivev1.ReasonUnsupportedName, "spec.name %q cannot be part of a machine's name: "+
			"make a MachinePool whose spec.name has lower-case letters, digits and dashes only.", p.Name)
	default:
		for _, k := range slices.Sorted(maps.Keys(p.MachineLabels)) {
			if strings.HasPrefix(k, systemLabelPrefix) {
				v = blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.machineLabels: label %s is the cluster's own: remove it.", k)
				return &v
			}
		}
		return nil
	}
	return &v
}

// Range bounds a number of machines.
type Range struct{ Min, Max int64 }

// clamp returns the number in the range that is nearest to n.
func (r Range) clamp(n int64) int64 { return min(max(n, r.Min), max(r.Max, r.Min)) }

// OwnedMetadata names what a pool has set on nodes and machines, and takes away when it is not
// asked for any more. All lists are sorted.
type OwnedMetadata struct {
	Labels, MachineLabels []string
	Taints                []hivev1.TaintIdentifier
}

// NewPool reads a MachinePool.
func NewPool(mp *hivev1.MachinePool) Pool {
	p := Pool{
		Name: mp.Spec.Name, Replicas: 1,
		Labels: mp.Spec.Labels, MachineLabels: mp.Spec.MachineLabels, Taints: mp.Spec.Taints,
		Owned: OwnedMetadata{
			Labels: mp.Status.OwnedLabels, MachineLabels: mp.Status.OwnedMachineLabels, Taints: mp.Status.OwnedTaints,
		},
		Deleted: mp.DeletionTimestamp != nil,
	}
	if mp.Spec.Replicas != nil {
		p.Replicas = *mp.Spec.Replicas
	}
	if a := mp.Spec.Autoscaling; a != nil {
		p.Range = &Range{Min: int64(a.MinReplicas), Max: int64(a.MaxReplicas)}
	}
	return p
}

// blockingCondition is the condition that keeps everything as it is.
func blockingCondition(reason, format string, args ...any) condition.Value {
	return condition.True(reason, fmt.Sprintf(format, args...))
}

var (
	configSupported  = condition.False(hivev1.ReasonConfigSupported, "The configuration is supported.")
	boundsSufficient = condition.False(hivev1.ReasonEnough, "The bounds of autoscaling are enough for each MachineSet.")
)

// Plan is what is to be done and said.
type Plan struct {
	Steps []Step
	// Unsupported and NotEnough are the conditions of those names. While one of them is
	// true there are no steps.
	Unsupported, NotEnough condition.Value
	// Replicas, Sets and Owned are for the status. Owned is to be recorded before the
	// steps are done.
	Replicas int64
	Sets     []hivev1.MachineSetStatus
	Owned    OwnedMetadata
	// Waiting says what is awaited though there is no step for it; "" if nothing is.
	Waiting string
}

// Verb is what a step does.
type Verb string

// The steps that there are.
const (
	CreateSet        Verb = "create MachineSet"
	UpdateSet        Verb = "update MachineSet"
	DeleteSet        Verb = "delete MachineSet"
	PutAutoscaler    Verb = "set MachineAutoscaler"
	DeleteAutoscaler Verb = "delete MachineAutoscaler"
	AddAutoscaling   Verb = "create ClusterAutoscaler"

	AddWorker    Verb = "add worker"
	RemoveWorker Verb = "remove worker"
	ForgetNode   Verb = "delete node"
	MarkNode     Verb = "mark node"
	MarkMachine  Verb = "mark machine"
)

// Step is one thing to do to one object of the cluster.
type Step struct {
	Verb Verb
	Name string
	// Why is a few words for users.
	Why string
	// Set is what a MachineSet is to be.
	Set *MachineSet
	// Range is that of a MachineAutoscaler.
	Range Range
	// Node is what a node is to be, and Labels what a machine is to have.
	Node   *Node
	Labels map[string]string
}

// String tells the step to a user.
func (s Step) String() string { return fmt.Sprintf("%s %s: %s", s.Verb, s.Name, s.Why) }

// mergeLabels returns have with want in it, and without those of owned that are not wanted.
func mergeLabels(have, want map[string]string, owned []string) map[string]string {
	out := map[string]string{}
	for k, v := range have {
		if _, wanted := want[k]; wanted || !slices.Contains(owned, k) {
			out[k] = v
		}
	}
	maps.Copy(out, want)
	return out
}

// mergeTaints is merged for taints. Those that are kept stay where they are.
func mergeTaints(have, want []corev1.Taint, owned []hivev1.TaintIdentifier) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range have {
		w, wanted := findTaint(want, taintIdentifier(t))
		switch {
		case wanted && w.Value != t.Value:
			t.Value, t.TimeAdded = w.Value, nil
			out = append(out, t)
		case wanted || !slices.Contains(owned, taintIdentifier(t)):
			out = append(out, t)
		}
	}
	for _, t := range want {
		if _, there := findTaint(out, taintIdentifier(t)); !there {
			out = append(out, t)
		}
	}
	return out
}

func taintIdentifier(t corev1.Taint) hivev1.TaintIdentifier {
	return hivev1.TaintIdentifier{Key: t.Key, Effect: t.Effect}
}

func findTaint(list []corev1.Taint, id hivev1.TaintIdentifier) (corev1.Taint, bool) {
	i := slices.IndexFunc(list, func(t corev1.Taint) bool { return taintIdentifier(t) == id })
	if i < 0 {
		return corev1.Taint{}, false
	}
	return list[i], true
}

func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(a, b corev1.Taint) bool { return taintIdentifier(a) == taintIdentifier(b) && a.Value == b.Value })
}

// computeOwned is what the pool owns from now on: what it asks for, and of what it owned
// before what there still is. The latter is dropped when it has been seen to be gone.
func (p Pool) computeOwned(labels, machineLabels []map[string]string, taints [][]corev1.Taint) OwnedMetadata {
	var o OwnedMetadata
	o.Labels = ownedKeys(p.Labels, p.Owned.Labels, labels)
	o.MachineLabels = ownedKeys(p.MachineLabels, p.Owned.MachineLabels, machineLabels)
	for _, t := range p.Taints {
		o.Taints = append(o.Taints, taintIdentifier(t))
	}
	for _, id := range p.Owned.Taints {
		if slices.ContainsFunc(taints, func(list []corev1.Taint) bool { _, there := findTaint(list, id); return there }) {
			o.Taints = append(o.Taints, id)
		}
	}
	slices.SortFunc(o.Taints, func(a, b hivev1.TaintIdentifier) int {
		return strings.Compare(a.Key+"\x00"+string(a.Effect), b.Key+"\x00"+string(b.Effect))
	})
	o.Taints = slices.Compact(o.Taints)
	return o
}

func ownedKeys(want map[string]string, owned []string, seen []map[string]string) []string {
	var out []string
	for k := range want {
		out = append(out, k)
	}
	for _, k := range owned {
		if slices.ContainsFunc(seen, func(m map[string]string) bool { _, there := m[k]; return there }) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
