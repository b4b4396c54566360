// Package state defines what the executor and an installer's pod share: one Secret for each attempt
// and for each destruction.
//
// They share nothing else, and every write carries the resource version that was read. So only one
// pod can claim `create cluster`, and a pod of an attempt that the executor has abandoned cannot
// begin.
package state

import (
	"fmt"
	"strconv"
)

// Phase is the progress of an attempt or a destruction.
type Phase string

// An attempt is New, then Prepared, then Creating, and ends Succeeded, Failed or Abandoned. A
// destruction is New until it has Succeeded or Failed.
const (
	New      Phase = ""
	Prepared Phase = "Prepared"
	// Creating: `create cluster` may have run. The phase is written before it runs.
	Creating  Phase = "Creating"
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	// Abandoned: the executor is about to destroy it, and no pod may begin.
	Abandoned Phase = "Abandoned"
)

// IsFinal reports whether the work has ended.
func (p Phase) IsFinal() bool { return p == Succeeded || p == Failed || p == Abandoned }

// Reasons for failures that do not come from the installer.
const (
	// ReasonInvalid: the installer rejects the install-config or the manifests.
	ReasonInvalid = "InvalidInstallConfig"
	// ReasonPrepare: the installer could not name what it will create.
	ReasonPrepare = "PrepareFailed"
	// ReasonInterrupted: the process that ran the installer ended before the installer did.
	ReasonInterrupted = "InstallerInterrupted"
	// ReasonTimeout: it took too long.
	ReasonTimeout = "InstallTimeout"
	// ReasonLost: the state of the attempt is lost.
	ReasonLost = "InstallStateLost"
	// ReasonDestroy: the installer could not destroy everything.
	ReasonDestroy = "DestroyFailed"
	// ReasonDamaged: the stored copy of the prepared folder is not intact.
	ReasonDamaged = "InstallStateDamaged"
)

// State is the content of the Secret.
type State struct {
	Phase Phase
	// Holder is the process that runs `create cluster`, or that waits for its end.
	Holder string
	// Heartbeat is the heartbeat: it changes while the holder is alive.
	Heartbeat string
	// Bootstrapped: the bootstrap machine has done its work and is deleted, so that an interrupted
	// install can be completed by waiting.
	Bootstrapped bool
	// Reported: the executor has reported how the work ended, and may retry it.
	Reported bool

	// InstallConfig is the install-config of the attempt; it is removed when the attempt ends.
	InstallConfig []byte
	// ManifestPatches are applied to the installer's manifests; they are removed together with
	// InstallConfig.
	ManifestPatches []byte
	// Metadata is metadata.json, without credentials.
	Metadata []byte
	// Parts is the number of parts of the packed folder, Digest its digest.
	Parts  int
	Digest string

	// InstallerImage and CLIImage are the images that the release image names.
	InstallerImage, CLIImage string

	// Version is the version that the installer reports.
	Version string
	// Kubeconfig, Password, APIURL and WebConsoleURL are set on success.
	Kubeconfig            []byte
	Password              string
	APIURL, WebConsoleURL string

	// Reason and Log, scrubbed, say why it failed.
	Reason, Log string
}

// MarkEnded ends an attempt and clears the fields that are not needed afterwards, such as secrets.
func (s *State) MarkEnded(p Phase) {
	s.Phase, s.Holder, s.Heartbeat, s.InstallConfig, s.ManifestPatches = p, "", "", nil, nil
}

// MarkFailed ends the work with a reason and the end of a log.
func (s *State) MarkFailed(reason, log string) {
	s.MarkEnded(Failed)
	s.Reason, s.Log = reason, log
}

// textFields returns the text fields by their keys.
func (s *State) textFields() map[string]*string {
	return map[string]*string{
		"phase":          (*string)(&s.Phase),
		"holder":         &s.Holder,
		"beat":           &s.Heartbeat,
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

// fileFields returns the file fields by their keys.
func (s *State) fileFields() map[string]*[]byte {
	return map[string]*[]byte{
		"install-config.yaml":   &s.InstallConfig,
		"manifest-patches.json": &s.ManifestPatches,
		"metadata.json":         &s.Metadata,
		"kubeconfig":            &s.Kubeconfig,
	}
}

func (s *State) boolFields() map[string]*bool {
	return map[string]*bool{"bootstrapped": &s.Bootstrapped, "told": &s.Reported}
}

const keyParts = "parts"

// Encode returns s as the data of a Secret. Empty fields are left out.
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

// Decode returns the State in the data of a Secret.
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
			return s, fmt.Errorf("key %s: %q is not a number from 0 to %d", keyParts, raw, MaxParts)
		}
		s.Parts = n
	}
	return s, nil
}
