// Package fleetplan explains a fleet to people: what each region has and should have, what is decided
// about it and why, what waits, and what a person can do. The command line and the console show the
// same.
//
// It is pure: it takes objects as read and the time, and returns values and texts. It computes the
// decisions again, with the code of the hub's controllers.
package fleetplan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/remedy"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

// Fleet is the result of fleet status and fleet explain, and the output of their -o json. The JSON
// is an interface: docs/fleet.md describes it, and fields are only ever added.
type Fleet struct {
	Now     time.Time `json:"now"`
	Regions []Region  `json:"regions"`
	// OtherDataPlanes are those about which nothing is decided. A view of selected regions has
	// none.
	OtherDataPlanes []OtherPlane `json:"otherDataPlanes,omitempty"`
}

// Region is a region, and the decisions about it.
type Region struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Provider  string `json:"provider"`
	Region    string `json:"region"`
	// Plan is the plan as text; Parked says why there is none.
	Plan       string     `json:"plan"`
	Parked     string     `json:"parked,omitempty"`
	Next       string     `json:"next,omitempty"`
	Types      []Type     `json:"types"`
	DataPlanes []Plane    `json:"dataPlanes"`
	Instances  []Instance `json:"instances"`
	// Failures are instances that have a data plane and are not created there as ordered.
	Failures []Failure `json:"failures"`
	// Reserved are the reserved instances that there should be.
	Reserved []Reserve `json:"reserved"`

	// Brief is the plan without the messages of the types.
	Brief string `json:"-"`
	// LooksAgain is the time until the controller reconciles the region again if nothing changes; 0
	// when it waits for a change.
	LooksAgain time.Duration `json:"-"`
}

// Type is what a region has of a type, and what it should have.
type Type struct {
	scaling.TypeReport
	BiggestUnits  int  `json:"biggestUnits"`
	SlackUnits    int  `json:"slackUnits"`
	Limit         *int `json:"limit,omitempty"`
	MinDataPlanes int  `json:"minDataPlanes"`
	MaxDataPlanes *int `json:"maxDataPlanes,omitempty"`
	// ToDo is what a person can do; nil when there is nothing to do.
	ToDo *remedy.Remedy `json:"toDo,omitempty"`
}

// Plane is a data plane, and the decision about it.
type Plane struct {
	Name      string             `json:"name"`
	Ownership v1alpha1.Ownership `json:"ownership"`
	Phase     string             `json:"phase"`
	Since     time.Time          `json:"since"`
	Created   time.Time          `json:"created"`
	// Live is whether its agent reports; nil before its first report.
	Live      *bool  `json:"live,omitempty"`
	Instances int    `json:"instances"`
	Rooms     []Room `json:"rooms"`
	// GivenUp is when a data plane that is on its way will be marked as failed.
	GivenUp *time.Time `json:"givenUp,omitempty"`
	// Decision is about removing it; nil when there is no such decision.
	Decision *scaling.Decision `json:"decision,omitempty"`
	Message  string            `json:"message"`
	// Gone is set when its cluster is gone although it was not released.
	Gone bool           `json:"gone,omitempty"`
	ToDo *remedy.Remedy `json:"toDo,omitempty"`
}

// Room is the capacity of a data plane for a type; the used units include instances that are being
// placed on it.
type Room struct {
	Type      string `json:"type"`
	MaxUnits  int    `json:"maxUnits"`
	UsedUnits int    `json:"usedUnits"`
}

// Instance is an instance that has no data plane yet.
type Instance struct {
	// Name includes the namespace.
	Name    string    `json:"name"`
	Type    string    `json:"type"`
	Size    string    `json:"size"`
	Units   int       `json:"units"`
	Created time.Time `json:"created"`
	// DataPlane is where it is being placed; empty while it waits.
	DataPlane string           `json:"dataPlane,omitempty"`
	Decision  scaling.Decision `json:"decision"`
	ToDo      *remedy.Remedy   `json:"toDo,omitempty"`
}

// buildRegionView returns the view of a region and of the decisions about it.
func (e Evaluation) buildRegionView(formatCommand remedy.CommandFormatter) Region {
	r := e.Region
	v := Region{
		Namespace: r.Namespace, Name: r.Name, Provider: r.Spec.Provider, Region: r.Spec.Region,
		Types: []Type{}, DataPlanes: []Plane{}, Instances: []Instance{}, Failures: []Failure{}, Reserved: []Reserve{},
	}
	if e.Parked != "" {
		v.Parked, v.Plan = e.Parked, "no plan: "+e.Parked
		v.Brief = v.Plan
		return v
	}
	v.Plan, v.Brief = e.Plan.Summarize(), e.summarizeBriefly()
	if v.LooksAgain = e.Plan.Next; v.LooksAgain > 0 {
		v.Next = e.Plan.Next.Round(time.Second).String()
	}
	for _, t := range e.Plan.Types {
		v.Types = append(v.Types, e.buildTypeView(t, formatCommand))
	}
	v.DataPlanes = e.buildPlaneViews(formatCommand)
	v.Instances = e.buildInstanceViews(formatCommand)
	v.Failures = e.listFailures(v.DataPlanes, formatCommand)
	v.Reserved = e.Reserved
	return v
}

