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
	// Name is the pool's name in the cluster, such as worker.
	Name string
	// Replicas is the number of machines; ignored if Range is set.
	Replicas int64
	// Range limits the number of machines if the pool is autoscaled.
	Range *Range
	// Labels and Taints are for nodes, MachineLabels for machines.
	Labels, MachineLabels map[string]string
	Taints                []corev1.Taint
	// Owned is what the pool has set so far, as recorded in its status.
	Owned OwnedMetadata
	// Deleted is set if everything that belongs to the pool must be deleted.
	Deleted bool
	// DuplicateOf is an older MachinePool for the same pool of the cluster; "" if there is none.
	DuplicateOf string
}

// controlPlaneName is the name of the control plane, which is not a pool.
const controlPlaneName = "master"

// systemLabelPrefix is the prefix of the keys by which the cluster itself identifies machines.
const systemLabelPrefix = "machine.openshift.io/cluster-api-"

// unsupportedCondition returns why the pool cannot have machines; nil if it can.
func (p Pool) unsupportedCondition() *condition.Value {
	var v condition.Value
	switch {
	case p.DuplicateOf != "":
		v = blockingCondition(hivev1.ReasonDuplicatePool,
			"MachinePool %s already has spec.name %s for this cluster: delete one of the two, or create a MachinePool with another spec.name.", p.DuplicateOf, p.Name)
	case p.Name == controlPlaneName:
		v = blockingCondition(hivev1.ReasonUnsupportedName, "spec.name %s is reserved for the control plane: create a MachinePool with another spec.name.", p.Name)
	case len(validation.IsDNS1123Label(p.Name)) > 0:
		v = blockingCondition(hivev1.ReasonUnsupportedName, "spec.name %q cannot be part of a machine's name: "+
			"create a MachinePool whose spec.name has lower-case letters, digits and dashes only.", p.Name)
	default:
		for _, k := range slices.Sorted(maps.Keys(p.MachineLabels)) {
			if strings.HasPrefix(k, systemLabelPrefix) {
				v = blockingCondition(hivev1.ReasonUnsupportedSetting, "spec.machineLabels: label %s is reserved for the cluster: remove it.", k)
				return &v
			}
		}
		return nil
	}
	return &v
}

// Range limits a number of machines.
type Range struct{ Min, Max int64 }

// clamp returns the number in the range that is nearest to n.
func (r Range) clamp(n int64) int64 { return min(max(n, r.Min), max(r.Max, r.Min)) }

// OwnedMetadata names what a pool has set on nodes and machines, and removes when it is no longer
// asked for. All lists are sorted.
type OwnedMetadata struct {
	Labels, MachineLabels []string
	Taints                []hivev1.TaintIdentifier
}

// NewPool returns the Pool that a MachinePool describes.
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

// blockingCondition returns the condition of a pool for which nothing is changed.
func blockingCondition(reason, format string, args ...any) condition.Value {
	return condition.True(reason, fmt.Sprintf(format, args...))
}

var (
	configSupported  = condition.False(hivev1.ReasonConfigSupported, "The configuration is supported.")
	boundsSufficient = condition.False(hivev1.ReasonEnough, "The bounds of autoscaling are enough for each MachineSet.")
)

// Plan is what to do and what to report.
type Plan struct {
	Steps []Step
	// Unsupported and NotEnough are the conditions of those names. While either is true, there
	// are no steps.
	Unsupported, NotEnough condition.Value
	// Replicas, Sets and Owned are for the status. Owned must be stored before the steps are
	// carried out.
	Replicas int64
	Sets     []hivev1.MachineSetStatus
	Owned    OwnedMetadata
	// Waiting says what the pool waits for without a step; "" if it waits for nothing.
	Waiting string
}

// Verb names what a step does.
type Verb string

// The verbs of steps.
const (
	CreateSet        Verb = "create MachineSet"
	UpdateSet        Verb = "update MachineSet"
	DeleteSet        Verb = "delete MachineSet"
	PutAutoscaler    Verb = "set MachineAutoscaler"
	DeleteAutoscaler Verb = "delete MachineAutoscaler"
	AddAutoscaling   Verb = "create ClusterAutoscaler"

	AddWorker     Verb = "add worker"
	RemoveWorker  Verb = "remove worker"
	DeleteNode    Verb = "delete node"
	UpdateNode    Verb = "update node"
	UpdateMachine Verb = "update machine"
)

// Step is one change of one object of the cluster.
type Step struct {
	Verb Verb
	Name string
	// Why is the reason, in a few words for users.
	Why string
	// Set is the desired MachineSet.
	Set *MachineSet
	// Range is the range of a MachineAutoscaler.
	Range Range
	// Node is the desired node, and Labels are the desired labels of a machine.
	Node   *Node
	Labels map[string]string
}

// String returns the step as text for users.
func (s Step) String() string { return fmt.Sprintf("%s %s: %s", s.Verb, s.Name, s.Why) }

// mergeLabels returns have with want added, without the owned labels that are no longer wanted.
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

// mergeTaints does for taints what mergeLabels does for labels. It keeps the order of the
// remaining taints.
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

// computeOwned returns what the pool owns from now on: what it asks for, and what it owned before
// and still exists. The latter is dropped once it has been seen to be removed.
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
