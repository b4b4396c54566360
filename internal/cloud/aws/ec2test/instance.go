package ec2test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/cloud/cloudtest"
)

// Instance states, as EC2 names them.
const (
	Pending      = "pending"
	Running      = "running"
	ShuttingDown = "shutting-down"
	Terminated   = "terminated"
	Stopping     = "stopping"
	Stopped      = "stopped"
)

// codes maps states to EC2's state codes. States that EC2 does not have get their own code.
var codes = map[string]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48, Stopping: 64, Stopped: 80}

// An Instance is one VM.
type Instance struct {
	// If ID is empty, AddInstance generates one; if State is empty, it is Stopped.
	ID, State string
	Tags      map[string]string
	// Spot marks an instance of a spot request; Persistent says that the request is persistent.
	Spot, Persistent bool
	// Store marks an instance without an EBS root device: it cannot be stopped.
	Store bool
	// Profile is the name of its IAM instance profile.
	Profile string
	// Hibernation marks an instance that was launched with hibernation enabled.
	Hibernation bool
	// Unready makes the instance report that it is not ready to hibernate yet.
	Unready bool
	// HibernationRefusal is the error with which every hibernation of the instance fails.
	HibernationRefusal *Error
	// Broken makes the instance return to stopped whenever it is started.
	Broken bool
	// Refusal is the error with which every start and stop of the instance fails.
	Refusal *Error

	reason reason
	guest  cloudtest.Guest
}

// AddInstance adds an instance to the account and returns its ID.
func (s *Server) AddInstance(i Instance) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	if i.ID == "" {
		i.ID = fmt.Sprintf("i-%017x", s.made)
	}
	if i.State == "" {
		i.State = Stopped
	}
	i.Tags = maps.Clone(i.Tags)
	s.instances = append(s.instances, &i)
	return i.ID
}

// ChangeInstance changes an instance without an API call.
func (s *Server) ChangeInstance(tb testing.TB, id string, f func(*Instance)) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.findInstance(id)
	if i == nil {
		tb.Fatalf("no instance %s", id)
	}
	f(i)
}

// RemoveInstance removes an instance from the account, so that its ID is unknown.
func (s *Server) RemoveInstance(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances = slices.DeleteFunc(s.instances, func(i *Instance) bool { return i.ID == id })
}

// InstanceStates returns the state of each instance by ID.
func (s *Server) InstanceStates() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for _, i := range s.instances {
		out[i.ID] = i.State
	}
	return out
}

// AdvanceStates completes the state changes that are in progress.
func (s *Server) AdvanceStates() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.instances {
		i.advanceState()
		i.advanceGuest()
	}
}

// GuestsAreUp reports whether the operating systems of all instances are up.
func (s *Server) GuestsAreUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.instances, func(i *Instance) bool { return !i.guest.IsUp() })
}

func (i *Instance) advanceGuest() {
	switch {
	case i.State == Running:
		i.guest.Step(cloud.Running, "")
	case i.State == Stopped && i.reason.Code == hibernated.Code:
		i.guest.Step(cloud.Stopped, cloud.DepthSuspend)
	case i.State == Stopped:
		i.guest.Step(cloud.Stopped, cloud.DepthStop)
	}
}

func (i *Instance) advanceState() {
	switch {
	case i.State == Pending && i.Broken:
		i.State, i.reason = Stopped, reason{"Client.InternalError", "Client.InternalError: Client error on launch"}
	case i.State == Pending:
		i.State = Running
	case i.State == Stopping:
		i.State = Stopped
	case i.State == ShuttingDown:
		i.State = Terminated
	}
}

func (s *Server) findInstance(id string) *Instance {
	for _, i := range s.instances {
		if i.ID == id {
			return i
		}
	}
	return nil
}

// A transition returns the new state of an instance, which may be its current one.
type transition func(*Instance) (string, *Error)

