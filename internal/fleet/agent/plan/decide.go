package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Decide returns what to do and what to report. Existing instances keep their units; new instances
// get the remaining units in the order of namespace and name. A real instance is deleted only if
// the hub marks it as deleted: one that is not listed is left alone.
func Decide(s Snapshot) Plan {
	d := &draft{Snapshot: s, used: map[string]int64{}, reserved: map[string]int64{}}
	d.countUsedUnits()
	for _, in := range sortInstances(s.Spec.Instances) {
		d.decideListedInstance(in)
	}
	d.decideUnlisted()
	d.plan.Report.Capacity = d.computeCapacity()
	d.reportVersions()
	return d.plan
}

type draft struct {
	Snapshot
	plan Plan
	// used and reserved are numbers of units, by type.
	used, reserved map[string]int64
}

func sortInstances(list []v1alpha1.AgentInstance) []v1alpha1.AgentInstance {
	return slices.SortedFunc(slices.Values(list), func(a, b v1alpha1.AgentInstance) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
}

// countUsedUnits counts the units of the existing ManagedKafkas.
func (d *draft) countUsedUnits() {
	for _, u := range d.World {
		if u.GetKind() != ManagedKafka.Kind {
			continue
		}
		if k := parseManagedKafka(u); !k.isReserved() {
			d.used[k.instanceType()] += int64(k.unitCount())
		}
	}
}

func (d *draft) addStep(verb Verb, id string, u *unstructured.Unstructured) {
	d.plan.Steps = append(d.plan.Steps, Step{Verb: verb, ID: id, Object: u})
}

func (d *draft) addInstanceReport(in v1alpha1.AgentInstance, phase v1alpha1.AgentPhase, reason, message string) *v1alpha1.InstanceReport {
	all := &d.plan.Report.Instances
	*all = append(*all, v1alpha1.InstanceReport{
		UID: in.UID, PlacementID: in.PlacementID, Name: in.Name, Reserved: in.Reserved,
		Phase: phase, Reason: reason, Message: message,
	})
	return &(*all)[len(*all)-1]
}

// decideListedInstance decides about one listed instance.
func (d *draft) decideListedInstance(in v1alpha1.AgentInstance) {
	name := NamespaceOf(in)
	ns, k := d.findNamespace(name), d.findManagedKafka(name, in.Name)
	switch {
	case in.Deleted && ns == nil && k == nil:
		d.addInstanceReport(in, v1alpha1.AgentDeleted, "", "")
	case in.Deleted && in.Reserved && ns != nil:
		d.deleteNamespace(in.UID, ns)
		d.addInstanceReport(in, v1alpha1.AgentDeleting, "", "")
	case in.Deleted:
		d.deleteInstance(in, ns, k)
		d.addInstanceReport(in, v1alpha1.AgentDeleting, "", "")
	case ns != nil && isTerminating(ns):
		d.addInstanceReport(in, v1alpha1.AgentProvisioning, v1alpha1.ReasonReplacing, "The earlier contents of its namespace are being deleted.")
	case k != nil && !in.Reserved && k.isFromEarlierPlacement(in):
		d.deleteInstance(in, ns, k)
		d.addInstanceReport(in, v1alpha1.AgentProvisioning, v1alpha1.ReasonReplacing, "The objects of an earlier placement are deleted first.")
	default:
		d.ensureInstance(in, ns, k)
	}
}

// isFromEarlierPlacement reports whether k is of a placement that has ended.
func (k *managedKafka) isFromEarlierPlacement(in v1alpha1.AgentInstance) bool {
	return k.Spec.Deleted || isTerminating(k.Unstructured) || k.placementID() != in.PlacementID
}

// ensureInstance plans to create an instance, or to keep it as it should be.
func (d *draft) ensureInstance(in v1alpha1.AgentInstance, ns *unstructured.Unstructured, k *managedKafka) {
	pool, ok := d.Spec.Pool(in.Type)
	if !ok {
		d.rejectInstance(in, k, v1alpha1.ReasonNoPool, fmt.Sprintf("The data plane has no nodes for type %s.", in.Type))
		return
	}
	if left := int64(pool.MaxUnits()) - d.used[in.Type]; k == nil && !in.Reserved && left < int64(in.Units) {
		d.rejectInstance(in, k, v1alpha1.ReasonNoRoom, fmt.Sprintf("The instance needs %d units of type %s, and %d of %d are left.", in.Units, in.Type, max(left, 0), pool.MaxUnits()))
		return
	}
	objects, err := Render(in, pool, d.Pause, d.StandIn)
	if err != nil {
		d.addInstanceUnits(in, k) // the hub counts its units
		d.addInstanceReport(in, v1alpha1.AgentFailed, v1alpha1.ReasonInvalidParameters, err.Error())
		return
	}
	for _, u := range objects {
		switch {
		case u.GetKind() == Namespace.Kind && ns == nil:
			d.addStep(Create, in.UID, u)
		case u.GetKind() == Namespace.Kind: // it exists with the agent's labels, or it would not be in World
		case !matchesRendered(d.World[Key{u.GetKind(), u.GetNamespace(), u.GetName()}], u):
			d.addStep(Apply, in.UID, u)
		}
	}
	d.addInstanceUnits(in, k)
	d.reportProgress(in, k)
}

// rejectInstance reports an instance that does not exist as rejected. An existing instance stays,
// and is reported as it is.
func (d *draft) rejectInstance(in v1alpha1.AgentInstance, k *managedKafka, reason, message string) {
	if k != nil && !in.Reserved {
		d.reportProgress(in, k)
		return
	}
	d.addInstanceReport(in, v1alpha1.AgentRejected, reason, message)
}

func (d *draft) addInstanceUnits(in v1alpha1.AgentInstance, k *managedKafka) {
	switch {
	case in.Reserved:
		d.reserved[in.Type] += int64(in.Units)
	case k == nil:
		d.used[in.Type] += int64(in.Units)
	}
}

// reportProgress reports the progress of an instance. A reserved instance is ready when its pods,
// which belong to the agent, run; the operator reports the progress of any other.
func (d *draft) reportProgress(in v1alpha1.AgentInstance, k *managedKafka) {
	ns := NamespaceOf(in)
	if in.Reserved {
		if run, of := availableReplicas(d.findDeployment(ns, true)); of > 0 && run >= of {
			d.addInstanceReport(in, v1alpha1.AgentReady, "", "")
			return
		}
		d.addInstanceReport(in, v1alpha1.AgentProvisioning, reasonInstalling, "Its pods are waiting for nodes.")
		return
	}
	if d.StandIn && k != nil {
		k = d.updateStandIn(in.UID, k)
	}
	phase, reason, message := instancePhase(k)
	r := d.addInstanceReport(in, phase, reason, message)
	if k != nil {
		r.Versions, r.Routes = k.Status.Versions, k.Status.Routes
	}
}

// instancePhase maps an operator's condition to a phase.
func instancePhase(k *managedKafka) (phase v1alpha1.AgentPhase, reason, message string) {
	if k == nil {
		return v1alpha1.AgentProvisioning, reasonInstalling, ""
	}
	if k.readError != "" {
		return v1alpha1.AgentProvisioning, "StatusUnreadable", k.readError
	}
	c := k.readyCondition()
	switch {
	case c.Status == metav1.ConditionTrue:
		return v1alpha1.AgentReady, c.Reason, c.Message
	case c.Reason == reasonError:
		return v1alpha1.AgentFailed, c.Reason, c.Message
	case c.Reason == reasonRejected:
		return v1alpha1.AgentRejected, c.Reason, c.Message
	case c.Reason == "":
		return v1alpha1.AgentProvisioning, reasonInstalling, c.Message
	}
	return v1alpha1.AgentProvisioning, c.Reason, c.Message
}

// deleteInstance plans the next step of deleting an instance: it marks the ManagedKafka as deleted
// for the operator, deletes the ManagedKafka when the operator is done, and then deletes the
// namespace.
func (d *draft) deleteInstance(in v1alpha1.AgentInstance, ns *unstructured.Unstructured, k *managedKafka) {
	switch {
	case ns == nil || isTerminating(ns):
	case k == nil:
		d.deleteNamespace(in.UID, ns)
	case isTerminating(k.Unstructured):
	case !k.Spec.Deleted:
		d.addStep(Apply, in.UID, markDeleted(k))
	case k.isDeleted():
		d.addStep(Remove, in.UID, k.Unstructured)
	case d.StandIn:
		d.deleteStandIn(in.UID, k)
	}
}

// markDeleted returns the ManagedKafka as it is, marked as deleted: later changes on the hub no
// longer matter to an instance that is being deleted.
func markDeleted(k *managedKafka) *unstructured.Unstructured {
	u := newObject(ManagedKafka, k.GetNamespace(), k.GetName(), nil)
	u.SetLabels(k.GetLabels())
	notes := map[string]string{}
	for _, n := range []string{v1alpha1.AnnotationID, v1alpha1.AnnotationPlacementID} {
		if v, ok := k.GetAnnotations()[n]; ok {
			notes[n] = v
		}
	}
	u.SetAnnotations(notes)
	spec, _, _ := unstructured.NestedMap(k.Object, "spec") // the schema requires it
	if spec == nil {
		spec = map[string]any{}
	}
	spec["deleted"] = true
	u.Object["spec"] = spec
	return u
}

func (d *draft) deleteNamespace(id string, ns *unstructured.Unstructured) {
	if !isTerminating(ns) {
		d.addStep(Remove, id, ns)
	}
}

// decideUnlisted decides about the namespaces of instances that are not listed.
func (d *draft) decideUnlisted() {
	listed := map[string]bool{}
	for _, in := range d.Spec.Instances {
		listed[NamespaceOf(in)] = true
	}
	inside := map[string][]*managedKafka{}
	var names []string
	for key, u := range d.World {
		switch {
		case key.Kind == Namespace.Kind && !listed[key.Name]:
			names = append(names, key.Name)
		case key.Kind == ManagedKafka.Kind:
			inside[key.Namespace] = append(inside[key.Namespace], parseManagedKafka(u))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.decideUnlistedNamespace(d.findNamespace(name), inside[name])
	}
}

// decideUnlistedNamespace keeps a real instance, unless the hub has had it marked as deleted, and
// deletes a namespace without one.
func (d *draft) decideUnlistedNamespace(ns *unstructured.Unstructured, kafkas []*managedKafka) {
	kafkas = slices.DeleteFunc(kafkas, (*managedKafka).isReserved)
	slices.SortFunc(kafkas, func(a, b *managedKafka) int { return strings.Compare(a.GetName(), b.GetName()) })
	if len(kafkas) == 0 {
		d.deleteNamespace(ns.GetLabels()[LabelInstance], ns)
		return
	}
	for _, k := range kafkas {
		in := v1alpha1.AgentInstance{UID: ns.GetLabels()[LabelInstance], Name: k.GetName(), PlacementID: k.placementID()}
		if k.Spec.Deleted {
			d.deleteInstance(in, ns, k)
			d.addInstanceReport(in, v1alpha1.AgentDeleting, "", "")
			continue
		}
		d.addInstanceReport(in, v1alpha1.AgentUnlisted, "", "The hub does not list the instance, so the agent does not change it. To delete it, list it with deleted set.")
	}
}

// computeCapacity computes the capacity from the maximum number of nodes, as the fleet manager
// does. Reserved instances do not reduce the remaining units.
func (d *draft) computeCapacity() map[string]v1alpha1.ReportedCapacity {
	out := map[string]v1alpha1.ReportedCapacity{}
	for _, p := range d.Spec.Pools {
		most := p.MaxUnits()
		out[p.Type] = v1alpha1.ReportedCapacity{
			MaxNodes: p.MaxNodes, MaxUnits: most,
			RemainingUnits: int32(max(int64(most)-d.used[p.Type], 0)),
			ReservedUnits:  int32(d.reserved[p.Type]),
		}
	}
	return out
}
