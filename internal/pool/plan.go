package pool

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verb is what a step does.
type Verb string

// The verbs, in the order in which a plan has them.
const (
	// Bind gives a running cluster to a claim, or finishes giving it.
	Bind Verb = "bind"
	// Start and Sleep tell a cluster what to be.
	Start Verb = "start"
	Sleep Verb = "hibernate"
	// SetPosition writes into a waiting claim its position and when a cluster is likely to run.
	SetPosition Verb = "set position"
	// Create makes a new cluster.
	Create Verb = "create"
	// Delete destroys a cluster.
	Delete Verb = "delete"
)

// Step is one thing to do. Steps are independent: each may fail or be repeated
// without harm to the others.
type Step struct {
	Verb Verb `json:"verb"`
	// Cluster is empty for a Create: its name is chosen when it is recorded.
	Cluster string `json:"cluster,omitempty"`
	// Claim is set for a Bind and a SetPosition.
	Claim string `json:"claim,omitempty"`
	// Position and Ready are set for a SetPosition, as in Wait.
	Position int       `json:"position,omitempty"`
	Ready    time.Time `json:"ready,omitzero"`
	// Customization is set for a Create in a pool with an inventory.
	Customization string `json:"customization,omitempty"`
	// Reason is why, in words.
	Reason string `json:"reason"`
	// Later is set for a creation or deletion that this pass leaves for a later one.
	Later bool `json:"later,omitempty"`
	// Cause is why, for programs.
	Cause Cause `json:"cause"`
}

// String reads as a sentence: "bind x to b: oldest claim, oldest running cluster".
func (s Step) String() string {
	switch s.Verb {
	case Bind:
		return fmt.Sprintf("bind %s to %s: %s", s.Claim, s.Cluster, s.Reason)
	case SetPosition:
		return fmt.Sprintf("set position of %s to %d: %s", s.Claim, s.Position, s.Reason)
	case Create:
		if s.Customization != "" {
			return fmt.Sprintf("create a cluster with %s: %s", s.Customization, s.Reason)
		}
		return "create a cluster: " + s.Reason
	default:
		return fmt.Sprintf("%s %s: %s", s.Verb, s.Cluster, s.Reason)
	}
}

// Plan is what to do next, and what to tell of it.
type Plan struct {
	Steps  []Step
	Report Report
	// Next is when to look again though nothing changed; 0 when only a change matters.
	Next time.Duration
}

// StepsOf returns the steps with that verb, in order.
func (p Plan) StepsOf(v Verb) []Step {
	var out []Step
	for _, s := range p.Steps {
		if s.Verb == v {
			out = append(out, s)
		}
	}
	return out
}

// DueStepsOf returns the steps with that verb that are taken now, in order.
func (p Plan) DueStepsOf(v Verb) []Step {
	return slices.DeleteFunc(p.StepsOf(v), func(s Step) bool { return s.Later })
}

// CountSteps is the number of steps of a kind.
func (p Plan) CountSteps(v Verb) int {
	n := 0
	for i := range p.Steps {
		if p.Steps[i].Verb == v {
			n++
		}
	}
	return n
}

// String has one line a step.
func (p Plan) String() string {
	lines := make([]string, len(p.Steps))
	for i, s := range p.Steps {
		lines[i] = s.String()
	}
	return strings.Join(lines, "\n")
}

// Report is what the pool's status tells. It foresees the plan's bindings, and
// nothing else of the plan.
type Report struct {
	// Count has the number of members in each phase.
	Count map[Phase]int
	// Waiting is the number of claims that still wait.
	Waiting int
	// Queue has the claims that wait, in their order.
	Queue []Wait
	// Full is set when there is no room for another cluster, By what limits it, and NoRoom says it in words.
	Full   bool
	By     Limit
	NoRoom string
	// Short is how many clusters are wanted that this plan does not create, and Hindrance
	// says why, in words. A pool that is being deleted wants none.
	Short     int
	Hindrance string
	// Stale and Unversioned name unclaimed members that differ from the pool, or do not say; sorted.
	Stale, Unversioned []string
	// Orphans are the claimed members whose claim does not exist, by name, and that claim.
	Orphans map[string]string
	// Left names the members that keep a deleted pool from going; sorted. Empty while the pool is not being deleted.
	Left []string
	// Progress is whether the pool gets on, and Blocked, for a pool that does not, what it
	// waits for, in words.
	Progress Progress
	Blocked  string
	// Refused names the members that are to be deleted when maxConcurrent allows it; sorted.
	// Busy says, then and when Hindrance is maxConcurrent, what takes it up.
	Refused []string
	Busy    string
	// Failing has the deletions that do not get on, with the reason, by name.
	Failing map[string]string
	// InDemand is set when the pool served a claim a moment ago.
	InDemand bool
	// Words is the plan for people: one sentence, stable from pass to pass.
	Words string
}

// UnclaimedCount is the number of unclaimed members, broken ones too, as status.size has it.
func (r Report) UnclaimedCount() int {
	return r.Count[Installing] + r.Count[Standby] + r.Count[Assignable] + r.Count[Broken] + r.Count[Unreadable]
}

// Progress is whether a pool gets on.
type Progress string

// A pool is in exactly one of these.
const (
	// Settled: it has what it is asked for, and nothing is under way.
	Settled Progress = "settled"
	// Advancing: something is under way that will end by itself.
	Advancing Progress = "advancing"
	// Held: something is to be done, and nothing is done until somebody else acts.
	Held Progress = "held"
)

// Limit is what limits a pool's clusters.
type Limit string

// What can leave no room for another cluster.
const (
	ByMaxSize   Limit = "maxSize"
	ByPlatform  Limit = "platform"
	ByInventory Limit = "inventory"
)