func (i *Instance) stateAfterStart() (string, *Error) {
	switch {
	case i.Refusal != nil:
		return "", i.Refusal
	case i.State == Running || i.State == Pending:
		return i.State, nil
	case i.State == Stopped:
		return Pending, nil
	}
	return "", i.incorrectStateError("started")
}

func (i *Instance) stateAfterStop() (string, *Error) {
	switch {
	case i.Refusal != nil:
		return "", i.Refusal
	case i.State == Stopped || i.State == Stopping:
		return i.State, nil
	case i.State != Running:
		return "", i.incorrectStateError("stopped")
	case i.Spot && !i.Persistent:
		return "", newAPIError(http.StatusBadRequest, "UnsupportedOperation", "You can't stop the Amazon EC2 instance '%s' because it is associated with a "+
			"one-time Spot Instance request. You can only stop Amazon EC2 instances associated with persistent Spot Instance requests.", i.ID)
	case i.Store:
		return "", newAPIError(http.StatusBadRequest, "UnsupportedOperation", "The instance '%s' does not have an 'ebs' root device type and cannot be stopped.", i.ID)
	}
	return Stopping, nil
}

// stateAfterHibernate is stateAfterStop for a call with parameter Hibernate.
func (i *Instance) stateAfterHibernate() (string, *Error) {
	next, err := i.stateAfterStop()
	switch {
	case err != nil || i.State != Running:
		return next, err
	case !i.Hibernation:
		return "", newAPIError(http.StatusBadRequest, "UnsupportedHibernationConfiguration",
			"These instances were not launched with hibernation enabled: %s", i.ID)
	case i.HibernationRefusal != nil:
		return "", i.HibernationRefusal
	case i.Unready:
		return "", newAPIError(http.StatusBadRequest, "UnsupportedOperation", "Instance %s is not ready to hibernate yet, retry in a few minutes", i.ID)
	}
	return next, nil
}

func (i *Instance) stateAfterTerminate() (string, *Error) {
	if i.State == Terminated {
		return Terminated, nil
	}
	return ShuttingDown, nil
}

func (i *Instance) incorrectStateError(done string) *Error {
	return newAPIError(http.StatusBadRequest, "IncorrectInstanceState", "The instance '%s' is not in a state from which it can be %s.", i.ID, done)
}

// Reasons of stopped instances.
var (
	shutDown   = reason{"Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"}
	hibernated = reason{"Client.UserInitiatedHibernate", "Client.UserInitiatedHibernate: User initiated hibernate"}
)

// stopInstances executes StopInstances.
func (s *Server) stopInstances(q query) (any, *Error) {
	if q.Get("Hibernate") == "true" {
		return s.changeInstances(q, "StopInstancesResponse", hibernated, (*Instance).stateAfterHibernate)
	}
	return s.changeInstances(q, "StopInstancesResponse", shutDown, (*Instance).stateAfterStop)
}

// changeInstances applies a transition to all instances of a call, or to none; why is the reason that they
// then have.
func (s *Server) changeInstances(q query, response string, why reason, to transition) (any, *Error) {
	ids := q.listValues("InstanceId")
	if len(ids) == 0 {
		return nil, newAPIError(http.StatusBadRequest, "MissingParameter", "The request must contain the parameter InstanceId")
	}
	var found []*Instance
	var next []string
	for _, id := range ids {
		if !strings.HasPrefix(id, "i-") {
			return nil, newAPIError(http.StatusBadRequest, "InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		i := s.findInstance(id)
		if i == nil {
			return nil, newAPIError(http.StatusBadRequest, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		state, err := to(i)
		if err != nil {
			return nil, err
		}
		found, next = append(found, i), append(next, state)
	}
	out := newChanges(response)
	for n, i := range found {
		out.Instances = append(out.Instances, change{i.ID, newInstanceState(next[n]), newInstanceState(i.State)})
		if i.State != next[n] {
			i.State, i.reason = next[n], why
		}
		if i.State == Pending {
			i.reason = reason{}
		}
	}
	return out, nil
}
