package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Verb is what to do with an object.
type Verb string

// The verbs.
const (
	// Create makes a namespace. One that is there and not marked is somebody else's.
	Create Verb = "create"
	// Apply brings an object to what is rendered, server-side.
	Apply Verb = "apply"
	// UpdateStatus writes the status of a ManagedKafka, as an operator does.
	UpdateStatus Verb = "tell"
	// Remove deletes the object that was seen, and no other of its name.
	Remove Verb = "remove"
)

// Step is one thing to do. Steps are independent of each other, but for those of one
// instance: of these the first that fails ends the rest.
type Step struct {
	Verb Verb
	// ID is the instance's.
	ID     string
	Object *unstructured.Unstructured
}

// String is the step in words: apply Deployment kafka-1/stand-in.
func (s Step) String() string {
	name := s.Object.GetName()
	if ns := s.Object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return fmt.Sprintf("%s %s %s", s.Verb, s.Object.GetKind(), name)
}

// Plan is what to do, and what to say when it is done.
type Plan struct {
	Steps []Step
	// Report has neither time nor sender.
	Report v1alpha1.DataPlaneReport
}

// String is the plan in words, a line a step.
func (p Plan) String() string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, s.String())
	}
	return strings.Join(lines, "\n")
}
