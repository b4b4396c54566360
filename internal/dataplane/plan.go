package dataplane

import (
	"fmt"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// Verb is what a step does.
type Verb string

// The steps, in the order in which a data plane sees them.
const (
	AddFinalizer      Verb = "hold"           // put the finalizer on
	RecordClusterRef  Verb = "name"           // record which cluster will be its own
	CreateClaim       Verb = "create claim"   // from a pool
	CreateCluster     Verb = "create cluster" // a cold install
	CreateMachinePool Verb = "create MachinePool"
	UpdateMachinePool Verb = "change MachinePool"
	// A cluster that is protected is not destroyed when its claim is deleted.
	ProtectCluster   Verb = "protect cluster"
	UnprotectCluster Verb = "unprotect cluster"
	CreateAgent      Verb = "create DataPlaneAgent"
	UpdateAgent      Verb = "write DataPlaneAgent"
	GrantRights      Verb = "grant the agent's rights"
	InstallAgent     Verb = "install the agent"
	RemoveAgent      Verb = "remove the agent"
	RevokeRights     Verb = "revoke the agent's rights"
	DeleteAgent      Verb = "delete DataPlaneAgent"
	DeleteClaim      Verb = "delete claim"
	DeleteCluster    Verb = "delete cluster"
	DeletePlane      Verb = "delete DataPlane"
	RemoveFinalizer  Verb = "release" // take the finalizer off
)

// Step is one thing to do. At most one of its objects is set: the one that is made, or
// what it becomes. An object that is deleted is the one that was seen.
type Step struct {
	Verb    Verb
	Ref     *v1alpha1.ClusterReference
	Claim   *hivev1.ClusterClaim
	Cluster *hivev1.ClusterDeployment
	Nodes   *hivev1.MachinePool
	Agent   *v1alpha1.DataPlaneAgent
}

// String says what the step does, and to what.
func (s Step) String() string {
	switch {
	case s.Ref != nil && s.Ref.Claim != nil:
		return fmt.Sprintf("%s claim %s", s.Verb, s.Ref.Claim.Name)
	case s.Ref != nil && s.Ref.Deployment != nil:
		return fmt.Sprintf("%s cluster %s", s.Verb, s.Ref.Deployment.Name)
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
	// Steps are done in their order, and none after one that failed.
	Steps []Step
	// Status is written when all of them have succeeded.
	Status v1alpha1.DataPlaneStatus
	// Next is when to look again, if nothing wakes us before; 0 is not at all.
	Next time.Duration
}

// HasVerb reports whether the plan has a step with that verb.
func (p Plan) HasVerb(v Verb) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Verb == v })
}

func (p *Plan) addSteps(steps ...Step) { p.Steps = append(p.Steps, steps...) }

// requeueAfter has it looked at no later than in d.
func (p *Plan) requeueAfter(d time.Duration) {
	if d > 0 && (p.Next == 0 || d < p.Next) {
		p.Next = d
	}
}
