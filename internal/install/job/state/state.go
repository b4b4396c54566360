// Package state is what the executor and an installer's pod tell each other: a
// Secret for each attempt, and for each destruction.
//
// It is the only thing they share, and every write carries the version that was
// read. So a pod that claims `create cluster` in it is the only one, and one that
// has been told to leave off cannot begin.
package state

import (
	"fmt"
	"strconv"
)

// Phase is how far the work is.
type Phase string

// An attempt is New, then Prepared, then Creating, and ends Succeeded, Failed or
// Abandoned. A destruction is New until it has Succeeded or Failed.
const (
	New      Phase = ""
	Prepared Phase = "Prepared"
	// Creating: `create cluster` may have run. It is written before it does.
	Creating  Phase = "Creating"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	// Abandoned: the executor is about to destroy it, and no pod may begin.
	Abandoned Phase = "Abandoned"
)

// IsFinal reports whether nothing more is to be done.
func (p Phase) IsFinal() bool { return p == Succeeded || p == Failed || p == Abandoned }

// Reasons of failures that are not the installer's.
const (
	// ReasonInvalid: the installer does not accept the install-config or the manifests.
	ReasonInvalid = "InvalidInstallConfig"
	// ReasonPrepare: the installer could not be asked what it will make.
	ReasonPrepare = "PrepareFailed"
	// ReasonInterrupted: what ran the installer ended before the installer did.
	ReasonInterrupted = "InstallerInterrupted"
	// ReasonTimeout: it took too long.
	ReasonTimeout = "InstallTimeout"
	// ReasonLost: nothing is known of the attempt any more.
	ReasonLost = "InstallStateLost"
	// ReasonDestroy: the installer could not destroy everything.
	ReasonDestroy = "DestroyFailed"
	// ReasonDamaged: what was stored of the prepared folder is not whole.
	ReasonDamaged = "InstallStateDamaged"
)

// State is the content of the Secret.
type State struct {
	Phase Phase
	// Holder is the process whose `create cluster` this is, or that waits for its end.
	Holder string
	// Beat changes while the holder lives.
	Beat string
	// Bootstrapped: the bootstrap machine has done its work and is gone, so that an
	// interrupted install can be waited for.
	Bootstrapped bool
	// Told: the executor has reported how the work ended, and may begin it anew.
	Told bool

	// InstallConfig is what is to be installed; it goes when the attempt is over.
	InstallConfig []byte
	// ManifestPatches are to be applied to the installer's manifests; they go with it.
	ManifestPatches []byte
	// Metadata is metadata.json, without credentials.
	Metadata []byte
	// Parts and Digest are those of the packed folder.
	Parts  int
	Digest string

	// InstallerImage and CLIImage are those that the release image names.
	InstallerImage, CLIImage string

	// Version is what the installer says of itself.
	Version string
	// Kubeconfig, Password, APIURL and WebConsoleURL are what a success leaves.
	Kubeconfig            []byte
	Password              string
	APIURL, WebConsoleURL string

	// Reason and Log, scrubbed, say why it failed.
	Reason, Log string
}

// MarkEnded ends an attempt, and lets go of what nobody needs afterwards: secrets first.
func (s *State) MarkEnded(p Phase) {
	s.Phase, s.Holder, s.Beat, s.InstallConfig, s.ManifestPatches = p, "", "", nil, nil
}

// MarkFailed ends the work with a reason and the end of a log.
func (s *State) MarkFailed(reason, log string) {
	s.MarkEnded(Failed)
	s.Reason, s.Log = reason, log
}

// textFields are the fields that are text, by their keys.
func (s *State) textFields() map[string]*string {
	return map[string]*string{
		"phase":          (*string)(&s.Phase),
		"holder":         &s.Holder,
		"beat":           &s.Beat,
		"digest":         &s.Digest,
		"installerImage": &s.InstallerImage,
		"cliImage":       &s.CLIImage,
		"version":        &s.Version,
		"password":       &s.Password,
		"apiURL":         &s.APIURL,
		"webConsoleURL":  &s.WebConsoleURL,
		"reason":         &s.Reason,
		"log":            &s.Log,
	}
}

// fileFields are the fields that are files, by their keys.
func (s *State) fileFields() map[string]*[]byte {
	return map[string]*[]byte{
		"install-config.yaml":   &s.InstallConfig,
		"manifest-patches.json": &s.ManifestPatches,
		"metadata.json":         &s.Metadata,
		"kubeconfig":            &s.Kubeconfig,
	}
}

func (s *State) boolFields() map[string]*bool {
	return map[string]*bool{"bootstrapped": &s.Bootstrapped, "told": &s.Told}
}

const keyParts = "parts"

// Encode is s as the data of a Secret. What is empty is not there.
func (s State) Encode() map[string][]byte {
	data := map[string][]byte{}
	for key, v := range s.textFields() {
		if *v != "" {
			data[key] = []byte(*v)
		}
	}
	for key, v := range s.fileFields() {
		if len(*v) > 0 {
			data[key] = *v
		}
	}
	for key, v := range s.boolFields() {
		if *v {
			data[key] = []byte("true")
		}
	}
	if s.Parts > 0 {
		data[keyParts] = []byte(strconv.Itoa(s.Parts))
	}
	return data
}

// Decode is the State in the data of a Secret.
func Decode(data map[string][]byte) (State, error) {
	var s State
	for key, v := range s.textFields() {
		*v = string(data[key])
	}
	for key, v := range s.fileFields() {
		*v = data[key]
	}
	for key, v := range s.boolFields() {
		*v = string(data[key]) == "true"
	}
	if raw := string(data[keyParts]); raw != "" {
		n, err := strconv.Atoi(raw)
		if err != nil || n < 0 || n > MaxParts {
			return s, fmt.Errorf("key %s: %q is no number from 0 to %d", keyParts, raw, MaxParts)
		}
		s.Parts = n
	}
	return s, nil
}
