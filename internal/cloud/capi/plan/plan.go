// Package plan decides how to hibernate and resume a Cluster of Cluster API.
//
// Cluster API's controllers replace machines that do not answer, so the Cluster is paused before the
// first machine stops, and unpaused after the last node is ready. In between the workers stop before
// the control plane and start after it. A pause of another user is respected: it is never removed,
// and a Cluster that has one is not hibernated.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/powerorder"
)

// Goal is the state that a plan leads to.
type Goal int

// A resume is two goals: Started, until the nodes are ready, and Resumed, which ends the pause.
const (
	Stopped Goal = iota
	Started
	Resumed
)

// Machine is a Machine of the Cluster, or its hosted control plane, with the state of what runs it.
type Machine struct {
	cloud.Machine
	// Provider is what starts and stops the machine; empty if hotspare has nothing for it.
	Provider string
	// Provisioned reports whether the machine has a provider ID.
	Provisioned bool
	// Deleting reports whether the Machine is being deleted.
	Deleting bool
	// Paused reports whether Cluster API has confirmed that it has paused the Machine; true for a hosted
	// control plane.
	Paused bool
}

// HealthCheck is a MachineHealthCheck of the Cluster.
type HealthCheck struct {
	Name string
	// Paused reports whether Cluster API has confirmed that it has paused it.
	Paused bool
}

// Snapshot is one observation of a Cluster.
type Snapshot struct {
	Goal Goal
	// Name is the name of the Cluster. Deleting reports whether it is being deleted.
	Name     string
	Deleting bool
	// Paused is spec.paused; PausedByHotspare also needs the annotation. PauseConfirmed reports whether
	// Cluster API has confirmed the pause of the Cluster. Marked reports whether the annotation is there.
	Paused, PausedByHotspare, PauseConfirmed, Marked bool
	Machines                                         []Machine
	HealthChecks                                     []HealthCheck
	// ReadyNodes are the names of the nodes that are ready; for goal Resumed only.
	ReadyNodes []string
}

// Verb says what a step does.
type Verb string

// The verbs of steps.
const (
	Pause   Verb = "pause"
	Unpause Verb = "unpause"
	Stop    Verb = "stop"
	Start   Verb = "start"
)

// Step is one request. Steps of a plan are independent.
type Step struct {
	Verb Verb
	// Provider and Machines, sorted, are set for Stop and Start.
	Provider string
	Machines []string
}

// String returns the step as text.
func (s Step) String() string {
	if s.Provider == "" {
		return string(s.Verb) + " the Cluster"
	}
	return fmt.Sprintf("%s %s at %s", s.Verb, strings.Join(s.Machines, ", "), s.Provider)
}

// Plan is what to do now.
type Plan struct {
	Steps []Step
	// Wait says what must happen before another step is possible; empty for nothing.
	Wait string
	// Denied says what a person must do before another step is possible; empty for nothing.
	Denied string
}

