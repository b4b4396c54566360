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
	// EnsureFinalizer puts the finalizer and the describing labels on the cluster.
	EnsureFinalizer Verb = "mark"
	// RecordAttempt prepares an attempt and creates its ClusterProvision. From then on
	// the attempt has a name, and nothing has been made.
	RecordAttempt Verb = "record"
	// PublishMetadata writes the attempt's metadata to the cluster.
	PublishMetadata Verb = "publish"
	// Install asks the executor to begin the attempt, or how far it is.
	Install Verb = "install"
	// StoreCredentials stores the cluster's credentials.
	StoreCredentials Verb = "deliver"
	// MarkInstalled marks the cluster as installed.
	MarkInstalled Verb = "finish"
	// CompleteAttempt ends an attempt that succeeded.
	CompleteAttempt Verb = "complete"
	// FailAttempt ends an attempt that failed.
	FailAttempt Verb = "fail"
	// Destroy asks the executor to destroy what an infraID marks, or how far that is.
	Destroy Verb = "destroy"
	// RecordCleanup records that nothing is left of an attempt.
	RecordCleanup Verb = "bury"
	// DeleteAttempt deletes an old attempt's ClusterProvision.
	DeleteAttempt Verb = "forget"
	// CreateDeprovision creates the ClusterDeprovision.
	CreateDeprovision Verb = "open"
	// ReportDestroyFailure records in it why destroying fails.
	ReportDestroyFailure Verb = "lament"
	// CompleteDeprovision completes it.
	CompleteDeprovision Verb = "close"
	// RemoveFinalizer takes the finalizer away.
	RemoveFinalizer Verb = "release"
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
	case EnsureFinalizer:
		return "put finalizer and labels on the cluster"
	case RecordAttempt:
		return fmt.Sprintf("record attempt %d as %s", s.Attempt, s.Name)
	case PublishMetadata:
		return fmt.Sprintf("publish the metadata of attempt %d", s.Attempt)
	case StoreCredentials:
		return fmt.Sprintf("store the credentials of attempt %d", s.Attempt)
	case MarkInstalled:
		return "mark the cluster installed"
	case Destroy:
		return "destroy " + s.InfraID
	case CreateDeprovision:
		return "open the record of the destruction"
	case ReportDestroyFailure:
		return "record that destroying fails: " + s.Message
	case CompleteDeprovision:
		return "close the record of the destruction"
	case RemoveFinalizer:
		return "let the cluster go"
	default:
		return fmt.Sprintf("%s attempt %d", s.Do, s.Attempt)
	}
}

// needsAnswer reports whether the outcome of the step is part of the next decision.
func (s Step) needsAnswer() bool { return s.Do == RecordAttempt || s.Do == Install || s.Do == Destroy }

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

// NeedsAnswers reports whether a step asks something: then decide again with the answer.
func (p Plan) NeedsAnswers() bool { return slices.ContainsFunc(p.Steps, Step.needsAnswer) }

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

func (p *Plan) addSteps(steps ...Step) { p.Steps = append(p.Steps, steps...) }

// setCondition adds a condition; it takes the place of an earlier one of its type.
func (p *Plan) setCondition(typ string, status corev1.ConditionStatus, reason, message string) {
	p.dropCondition(typ)
	p.Conditions = append(p.Conditions, Condition{typ, condition.Value{Status: status, Reason: reason, Message: message}})
}

// dropCondition takes the condition of a type out of the plan: it stays as it is stored.
func (p *Plan) dropCondition(typ string) {
	p.Conditions = slices.DeleteFunc(p.Conditions, func(c Condition) bool { return c.Type == typ })
}
