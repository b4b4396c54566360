package dataplane

import (
	"fmt"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Verb is the action of a step.
type Verb string

// The verbs, in the order of a data plane's lifecycle.
const (
	AddFinalizer      Verb = "add finalizer"
	RecordClusterRef  Verb = "record reference to"      // record the reference to its future cluster
	CreateClaim       Verb = "create ClusterClaim"      // from a pool
	CreateCluster     Verb = "create ClusterDeployment" // a cold install
	CreateMachinePool Verb = "create MachinePool"
	UpdateMachinePool Verb = "update MachinePool"
	// A protected cluster is not destroyed when its claim is deleted.
	ProtectCluster   Verb = "protect cluster"
	UnprotectCluster Verb = "unprotect cluster"
	CreateAgent      Verb = "create DataPlaneAgent"
	UpdateAgent      Verb = "update DataPlaneAgent"
	GrantRights      Verb = "grant the agent's permissions"
	InstallAgent     Verb = "install the agent"
	RemoveAgent      Verb = "remove the agent"
	RevokeRights     Verb = "revoke the agent's permissions"
	DeleteAgent      Verb = "delete DataPlaneAgent"
	DeleteClaim      Verb = "delete ClusterClaim"
	DeleteCluster    Verb = "delete ClusterDeployment"
	DeletePlane      Verb = "delete DataPlane"
	RemoveFinalizer  Verb = "remove finalizer"
)

// Step is one action of a plan. At most one of its objects is set: the object to create, or the
// changed object. An object to delete is the observed one.
type Step struct {
	Verb    Verb
	Ref     *v1alpha1.ClusterReference
	Claim   *hivev1.ClusterClaim
	Cluster *hivev1.ClusterDeployment
	Nodes   *hivev1.MachinePool
	Agent   *v1alpha1.DataPlaneAgent
}

// String returns the step as text, with its object.
func (s Step) String() string {
	switch {
	case s.Ref != nil && s.Ref.Claim != nil:
		return fmt.Sprintf("%s ClusterClaim %s", s.Verb, s.Ref.Claim.Name)
	case s.Ref != nil && s.Ref.Deployment != nil:
		return fmt.Sprintf("%s ClusterDeployment %s", s.Verb, s.Ref.Deployment.Name)
	case s.Claim != nil && s.Verb == CreateClaim:
		return fmt.Sprintf("%s %s from pool %s", s.Verb, s.Claim.Name, s.Claim.Spec.ClusterPoolName)
	case s.Claim != nil:
		return fmt.Sprintf("%s %s", s.Verb, s.Claim.Name)
	case s.Cluster != nil:
		return fmt.Sprintf("%s %s", s.Verb, s.Cluster.Name)
	case s.Nodes != nil:
		return fmt.Sprintf("%s %s", s.Verb, s.Nodes.Spec.Name)
	}
	return string(s.Verb)
}

// Plan is what to do about a data plane.
type Plan struct {
	// Steps are executed in order; the first failure ends the execution.
	Steps []Step
	// Status is written when all steps have succeeded.
	Status v1alpha1.DataPlaneStatus
	// Next is the delay until the next pass, unless a watch starts one before; 0 means that there
	// is none.
	Next time.Duration
}

// HasVerb reports whether the plan has a step with that verb.
func (p Plan) HasVerb(v Verb) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Verb == v })
}

func (p *Plan) addSteps(steps ...Step) { p.Steps = append(p.Steps, steps...) }

// requeueAfter makes the controller reconcile the data plane in no more than d.
func (p *Plan) requeueAfter(d time.Duration) {
	if d > 0 && (p.Next == 0 || d < p.Next) {
		p.Next = d
	}
}
