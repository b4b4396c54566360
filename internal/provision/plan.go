package provision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/condition"
)

// Verb is what a step does.
type Verb string

// The steps, in the order of a cluster's life. Each may be repeated.
const (
	// Mark puts the finalizer and the describing labels on the cluster.
	Mark Verb = "mark"
	// Record prepares an attempt and creates its ClusterProvision. From then on
	// the attempt has a name, and nothing has been made.
	Record Verb = "record"
	// Publish writes the attempt's metadata to the cluster.
	Publish Verb = "publish"
	// Install asks the executor to begin the attempt, or how far it is.
	Install Verb = "install"
	// Deliver stores the cluster's credentials.
	Deliver Verb = "deliver"
	// Finish marks the cluster as installed.
	Finish Verb = "finish"
	// Complete ends an attempt that succeeded.
	Complete Verb = "complete"
	// Fail ends an attempt that failed.
	Fail Verb = "fail"
	// Destroy asks the executor to destroy what an infraID marks, or how far that is.
	Destroy Verb = "destroy"
	// Bury records that nothing is left of an attempt.
	Bury Verb = "bury"
	// Forget deletes an old attempt's ClusterProvision.
	Forget Verb = "forget"
	// Open creates the ClusterDeprovision.
	Open Verb = "open"
	// Lament records in it why destroying fails.
	Lament Verb = "lament"
	// Close completes it.
	Close Verb = "close"
	// Release takes the finalizer away.
	Release Verb = "release"
)

// Step is one thing to do.
type Step struct {
	Do Verb
	// Attempt and Name tell the attempt and its ClusterProvision, where the step is about one.
	Attempt int
	Name    string
	// InfraID is what to destroy, where the step is about that.
	InfraID string
	// Message is the reason of a lament.
	Message string
}

// String tells the step to users.
func (s Step) String() string {
	switch s.Do {
	case Mark:
		return "put finalizer and labels on the cluster"
	case Record:
		return fmt.Sprintf("record attempt %d as %s", s.Attempt, s.Name)
	case Publish:
		return fmt.Sprintf("publish the metadata of attempt %d", s.Attempt)
	case Deliver:
		return fmt.Sprintf("store the credentials of attempt %d", s.Attempt)
	case Finish:
		return "mark the cluster installed"
	case Destroy:
		return "destroy " + s.InfraID
	case Open:
		return "open the record of the destruction"
	case Lament:
		return "record that destroying fails: " + s.Message
	case Close:
		return "close the record of the destruction"
	case Release:
		return "let the cluster go"
	default:
		return fmt.Sprintf("%s attempt %d", s.Do, s.Attempt)
	}
}

// asks reports whether the outcome of the step is part of the next decision.
func (s Step) asks() bool { return s.Do == Record || s.Do == Install || s.Do == Destroy }

// Condition is an observation to report.
type Condition struct {
	Type string
	condition.Value
}

// Plan is what to do in a pass, in this order: Steps, then Conditions are
// stored, then Last.
type Plan struct {
	Steps []Step
	// Conditions to report. A type that is not among them keeps its condition.
	Conditions []Condition
	// Last is done when the status is stored: these steps end what a later pass
	// would otherwise look at again.
	Last []Step
	// Next is when to look again if nothing wakes us; 0: when woken.
	Next time.Duration
}

// Asks reports whether a step asks something: then decide again with the answer.
func (p Plan) Asks() bool { return slices.ContainsFunc(p.Steps, Step.asks) }

// String is the plan in one line.
func (p Plan) String() string {
	var parts []string
	for _, s := range p.Steps {
		parts = append(parts, s.String())
	}
	for _, s := range p.Last {
		parts = append(parts, "last "+s.String())
	}
	if p.Next > 0 {
		parts = append(parts, "look again in "+p.Next.String())
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

func (p *Plan) do(steps ...Step) { p.Steps = append(p.Steps, steps...) }

// report adds a condition; it takes the place of an earlier one of its type.
func (p *Plan) report(typ string, status corev1.ConditionStatus, reason, message string) {
	p.keep(typ)
	p.Conditions = append(p.Conditions, Condition{typ, condition.Value{Status: status, Reason: reason, Message: message}})
}

// keep takes the condition of a type out of the plan: it stays as it is stored.
func (p *Plan) keep(typ string) {
	p.Conditions = slices.DeleteFunc(p.Conditions, func(c Condition) bool { return c.Type == typ })
}
