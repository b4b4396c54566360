package provision

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hotspare.io/hotspare/internal/condition"
)

// Verb names what a step does.
type Verb string

// The steps, in the order of a cluster's life. Each may be repeated.
const (
	// EnsureFinalizer sets the finalizer and the descriptive labels on the cluster.
	EnsureFinalizer Verb = "add finalizer"
	// RecordAttempt prepares an attempt and creates its ClusterProvision. After it the attempt
	// has a name, but no resources yet.
	RecordAttempt Verb = "record"
	// PublishMetadata writes the attempt's metadata to the cluster.
	PublishMetadata Verb = "publish metadata"
	// Install asks the executor to start the attempt, or for its progress.
	Install Verb = "install"
	// StoreCredentials stores the cluster's credentials.
	StoreCredentials Verb = "store credentials"
	// MarkInstalled marks the cluster as installed.
	MarkInstalled Verb = "mark installed"
	// CompleteAttempt ends an attempt that succeeded.
	CompleteAttempt Verb = "complete"
	// FailAttempt ends an attempt that failed.
	FailAttempt Verb = "fail"
	// Destroy asks the executor to destroy what an infraID marks, or for its progress.
	Destroy Verb = "destroy"
	// RecordCleanup records that nothing is left of an attempt.
	RecordCleanup Verb = "record cleanup of"
	// DeleteAttempt deletes an old attempt's ClusterProvision.
	DeleteAttempt Verb = "delete"
	// ReportNoBundle records an event that no bundle of diagnostics is written.
	ReportNoBundle Verb = "report no bundle"
	// CreateDeprovision creates the ClusterDeprovision.
	CreateDeprovision Verb = "create deprovision"
	// ReportDestroyFailure records in the ClusterDeprovision why destroying fails.
	ReportDestroyFailure Verb = "report destroy failure"
	// CompleteDeprovision marks the ClusterDeprovision as completed.
	CompleteDeprovision Verb = "complete deprovision"
	// RemoveFinalizer removes the finalizer.
	RemoveFinalizer Verb = "remove finalizer"
)

// Step is one action.
type Step struct {
	Do Verb
	// Attempt and Name are the number of the attempt and the name of its ClusterProvision, if the
	// step concerns an attempt.
	Attempt int
	Name    string
	// InfraID is the infraID to destroy, if the step concerns one.
	InfraID string
	// Message is the reason for ReportDestroyFailure.
	Message string
}

// String returns the step as text for users.
func (s Step) String() string {
	switch s.Do {
	case EnsureFinalizer:
		return "add the finalizer and labels to the cluster"
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
	case ReportNoBundle:
		return "report that the hub stores no bundles of diagnostics"
	case CreateDeprovision:
		return "create the ClusterDeprovision"
	case ReportDestroyFailure:
		return "report that destroying fails: " + s.Message
	case CompleteDeprovision:
		return "complete the ClusterDeprovision"
	case RemoveFinalizer:
		return "remove the finalizer"
	default:
		return fmt.Sprintf("%s attempt %d", s.Do, s.Attempt)
	}
}

// needsAnswer reports whether the next decision needs the outcome of the step.
func (s Step) needsAnswer() bool { return s.Do == RecordAttempt || s.Do == Install || s.Do == Destroy }

// Condition is a condition to report.
type Condition struct {
	Type string
	condition.Value
}

// Plan is what to do in a pass, in this order: carry out Steps, store Conditions, carry out Last.
type Plan struct {
	Steps []Step
	// Conditions are the conditions to report. Conditions of other types remain unchanged.
	Conditions []Condition
	// Last is carried out after the status is stored: these steps complete work that a later pass
	// would otherwise repeat.
	Last []Step
	// Next is the delay until the next pass if no event triggers one; 0 means that only events
	// do.
	Next time.Duration
}

// NeedsAnswers reports whether a step asks an executor. If so, decide again with the answer.
func (p Plan) NeedsAnswers() bool { return slices.ContainsFunc(p.Steps, Step.needsAnswer) }

// String returns the plan in one line.
func (p Plan) String() string {
	var parts []string
	for _, s := range p.Steps {
		parts = append(parts, s.String())
	}
	for _, s := range p.Last {
		parts = append(parts, "last "+s.String())
	}
	if p.Next > 0 {
		parts = append(parts, "check again in "+p.Next.String())
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

func (p *Plan) addSteps(steps ...Step) { p.Steps = append(p.Steps, steps...) }

// setCondition adds a condition, replacing an earlier one of its type.
func (p *Plan) setCondition(typ string, status corev1.ConditionStatus, reason, message string) {
	p.dropCondition(typ)
	p.Conditions = append(p.Conditions, Condition{typ, condition.Value{Status: status, Reason: reason, Message: message}})
}

// dropCondition removes the condition of a type from the plan, so that the stored one is kept.
func (p *Plan) dropCondition(typ string) {
	p.Conditions = slices.DeleteFunc(p.Conditions, func(c Condition) bool { return c.Type == typ })
}