// summarizeBriefly returns the plan as text without the problems of types, which other fields
// explain.
func (e Evaluation) summarizeBriefly() string {
	p := e.Plan
	p.Types = slices.Clone(p.Types)
	for n := range p.Types {
		p.Types[n].Decision.Reason = ""
	}
	words := p.Summarize()
	if words == "settled" && words != e.Plan.Summarize() {
		return "nothing can be done now"
	}
	return words
}

func (e Evaluation) buildTypeView(report scaling.TypeReport, formatCommand remedy.CommandFormatter) Type {
	t := e.findType(report.Name)
	return Type{
		TypeReport: report, BiggestUnits: slices.Max(append([]int{0}, t.Sizes...)), SlackUnits: t.Slack, Limit: t.Limit,
		MinDataPlanes: t.MinPlanes, MaxDataPlanes: t.MaxPlanes, ToDo: e.typeRemedy(report, formatCommand),
	}
}

func (e Evaluation) findType(name string) scaling.Type {
	for _, t := range e.Facts.Region.Types {
		if t.Name == name {
			return t
		}
	}
	return scaling.Type{}
}

// buildPlaneViews returns a view of each data plane of the region. Lost clusters come first, then
// the phases in the order of planePhases.
func (e Evaluation) buildPlaneViews(formatCommand remedy.CommandFormatter) []Plane {
	objects := map[string]*v1alpha1.DataPlane{}
	for _, dp := range e.Planes {
		if dp.Namespace == e.Region.Namespace {
			objects[dp.Name] = dp
		}
	}
	decisions := map[string]*scaling.Decision{}
	for i := range e.Plan.Planes {
		decisions[e.Plan.Planes[i].Name] = &e.Plan.Planes[i].Decision
	}
	on := e.instancesByPlane()
	out := []Plane{}
	for _, p := range e.Facts.Planes {
		v := newPlaneView(p, on[p.Name])
		v.Decision = decisions[p.Name]
		if dp := objects[p.Name]; dp != nil {
			v.setMessage(dp)
		} else {
			v.Message = "its name is recorded, and it is about to be created"
		}
		if up := e.Facts.Region.Up; p.Managed && isInFlightPhase(v.Phase) && up.Timeout > 0 {
			at := p.Created.Add(up.Timeout)
			v.GivenUp = &at
		}
		v.ToDo = e.planeRemedy(p, v, formatCommand)
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Plane) int {
		return cmp.Or(compareTrueFirst(a.Gone, b.Gone), cmp.Compare(phaseRank(a.Phase), phaseRank(b.Phase)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// compareTrueFirst sorts true before false.
func compareTrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// instancesByPlane returns the instances of each data plane, including those that are being placed.
func (e Evaluation) instancesByPlane() map[string][]scaling.Instance {
	going := map[string]string{}
	for _, p := range e.Plan.Placements {
		going[p.Instance] = p.DataPlane
	}
	on := map[string][]scaling.Instance{}
	for _, i := range e.Facts.Instances {
		if at := cmp.Or(i.Plane, going[i.Name]); at != "" {
			on[at] = append(on[at], i)
		}
	}
	return on
}

// planePhases are the phases in the order of their interest to people.
var planePhases = []v1alpha1.DataPlanePhase{
	v1alpha1.PhaseFailed, v1alpha1.PhaseAccepted, v1alpha1.PhaseProvisioning, v1alpha1.PhaseProvisioned, v1alpha1.PhaseWaitingForAgent,
	v1alpha1.PhaseDeprovisioning, v1alpha1.PhaseCleanup, v1alpha1.PhaseReady,
}

func phaseRank(phase string) int {
	return slices.Index(planePhases, v1alpha1.DataPlanePhase(phase))
}

// isInFlightPhase reports whether a data plane in that phase is on its way.
func isInFlightPhase(phase string) bool {
	return phaseRank(phase) >= phaseRank(string(v1alpha1.PhaseAccepted)) && phaseRank(phase) <= phaseRank(string(v1alpha1.PhaseWaitingForAgent))
}

func newPlaneView(p scaling.Plane, instances []scaling.Instance) Plane {
	v := Plane{
		Name: p.Name, Ownership: v1alpha1.Managed, Phase: cmp.Or(string(p.Phase), string(v1alpha1.PhaseAccepted)), Since: cmp.Or(p.Since, p.Created),
		Created: p.Created, Instances: len(instances), Rooms: []Room{},
	}
	if !p.Managed {
		v.Ownership = v1alpha1.Registered
	}
	for _, r := range p.Rooms {
		room := Room{Type: r.Type, MaxUnits: r.Max}
		for _, i := range instances {
			if i.Type == r.Type {
				room.UsedUnits += i.Units
			}
		}
		v.Rooms = append(v.Rooms, room)
	}
	return v
}

// setMessage sets the explanation of the data plane's state: a problem comes first, then the
// decision about it, then the message of its controller.
func (p *Plane) setMessage(dp *v1alpha1.DataPlane) {
	if c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive); c != nil {
		live := c.Status == metav1.ConditionTrue
		p.Live = &live
	}
	said := conditionMessage(dp, v1alpha1.DataPlaneReady)
	up := dp.Status.Phase == v1alpha1.PhaseReady || dp.Status.Phase == v1alpha1.PhaseDeprovisioning
	switch {
	case dp.Unreadable != "":
		p.Message = "it is not changed until it can be read: " + dp.Unreadable
	case dp.DeletionTimestamp != nil:
		p.Message = "it is being deleted" + prefixUnlessEmpty(": ", said)
	case facts.IsClusterGone(dp):
		p.Gone = true
		p.Message = said
	case up && p.Live != nil && !*p.Live:
		p.Message = cmp.Or(conditionMessage(dp, v1alpha1.DataPlaneAgentLive), "its agent does not report")
	case up && meta.IsStatusConditionFalse(dp.Status.Conditions, v1alpha1.DataPlaneReportValid):
		p.Message = conditionMessage(dp, v1alpha1.DataPlaneReportValid)
	default:
		p.Message = p.decisionMessage(dp, cmp.Or(said, phaseMessages[dp.Status.Phase]))
	}
}

// decisionMessage returns the decision about a data plane that has no problem, or said, the message
// of its controller, if there is no decision.
func (p *Plane) decisionMessage(dp *v1alpha1.DataPlane, said string) string {
	unschedulable := dp.Spec.Schedulable != nil && !*dp.Spec.Schedulable
	switch {
	case p.Decision != nil && unschedulable:
		return p.Decision.Message + "; spec.schedulable is false"
	case p.Decision != nil:
		return p.Decision.Message
	case unschedulable:
		return "spec.schedulable is false: no more instances are placed on it"
	}
	return said
}

func prefixUnlessEmpty(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}

func conditionMessage(dp *v1alpha1.DataPlane, condition string) string {
	if c := meta.FindStatusCondition(dp.Status.Conditions, condition); c != nil {
		return strings.TrimSuffix(c.Message, ".")
	}
	return ""
}

// phaseMessages are the messages for data planes without a message from their controller.
var phaseMessages = map[v1alpha1.DataPlanePhase]string{
	"":                            "it was planned",
	v1alpha1.PhaseAccepted:        "it was planned",
	v1alpha1.PhaseProvisioning:    "its claim is waiting for a running cluster",
	v1alpha1.PhaseProvisioned:     "its nodes are being added and its agent is being installed",
	v1alpha1.PhaseWaitingForAgent: "its agent has not reported yet",
	v1alpha1.PhaseReady:           "it accepts instances",
	v1alpha1.PhaseDeprovisioning:  "removal is waiting until its agent has reported once more",
	v1alpha1.PhaseCleanup:         "its cluster is being released",
	v1alpha1.PhaseFailed:          "it was not Ready in time",
}

// buildInstanceViews returns a view of each instance without a data plane, oldest first.
func (e Evaluation) buildInstanceViews(formatCommand remedy.CommandFormatter) []Instance {
	objects := map[string]*v1alpha1.ServiceInstance{}
	for _, i := range e.Instances {
		objects[types.NamespacedName{Namespace: i.Namespace, Name: i.Name}.String()] = i
	}
	facts := map[string]scaling.Instance{}
	for _, i := range e.Facts.Instances {
		facts[i.Name] = i
	}
	out := []Instance{}
	for _, p := range e.Plan.Placements {
		i, o := facts[p.Instance], objects[p.Instance]
		v := Instance{
			Name: p.Instance, Type: i.Type, Size: o.Spec.Size, Units: i.Units, Created: i.Created, DataPlane: p.DataPlane, Decision: p.Decision,
		}
		if p.Decision.Action == scaling.Wait {
			v.ToDo = e.instanceRemedy(o, i, p.Decision, formatCommand)
		}
		out = append(out, v)
	}
	return out
}
