package instance

import "hotspare.io/hotspare/api/hotspare/v1alpha1"

// A Verb is what a plan does with the finalizer of an instance.
type Verb string

// The verbs.
const (
	AddFinalizer    Verb = "add finalizer"
	RemoveFinalizer Verb = "remove finalizer"
)

// A Plan is what to write to an instance.
type Plan struct {
	// Finalizer is AddFinalizer, RemoveFinalizer or empty. Unless it is empty, the status is not
	// written.
	Finalizer Verb
	Status    v1alpha1.ServiceInstanceStatus
}
