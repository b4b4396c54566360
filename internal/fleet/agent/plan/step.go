package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Verb is the action of a step.
type Verb string

// The verbs.
const (
	// Create creates a namespace. One that exists without the agent's label belongs to somebody
	// else.
	Create Verb = "create"
	// Apply applies the rendered object, server-side.
	Apply Verb = "apply"
	// UpdateStatus writes the status of a ManagedKafka, as an operator does.
	UpdateStatus Verb = "update status of"
	// Remove deletes the observed object, and no other object of its name.
	Remove Verb = "delete"
)

// Step is one action of a plan. Steps of different instances are independent; the first failure of
// an instance ends its other steps.
type Step struct {
	Verb Verb
	// ID is the ID of the instance.
	ID     string
	Object *unstructured.Unstructured
}

// String returns the step as text, such as "apply Deployment kafka-1/stand-in".
func (s Step) String() string {
	name := s.Object.GetName()
	if ns := s.Object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Sprintf("%s %s %s", s.Verb, s.Object.GetKind(), name)
}

// Plan has the steps, and the report for after them.
type Plan struct {
	Steps []Step
	// Report has neither time nor sender.
	Report v1alpha1.DataPlaneReport
}

// String returns the plan as text, one line per step.
func (p Plan) String() string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}
