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

// Decide says what to do and what to report. What is there keeps its place; of what is
// not there yet the first by namespace and name gets what is left. A real instance goes
// only if the hub says deleted: one that is not listed is left alone.
func Decide(s Seen) Plan {
	d := &decision{Seen: s, used: map[string]int64{}, reserved: map[string]int64{}}
	d.count()
	for _, in := range inOrder(s.Spec.Instances) {
		d.listed(in)
	}
	d.unlisted()
	d.plan.Report.Capacity = d.capacity()
	d.operator()
	return d.plan
}

type decision struct {
	Seen
	plan Plan
	// used and reserved are units, by type.
	used, reserved map[string]int64
}

func inOrder(list []v1alpha1.AgentInstance) []v1alpha1.AgentInstance {
	return slices.SortedFunc(slices.Values(list), func(a, b v1alpha1.AgentInstance) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
}

// count books what is there: the ledger is the ManagedKafkas.
func (d *decision) count() {
	for _, u := range d.World {
		if u.GetKind() != ManagedKafka.Kind {
			continue
		}
		if k := readKafka(u); !k.reserved() {
			d.used[k.kind()] += int64(k.units())
		}
	}
}

func (d *decision) do(verb Verb, id string, u *unstructured.Unstructured) {
	d.plan.Steps = append(d.plan.Steps, Step{Verb: verb, ID: id, Object: u})
}

func (d *decision) say(in v1alpha1.AgentInstance, phase v1alpha1.AgentPhase, reason, message string) *v1alpha1.InstanceReport {
	all := &d.plan.Report.Instances
	*all = append(*all, v1alpha1.InstanceReport{
		UID: in.UID, PlacementID: in.PlacementID, Name: in.Name, Reserved: in.Reserved,
		Phase: phase, Reason: reason, Message: message,
	})
	return &(*all)[len(*all)-1]
}

// listed decides about one instance of the list.
func (d *decision) listed(in v1alpha1.AgentInstance) {
	name := NamespaceOf(in)
	ns, k := d.namespace(name), d.kafka(name, in.Name)
	switch {
	case in.Deleted && ns == nil && k == nil:
		d.say(in, v1alpha1.AgentDeleted, "", "")
	case in.Deleted && in.Reserved && ns != nil:
		d.drop(in.UID, ns)
		d.say(in, v1alpha1.AgentDeleting, "", "")
	case in.Deleted:
		d.end(in, ns, k)
		d.say(in, v1alpha1.AgentDeleting, "", "")
	case ns != nil && going(ns):
		d.say(in, v1alpha1.AgentProvisioning, v1alpha1.ReasonReplacing, "What was in its namespace is on its way out.")
	case k != nil && !in.Reserved && k.past(in):
		d.end(in, ns, k)
		d.say(in, v1alpha1.AgentProvisioning, v1alpha1.ReasonReplacing, "What an earlier placement made is taken away first.")
	default:
		d.keep(in, ns, k)
	}
}

// past says whether it is of a placement that is over.
func (k *kafka) past(in v1alpha1.AgentInstance) bool {
	return k.Spec.Deleted || going(k.Unstructured) || k.placement() != in.PlacementID
}

// keep has an instance made, or kept as it should be.
func (d *decision) keep(in v1alpha1.AgentInstance, ns *unstructured.Unstructured, k *kafka) {
	pool, ok := d.Spec.Pool(in.Type)
	if !ok {
		d.refuse(in, k, v1alpha1.ReasonNoPool, fmt.Sprintf("The data plane has no nodes for type %s.", in.Type))
		return
	}
	if left := int64(pool.MaxUnits()) - d.used[in.Type]; k == nil && !in.Reserved && left < int64(in.Units) {
		d.refuse(in, k, v1alpha1.ReasonNoRoom, fmt.Sprintf("It takes %d units of type %s, and %d of %d are left.", in.Units, in.Type, max(left, 0), pool.MaxUnits()))
		return
	}
	objects, err := Render(in, pool, d.Pause, d.StandIn)
	if err != nil {
		d.book(in, k) // the hub counts it
		d.say(in, v1alpha1.AgentFailed, v1alpha1.ReasonInvalidParameters, err.Error())
		return
	}
	for _, u := range objects {
		switch {
		case u.GetKind() == Namespace.Kind && ns == nil:
			d.do(Create, in.UID, u)
		case u.GetKind() == Namespace.Kind: // its marks are why it was seen
		case !asRendered(d.World[Key{u.GetKind(), u.GetNamespace(), u.GetName()}], u):
			d.do(Apply, in.UID, u)
		}
	}
	d.book(in, k)
	d.progress(in, k)
}

// refuse is said of what is not there. What is there stays, and is told of as it is.
func (d *decision) refuse(in v1alpha1.AgentInstance, k *kafka, reason, message string) {
	if k != nil && !in.Reserved {
		d.progress(in, k)
		return
	}
	d.say(in, v1alpha1.AgentRejected, reason, message)
}

func (d *decision) book(in v1alpha1.AgentInstance, k *kafka) {
	switch {
	case in.Reserved:
		d.reserved[in.Type] += int64(in.Units)
	case k == nil:
		d.used[in.Type] += int64(in.Units)
	}
}

// progress tells how far an instance is. Of a reserved one its pods tell, which are the
// agent's; of another its operator does.
func (d *decision) progress(in v1alpha1.AgentInstance, k *kafka) {
	ns := NamespaceOf(in)
	if in.Reserved {
		if run, of := available(d.deployment(ns, true)); of > 0 && run >= of {
			d.say(in, v1alpha1.AgentReady, "", "")
			return
		}
		d.say(in, v1alpha1.AgentProvisioning, reasonInstalling, "Its pods wait for nodes.")
		return
	}
	if d.StandIn && k != nil {
		k = d.stand(in.UID, k)
	}
	phase, reason, message := phaseOf(k)
	r := d.say(in, phase, reason, message)
	if k != nil {
		r.Versions, r.Routes = k.Status.Versions, k.Status.Routes
	}
}

// phaseOf says what an operator's condition comes to.
func phaseOf(k *kafka) (phase v1alpha1.AgentPhase, reason, message string) {
	if k == nil {
		return v1alpha1.AgentProvisioning, reasonInstalling, ""
	}
	if k.misread != "" {
		return v1alpha1.AgentProvisioning, "StatusUnreadable", k.misread
	}
	c := k.ready()
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

// end takes an instance away, one thing after the other: the operator is told, and when
// it says that it is done the ManagedKafka goes, and then the namespace.
func (d *decision) end(in v1alpha1.AgentInstance, ns *unstructured.Unstructured, k *kafka) {
	switch {
	case ns == nil || going(ns):
	case k == nil:
		d.drop(in.UID, ns)
	case going(k.Unstructured):
	case !k.Spec.Deleted:
		d.do(Apply, in.UID, withoutFurther(k))
	case k.gone():
		d.do(Remove, in.UID, k.Unstructured)
	case d.StandIn:
		d.standDown(in.UID, k)
	}
}

// withoutFurther is the ManagedKafka as it is, marked as deleted: whatever else has
// changed on the hub meanwhile is of no interest to an instance that goes.
func withoutFurther(k *kafka) *unstructured.Unstructured {
	u := object(ManagedKafka, k.GetNamespace(), k.GetName(), nil)
	u.SetLabels(k.GetLabels())
	notes := map[string]string{}
	for _, n := range []string{v1alpha1.AnnotationID, v1alpha1.AnnotationPlacementID} {
		if v, ok := k.GetAnnotations()[n]; ok {
			notes[n] = v
		}
	}
	u.SetAnnotations(notes)
	spec, _, _ := unstructured.NestedMap(k.Object, "spec") // the schema has it
	if spec == nil {
		spec = map[string]any{}
	}
	spec["deleted"] = true
	u.Object["spec"] = spec
	return u
}

func (d *decision) drop(id string, ns *unstructured.Unstructured) {
	if !going(ns) {
		d.do(Remove, id, ns)
	}
}

// unlisted decides about namespaces of instances that are not on the list.
func (d *decision) unlisted() {
	listed := map[string]bool{}
	for _, in := range d.Spec.Instances {
		listed[NamespaceOf(in)] = true
	}
	inside := map[string][]*kafka{}
	var names []string
	for key, u := range d.World {
		switch {
		case key.Kind == Namespace.Kind && !listed[key.Name]:
			names = append(names, key.Name)
		case key.Kind == ManagedKafka.Kind:
			inside[key.Namespace] = append(inside[key.Namespace], readKafka(u))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.leftover(d.namespace(name), inside[name])
	}
}

// leftover: a real instance stays, unless the hub has had it marked as deleted; a
// namespace without one goes.
func (d *decision) leftover(ns *unstructured.Unstructured, kafkas []*kafka) {
	kafkas = slices.DeleteFunc(kafkas, (*kafka).reserved)
	slices.SortFunc(kafkas, func(a, b *kafka) int { return strings.Compare(a.GetName(), b.GetName()) })
	if len(kafkas) == 0 {
		d.drop(ns.GetLabels()[LabelInstance], ns)
		return
	}
	for _, k := range kafkas {
		in := v1alpha1.AgentInstance{UID: ns.GetLabels()[LabelInstance], Name: k.GetName(), PlacementID: k.placement()}
		if k.Spec.Deleted {
			d.end(in, ns, k)
			d.say(in, v1alpha1.AgentDeleting, "", "")
			continue
		}
		d.say(in, v1alpha1.AgentUnlisted, "", "The hub does not list it. It is left alone: list it with deleted to have it taken away.")
	}
}

// capacity is arithmetic on what nodes there can be, as the fleet manager's is. Reserved
// instances take nothing from the others.
func (d *decision) capacity() map[string]v1alpha1.ReportedCapacity {
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
