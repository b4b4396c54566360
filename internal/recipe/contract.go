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
	"hotspare.io/hotspare/internal/redact"
)

// Exit codes of a verb. All other codes mean that the verb failed.
const (
	exitDone       = 0
	exitInProgress = 10
	exitInvalid    = 20
	exitNoRoom     = 30
)

// Outcome is the result of a verb, derived from its exit code.
type Outcome string

const (
	// Done: the verb has succeeded.
	Done Outcome = "Done"
	// InProgress: the verb has not finished its work and must be called again.
	InProgress Outcome = "InProgress"
	// Invalid: the request is invalid. Do not retry it until it changes.
	Invalid Outcome = "Invalid"
	// NoRoom: the platform has no capacity for another cluster now. Retry later.
	NoRoom Outcome = "NoRoom"
	// Failed: the verb exited with another code, was killed, or broke the contract.
	Failed Outcome = "Failed"
)

func outcomeOfExitCode(code int) Outcome {
	switch code {
	case exitDone:
		return Done
	case exitInProgress:
		return InProgress
	case exitInvalid:
		return Invalid
	case exitNoRoom:
		return NoRoom
	}
	return Failed
}

// Input is the content of input.json, which a verb reads from its state folder.
type Input struct {
	APIVersion string `json:"apiVersion"`
	Verb       Verb   `json:"verb"`
	// Namespace, Name and UID are those of the ClusterDeployment.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Attempt counts the attempts to create this cluster, from 0.
	Attempt int `json:"attempt"`
	// InfraID identifies all resources of the cluster. It is empty in the input of prepare.
	InfraID string `json:"infraID,omitempty"`
	// Metadata is the metadata that prepare returned. Destroy receives it too.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// With contains the parameters, including defaults.
	With map[string]string `json:"with"`
	// Image is the image that load-image loads; empty for other verbs.
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

// Machine is a machine in an Observation.
type Machine struct {
	Name         string      `json:"name"`
	ControlPlane bool        `json:"controlPlane,omitempty"`
	State        cloud.State `json:"state"`
	// Node is false if the machine is no node of the cluster, as one that runs only its API; nil means
	// true.
	Node *bool `json:"node,omitempty"`
	// Reason is the reason for the states Failed and Unknown, for users.
	Reason string `json:"reason,omitempty"`
}

const (
	// MaxAnswer is the maximum size of a verb's standard output, in bytes.
	MaxAnswer = 1 << 20
	// MaxMetadata is the maximum size of the metadata of prepare, in bytes. The ClusterDeployment
	// stores it.
	MaxMetadata = 16 << 10
	// MaxMachines is the maximum number of machines in an Observation.
	MaxMachines = 5000
)

// infraIDPattern matches values that are valid as labels, tags and DNS labels on every platform.
var infraIDPattern = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

const (
	maxInfraID     = 63
	maxMachineName = 253
	// maxQuote and maxReason are the maximum sizes, in bytes, of what is quoted from an answer and of
	// the reason of a machine. Conditions contain both.
	maxQuote  = 80
	maxReason = 1024
)

// scrubber removes secrets from a text.
type scrubber func(text string) string

// scrubPatterns removes everything that looks like a secret.
func scrubPatterns(text string) string { return redact.Text(text) }

// quote returns a part of an answer for an error message: without secrets, and shortened afterward,
// because a part of a secret would not be found.
func (s scrubber) quote(text string) string { return shortenText(s(text), maxQuote) }

// ParsePrepared parses the answer of prepare.
func ParsePrepared(answer []byte) (Prepared, error) {
	return parsePrepared(answer, scrubPatterns)
}

func parsePrepared(answer []byte, scrub scrubber) (Prepared, error) {
	var p Prepared
	if err := parseAnswer(Prepare, answer, &p, &p.APIVersion, scrub); err != nil {
		return Prepared{}, err
	}
	switch {
	case len(p.InfraID) > maxInfraID || !infraIDPattern.MatchString(p.InfraID):
		return Prepared{}, fmt.Errorf("%s printed infraID %q: use at most %d lowercase letters, digits and single hyphens, and start with a letter",
			Prepare, scrub.quote(p.InfraID), maxInfraID)
	case len(p.Metadata) > MaxMetadata:
		return Prepared{}, fmt.Errorf("%s printed metadata of %d bytes: use at most %d", Prepare, len(p.Metadata), MaxMetadata)
	}
	return p, nil
}

var machineStates = []cloud.State{cloud.Running, cloud.Starting, cloud.Stopped, cloud.Stopping, cloud.Failed, cloud.Unknown}

// ParseObservation parses the answer of observe and returns the machines, sorted by name.
func ParseObservation(answer []byte) (cloud.Machines, error) {
	return parseObservation(answer, scrubPatterns)
}

func parseObservation(answer []byte, scrub scrubber) (cloud.Machines, error) {
	var o Observation
	if err := parseAnswer(Observe, answer, &o, &o.APIVersion, scrub); err != nil {
		return nil, err
	}
	if len(o.Machines) > MaxMachines {
		return nil, fmt.Errorf("%s printed %d machines: a cluster has at most %d", Observe, len(o.Machines), MaxMachines)
	}
	ms := make(cloud.Machines, 0, len(o.Machines))
	seen := map[string]bool{}
	for i, m := range o.Machines {
		switch {
		case m.Name == "" || len(m.Name) > maxMachineName:
			return nil, fmt.Errorf("%s printed machine %d with name %q: each machine needs a name of at most %d bytes", Observe, i, scrub.quote(m.Name), maxMachineName)
		case seen[m.Name]:
			return nil, fmt.Errorf("%s printed machine %q twice: use unique names", Observe, scrub.quote(m.Name))
		case !slices.Contains(machineStates, m.State):
			return nil, fmt.Errorf("%s printed machine %q in state %q: use one of %s", Observe, scrub.quote(m.Name), scrub.quote(string(m.State)), joinNames(machineStates))
		}
		seen[m.Name] = true
		if m.Reason == "" && (m.State == cloud.Failed || m.State == cloud.Unknown) {
			m.Reason = "the recipe reports no reason"
		}
		ms = append(ms, cloud.Machine{Name: m.Name, ControlPlane: m.ControlPlane, State: m.State, NoNode: m.Node != nil && !*m.Node, Reason: shortenText(scrub(m.Reason), maxReason)})
	}
	ms.SortByName()
	return ms, nil
}

// parseAnswer parses one JSON object. It ignores unknown fields, so that a recipe can support a later
// version of the contract too.
func parseAnswer(v Verb, answer []byte, into any, version *string, scrub scrubber) error {
	if len(bytes.TrimSpace(answer)) == 0 {
		return fmt.Errorf("%s printed nothing to standard output: print a JSON object with apiVersion %s", v, APIVersion)
	}
	d := json.NewDecoder(bytes.NewReader(answer))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s printed %q, which is not a valid JSON object (%w): print messages to standard error", v, scrub.quote(string(answer)), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s printed text after its JSON object: print messages to standard error", v)
	}
	if *version != APIVersion {
		return fmt.Errorf("%s printed apiVersion %q: set it to %s", v, scrub.quote(*version), APIVersion)
	}
	return nil
}

// shortenText cuts a text to at most the given number of bytes, and appends an ellipsis.
func shortenText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// joinNames lists names for an error message.
func joinNames[T ~string](names []T) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return strings.Join(words, ", ")
}
