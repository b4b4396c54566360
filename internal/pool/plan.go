package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Verb is what a step does.
type Verb string

// The verbs, in the order of the steps in a plan.
const (
	// AddFinalizer adds hotspare's finalizer to the pool, RemoveFinalizer removes it.
	AddFinalizer    Verb = "add finalizer"
	RemoveFinalizer Verb = "remove finalizer"
	// Bind binds a running cluster to a claim, or completes a binding.
	Bind Verb = "bind"
	// Start and Hibernate set the power state of a cluster. Hibernate also puts one that sleeps deeper.
	Start     Verb = "start"
	Hibernate Verb = "hibernate"
	// Bootstrap lets a cluster that was installed before the pool had steps take them.
	Bootstrap Verb = "bootstrap"
	// SetPosition writes a waiting claim's position, and when a cluster for it is likely to run,
	// into its status.
	SetPosition Verb = "set position"
	// ReportInvalid writes into the status of a customization why it does not apply to the pool.
	ReportInvalid Verb = "report invalid"
	// DropName removes a name that is recorded for a new cluster from the pool's status.
	DropName Verb = "drop name"
	// CompleteCreation creates what is missing of a cluster whose name was recorded by an earlier
	// pass.
	CompleteCreation Verb = "complete creation"
	// Create records a name in the pool's status and creates a cluster under it. In a pool with an
	// inventory, the cluster first acquires the lease of its customization.
	Create Verb = "create"
	// Delete deletes a cluster.
	Delete Verb = "delete"
)

// A Step is one action. Each may fail or be repeated without harm to the others; a step with After is
// not executed if that one fails.
type Step struct {
	Verb Verb `json:"verb"`
	// Cluster is the name of a cluster, or the recorded name of a new one. In Decide's plan it is
	// empty for a Create: the name is chosen when it is recorded in the pool's status.
	Cluster string `json:"cluster,omitempty"`
	// Claim is set for Bind and SetPosition.
	Claim string `json:"claim,omitempty"`
	// Position and Ready are set for SetPosition, as in Wait.
	Position int       `json:"position,omitempty"`
	Ready    time.Time `json:"ready,omitzero"`
	// Power is set for CompleteCreation, and for as many Creates as a pass executes: the power state with which the cluster is
	// created.
	Power Power `json:"power,omitempty"`
	// Depth is set for Hibernate, and with Power Hibernating, in a pool with a ladder of depths: the depth at which the
	// cluster sleeps.
	Depth string `json:"depth,omitempty"`
	// After is set for a Bind of a claim of a set of which no claim has a cluster: it is executed only after the Bind of
	// this claim has succeeded.
	After string `json:"after,omitempty"`
	// Customization is set for ReportInvalid, and for Create and CompleteCreation in a pool with an
	// inventory.
	Customization string `json:"customization,omitempty"`
	// Reason explains the step to people.
	Reason string `json:"reason"`
	// Later is set for a creation or deletion that this pass postpones.
	Later bool `json:"later,omitempty"`
	// Cause explains the step to programs.
	Cause Cause `json:"cause"`
}

// String returns the step as text, such as "bind x to b: oldest claim, oldest running cluster".
func (s Step) String() string {
	switch s.Verb {
	case Bind:
		return fmt.Sprintf("bind %s to %s: %s", s.Claim, s.Cluster, s.Reason)
	case SetPosition:
		return fmt.Sprintf("set position of %s to %d: %s", s.Claim, s.Position, s.Reason)
	case AddFinalizer, RemoveFinalizer:
		return fmt.Sprintf("%s: %s", s.Verb, s.Reason)
	case ReportInvalid:
		return fmt.Sprintf("report customization %s as invalid: %s", s.Customization, s.Reason)
	case DropName:
		return fmt.Sprintf("drop the recorded name %s: %s", s.Cluster, s.Reason)
	case CompleteCreation:
		return fmt.Sprintf("complete the creation of %s%s: %s", s.Cluster, s.withCustomization(), s.Reason)
	case Hibernate:
		return fmt.Sprintf("hibernate %s%s: %s", s.Cluster, s.atDepth(), s.Reason)
	case Create:
		return fmt.Sprintf("create a cluster%s: %s", s.withCustomization(), s.Reason)
	default:
		return fmt.Sprintf("%s %s: %s", s.Verb, s.Cluster, s.Reason)
	}
}