// String returns the plan as text.
func (p Plan) String() string {
	var parts []string
	for _, s := range p.Steps {
		parts = append(parts, s.String())
	}
	if p.Wait != "" {
		parts = append(parts, "wait: "+p.Wait)
	}
	if p.Denied != "" {
		parts = append(parts, "denied: "+p.Denied)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// Decide decides what to do now. The same snapshot gives the same plan, whatever the order of its
// lists.
func Decide(s Snapshot) Plan {
	if s.Deleting {
		return Plan{Denied: fmt.Sprintf("Cluster %s is being deleted: delete its ClusterDeployment, too, or its machines stay as they are until they are deleted", s.Name)}
	}
	switch s.Goal {
	case Stopped:
		return s.decideStop()
	case Started:
		return s.planSteps(Start, powerorder.MachinesToStart(s.machines()))
	default:
		return s.decideResumed()
	}
}

// decideStop pauses the Cluster, waits for the confirmations, and stops machines.
func (s Snapshot) decideStop() Plan {
	if s.Paused && !s.PausedByHotspare {
		return Plan{Denied: fmt.Sprintf("Cluster %s is paused by another user, so hotspare leaves its machines alone: "+
			"whoever paused it can set its spec.paused to false; or set spec.powerState of the ClusterDeployment to Running", s.Name)}
	}
	if names := s.machineNames(func(m Machine) bool { return m.Provisioned && m.Provider == "" }); len(names) > 0 {
		return Plan{Denied: fmt.Sprintf("hotspare cannot stop %s: %s", strings.Join(names, ", "), s.reasonOf(names[0]))}
	}
	if !s.Paused {
		return s.decidePause()
	}
	if names := s.unconfirmed(); len(names) > 0 {
		return Plan{Wait: fmt.Sprintf("Cluster API has not confirmed the pause of %s yet: if it does not, check that its controllers run and that its version is 1.11 or later",
			strings.Join(names, ", "))}
	}
	return s.planSteps(Stop, powerorder.MachinesToStop(s.machines(), true))
}

// decidePause pauses the Cluster, unless it is just creating or deleting machines: a pause would
// keep a half-created machine for the whole hibernation, and hotspare could not find it.
func (s Snapshot) decidePause() Plan {
	if names := s.machineNames(func(m Machine) bool { return !m.Provisioned || m.Deleting }); len(names) > 0 {
		return Plan{Wait: fmt.Sprintf("Cluster API is creating or deleting %s: a Cluster is paused when all its machines have a provider ID and none is being deleted",
			strings.Join(names, ", "))}
	}
	return Plan{Steps: []Step{{Verb: Pause}}}
}

// decideResumed unpauses the Cluster once all machines run and their nodes are ready.
func (s Snapshot) decideResumed() Plan {
	if s.Paused && !s.PausedByHotspare || !s.Paused && !s.Marked {
		return Plan{}
	}
	if names := s.machineNames(func(m Machine) bool { return m.State != cloud.Running }); len(names) > 0 {
		return Plan{Wait: fmt.Sprintf("Cluster %s stays paused until all its machines run: %s", s.Name, strings.Join(names, ", "))}
	}
	names := s.machineNames(func(m Machine) bool { return m.Node != "" && !slices.Contains(s.ReadyNodes, m.Node) })
	if len(names) > 0 {
		return Plan{Wait: fmt.Sprintf("Cluster %s stays paused until the nodes of all its machines are ready: %s", s.Name, strings.Join(names, ", "))}
	}
	return Plan{Steps: []Step{{Verb: Unpause}}}
}

// unconfirmed returns what Cluster API has not confirmed to have paused.
func (s Snapshot) unconfirmed() []string {
	var out []string
	if !s.PauseConfirmed {
		out = append(out, "Cluster "+s.Name)
	}
	for _, h := range s.HealthChecks {
		if !h.Paused {
			out = append(out, "MachineHealthCheck "+h.Name)
		}
	}
	for _, name := range s.machineNames(func(m Machine) bool { return !m.Paused }) {
		out = append(out, "Machine "+name)
	}
	slices.Sort(out)
	return out
}

// planSteps returns one step for each provider of the named machines. Machines without one are
// named in Denied.
func (s Snapshot) planSteps(verb Verb, names []string) Plan {
	var p Plan
	for _, m := range s.sorted() {
		if !slices.Contains(names, m.Name) {
			continue
		}
		if m.Provider == "" {
			p.Denied = fmt.Sprintf("hotspare cannot %s %s: %s", verb, m.Name, m.Reason)
			continue
		}
		i := slices.IndexFunc(p.Steps, func(st Step) bool { return st.Provider == m.Provider })
		if i < 0 {
			i = len(p.Steps)
			p.Steps = append(p.Steps, Step{Verb: verb, Provider: m.Provider})
		}
		p.Steps[i].Machines = append(p.Steps[i].Machines, m.Name)
	}
	slices.SortFunc(p.Steps, func(a, b Step) int { return strings.Compare(a.Provider, b.Provider) })
	return p
}

func (s Snapshot) machines() cloud.Machines {
	var out cloud.Machines
	for _, m := range s.Machines {
		out = append(out, m.Machine)
	}
	return out
}

func (s Snapshot) sorted() []Machine {
	return slices.SortedFunc(slices.Values(s.Machines), func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
}

func (s Snapshot) machineNames(those func(Machine) bool) []string {
	var out []string
	for _, m := range s.sorted() {
		if those(m) {
			out = append(out, m.Name)
		}
	}
	return out
}

func (s Snapshot) reasonOf(name string) string {
	for _, m := range s.Machines {
		if m.Name == name {
			return m.Reason
		}
	}
	return ""
}
