package recipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/cloud"
)

// Exit codes of a verb. Any other code means that it failed.
const (
	exitDone    = 0
	exitGoing   = 10
	exitInvalid = 20
	exitNoRoom  = 30
)

// Outcome is what the exit code of a verb means.
type Outcome string

const (
	// Done: the verb has succeeded.
	Done Outcome = "Done"
	// Going: the work continues; call the verb again.
	Going Outcome = "Going"
	// Invalid: the request is wrong. Nothing is retried until it changes.
	Invalid Outcome = "Invalid"
	// NoRoom: the platform has no room for another cluster now.
	NoRoom Outcome = "NoRoom"
	// Failed: everything else, a verb that was killed included.
	Failed Outcome = "Failed"
)

func outcomeOf(code int) Outcome {
	switch code {
	case exitDone:
		return Done
	case exitGoing:
		return Going
	case exitInvalid:
		return Invalid
	case exitNoRoom:
		return NoRoom
	}
	return Failed
}

// Input is what a verb reads from input.json in its state folder.
type Input struct {
	APIVersion string `json:"apiVersion"`
	Verb       Verb   `json:"verb"`
	// Namespace, Name and UID are those of the ClusterDeployment.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Attempt counts the attempts to create this cluster, from 0.
	Attempt int `json:"attempt"`
	// InfraID marks everything that belongs to the cluster. Prepare does not have it yet, unless the
	// recipe has no program prepare.
	InfraID string `json:"infraID,omitempty"`
	// Metadata is what prepare returned, for recipes that need more than the infraID to destroy.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// With are the parameters, with their defaults.
	With map[string]string `json:"with"`
	// Image is the image to load; only load-image has it.
	Image string `json:"image,omitempty"`
}

// Prepared is the answer of prepare.
type Prepared struct {
	APIVersion string          `json:"apiVersion"`
	InfraID    string          `json:"infraID"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
}

// Observation is the answer of observe.
type Observation struct {
	APIVersion string    `json:"apiVersion"`
	Machines   []Machine `json:"machines"`
}

// Machine is one machine of an Observation.
type Machine struct {
	Name         string      `json:"name"`
	ControlPlane bool        `json:"controlPlane,omitempty"`
	State        cloud.State `json:"state"`
	// Reason explains Failed and Unknown.
	Reason string `json:"reason,omitempty"`
}

const (
	// MaxAnswer bounds the standard output of a verb, in bytes.
	MaxAnswer = 1 << 20
	// MaxMetadata bounds the metadata of prepare, in bytes: it is stored in the ClusterDeployment.
	MaxMetadata = 16 << 10
	// MaxMachines bounds an Observation.
	MaxMachines = 5000
)

// infraID is short and plain enough for labels, tags and DNS names on every platform.
var infraID = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

const maxInfraID = 63

// ParsePrepared reads the answer of prepare.
func ParsePrepared(answer []byte) (Prepared, error) {
	var p Prepared
	if err := parseAnswer(Prepare, answer, &p, &p.APIVersion); err != nil {
		return Prepared{}, err
	}
	switch {
	case len(p.InfraID) > maxInfraID || !infraID.MatchString(p.InfraID):
		return Prepared{}, fmt.Errorf("%s printed infraID %q: use at most %d lower-case letters, digits and single dashes, and start with a letter", Prepare, shorten(p.InfraID), maxInfraID)
	case len(p.Metadata) > MaxMetadata:
		return Prepared{}, fmt.Errorf("%s printed metadata of %d bytes: use at most %d", Prepare, len(p.Metadata), MaxMetadata)
	}
	return p, nil
}

var machineStates = []cloud.State{cloud.Running, cloud.Starting, cloud.Stopped, cloud.Stopping, cloud.Failed, cloud.Unknown}

// ParseObservation reads the answer of observe. It sorts the machines by name.
func ParseObservation(answer []byte) (cloud.Machines, error) {
	var o Observation
	if err := parseAnswer(Observe, answer, &o, &o.APIVersion); err != nil {
		return nil, err
	}
	if len(o.Machines) > MaxMachines {
		return nil, fmt.Errorf("%s printed %d machines: a cluster has at most %d", Observe, len(o.Machines), MaxMachines)
	}
	ms := make(cloud.Machines, 0, len(o.Machines))
	seen := map[string]bool{}
	for i, m := range o.Machines {
		switch {
		case m.Name == "" || len(m.Name) > 253:
			return nil, fmt.Errorf("%s printed machine %d with name %q: each machine needs a name of at most 253 bytes", Observe, i, shorten(m.Name))
		case seen[m.Name]:
			return nil, fmt.Errorf("%s printed machine %q twice: names are unique in a cluster", Observe, m.Name)
		case !slices.Contains(machineStates, m.State):
			return nil, fmt.Errorf("%s printed machine %q in state %q: use one of %s", Observe, m.Name, shorten(string(m.State)), joinStates())
		}
		seen[m.Name] = true
		if m.Reason == "" && (m.State == cloud.Failed || m.State == cloud.Unknown) {
			m.Reason = "the recipe gives no reason"
		}
		ms = append(ms, cloud.Machine{Name: m.Name, ControlPlane: m.ControlPlane, State: m.State, Reason: m.Reason})
	}
	ms.SortByName()
	return ms, nil
}

// parseAnswer reads one JSON object. Fields that this version does not know are left out, so that a
// recipe may print more for a later one.
func parseAnswer(v Verb, answer []byte, into any, version *string) error {
	if len(bytes.TrimSpace(answer)) == 0 {
		return fmt.Errorf("%s printed nothing: it must print a JSON object with apiVersion %s", v, APIVersion)
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s printed %q, which is not a JSON object (%w): print messages to standard error", v, shorten(string(answer)), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s printed something after its JSON object: print messages to standard error", v)
	}
	if *version != APIVersion {
		return fmt.Errorf("%s printed apiVersion %q: this hotspare understands %s", v, shorten(*version), APIVersion)
	}
	return nil
}

// shorten quotes no more of an answer than a condition can show.
func shorten(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func joinStates() string {
	words := make([]string, len(machineStates))
	for i, s := range machineStates {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