func (s Step) atDepth() string {
	if s.Depth == "" {
		return ""
	}
	return " at depth " + s.Depth
}

func (s Step) withCustomization() string {
	if s.Customization == "" {
		return ""
	}
	return " with " + s.Customization
}

// A Plan is what to do next, and what to report.
type Plan struct {
	Steps  []Step
	Report Report
	// Next is the time until the pool must be reconciled again even if nothing changes; 0 if only a
	// change matters.
	Next time.Duration
}

// StepsOf returns the steps with any of the verbs, in order.
func (p Plan) StepsOf(verbs ...Verb) []Step {
	var out []Step
	for _, s := range p.Steps {
		if slices.Contains(verbs, s.Verb) {
			out = append(out, s)
		}
	}
	return out
}

// DueStepsOf returns the steps with any of the verbs that are not postponed, in order.
func (p Plan) DueStepsOf(verbs ...Verb) []Step {
	return slices.DeleteFunc(p.StepsOf(verbs...), func(s Step) bool { return s.Later })
}

// CountSteps returns the number of steps with verb v.
func (p Plan) CountSteps(v Verb) int {
	n := 0
	for i := range p.Steps {
		if p.Steps[i].Verb == v {
			n++
		}
	}
	return n
}

// String returns one line per step.
func (p Plan) String() string {
	lines := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}

// A Report is the content of the pool's status. It already counts the plan's bindings as done, and
// no other steps of the plan.
type Report struct {
	// Unreadable explains why the pool could not be read completely. Of the other fields, only Words is set then.
	Unreadable string
	// Count is the number of members in each phase.
	Count map[Phase]int
	// Waiting is the number of claims that still wait.
	Waiting int
	// Queue lists the waiting claims, in order.
	Queue []Wait
	// UnservableSets are the sets that the pool cannot serve, sorted. Their claims are not in the queue.
	UnservableSets []UnservableSet
	// Full is set if there is no room for another cluster; By is the limit, and NoRoom describes it
	// as text.
	Full   bool
	By     Limit
	NoRoom string
	// Short is the number of wanted clusters that this plan does not create, and Hindrance explains
	// why. A pool that is being deleted wants none.
	Short     int
	Hindrance string
	// Stale names unclaimed members that differ from the pool, Unversioned those that record no
	// version; both are sorted.
	Stale, Unversioned []string
	// FailedSteps is the next value of Settings.FailedSteps. StepsFail is set if the steps of the pool have failed and no cluster has
	// completed them since.
	FailedSteps FailedSteps
	StepsFail   bool
	// Orphans maps the claimed members whose claim does not exist to that claim.
	Orphans map[string]string
	// Left names the members that block the deletion of the pool, sorted. It is empty while the
	// pool is not being deleted.
	Left []string
	// Progress is whether the pool makes progress. Blocked describes what a pool without progress
	// waits for.
	Progress Progress
	Blocked  string
	// Refused names the members that are deleted as soon as maxConcurrent allows it, sorted. If
	// there are any, or if Hindrance is maxConcurrent, Busy describes what uses maxConcurrent up.
	Refused []string
	Busy    string
	// Failing maps the members whose deletion makes no progress to the reason.
	Failing map[string]string
	// InDemand is set if the pool served a claim recently.
	InDemand bool
	// Words is the plan as one sentence for people, stable from pass to pass.
	Words string
}

// UnclaimedCount returns the number of unclaimed members, including broken ones, as in status.size.
func (r Report) UnclaimedCount() int {
	return r.Count[Installing] + r.Count[Standby] + r.Count[Assignable] + r.Count[Broken] + r.Count[Unreadable]
}

// Progress is whether a pool makes progress.
type Progress string

// The values of Progress. A pool is in exactly one of them.
const (
	// Settled means that the pool has the clusters it should have, and nothing is in progress.
	Settled Progress = "settled"
	// Advancing means that something is in progress that ends automatically.
	Advancing Progress = "advancing"
	// Held means that something remains to be done, and that it waits for somebody else to act.
	Held Progress = "held"
)

// A Limit is what limits the number of a pool's clusters.
type Limit string

// The limits that can leave no room for another cluster.
const (
	ByMaxSize   Limit = "maxSize"
	ByPlatform  Limit = "platform"
	ByInventory Limit = "inventory"
)
