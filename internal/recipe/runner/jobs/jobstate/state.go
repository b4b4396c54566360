// Package jobstate defines what hotspare and the pods that run the programs of a recipe share: one
// Secret for each cluster.
//
// The Secret describes one run of a program, identified by its token. Only the pod that has changed the
// run from Requested to Running starts the program, and every write of a pod is rejected if the token
// is no longer that of its run. So a program never runs twice at the same time, even if a Job starts two
// pods or a pod that was considered lost writes again.
package jobstate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"hotspare.io/hotspare/internal/recipe"
)

// Phase is the progress of a run.
type Phase string

// A run is Requested, then Running, and then Ended or Interrupted, unless it is Abandoned before.
const (
	// Requested: no pod has started the program.
	Requested Phase = "Requested"
	// Running: the holder runs the program.
	Running Phase = "Running"
	// Ended: the outcome is known. Reported: it was returned to the caller.
	Ended    Phase = "Ended"
	Reported Phase = "Reported"
	// Interrupted: the pod ended before the program did.
	Interrupted Phase = "Interrupted"
	// Abandoned: no pod may start or continue the program.
	Abandoned Phase = "Abandoned"
)

// IsActive reports whether a pod may start or continue the program.
func (p Phase) IsActive() bool { return p == Requested || p == Running }

// Run is one run of a program.
type Run struct {
	// Token identifies the run.
	Token string      `json:"token"`
	Verb  recipe.Verb `json:"verb"`
	// Request is a hash of everything that the program depends on.
	Request string `json:"request"`
	Phase   Phase  `json:"phase"`
	// Holder is the pod that runs the program. Heartbeat changes while it is alive.
	Holder    string `json:"holder,omitempty"`
	Heartbeat string `json:"heartbeat,omitempty"`
	// Interruptions counts the runs in a row that were interrupted.
	Interruptions int `json:"interruptions,omitempty"`
}

// Outcome is how a program ended.
type Outcome struct {
	Result recipe.Outcome `json:"result"`
	// Problem says why it did not succeed, without secrets.
	Problem string `json:"problem,omitempty"`
}

// Folder says where the packed state folder is: in Inline, or in Parts Secrets that begin with the
// First.
type Folder struct {
	First  int    `json:"first,omitempty"`
	Parts  int    `json:"parts,omitempty"`
	Digest string `json:"digest,omitempty"`
	// UsesParts is set before a part is written for the first time. A later run then takes the parts over
	// before it starts.
	UsesParts bool   `json:"usesParts,omitempty"`
	Inline    []byte `json:"-"`
}

// State is the content of the Secret.
type State struct {
	Run    Run
	Folder Folder
	// Input is the recipe.Input of the run.
	Input []byte
	// Outcome is set in phase Ended. Answer is what the program printed, and Kubeconfig that of the
	// cluster, if the run returned them.
	Outcome    Outcome
	Answer     []byte
	Kubeconfig []byte
	// Log is the end of the log of the last runs, without secrets.
	Log string
}

// Limits of what a pod stores, in bytes. Together with Input they fit into one Secret.
const (
	MaxInline     = 320 << 10
	MaxAnswer     = 128 << 10 // compressed
	MaxKubeconfig = 128 << 10
	MaxLog        = 32 << 10
	MaxProblem    = 4 << 10
	maxInput      = 256 << 10
)

// Keys of the Secret.
const (
	keyRun        = "run.json"
	keyFolder     = "folder.json"
	keyInline     = "folder.tar.gz"
	keyInput      = "input.json"
	keyOutcome    = "outcome.json"
	keyAnswer     = "answer.json.gz"
	keyKubeconfig = "kubeconfig"
	keyLog        = "log"
)

// Encode returns s as the data of a Secret.
func (s State) Encode() (map[string][]byte, error) {
	data := map[string][]byte{}
	for key, value := range map[string]any{keyRun: s.Run, keyFolder: s.Folder, keyOutcome: s.Outcome} {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", key, err)
		}
		data[key] = raw
	}
	answer, err := compress(s.Answer)
	if err != nil {
		return nil, err
	}
	for _, field := range []struct {
		key   string
		value []byte
		most  int
	}{
		{keyInline, s.Folder.Inline, MaxInline},
		{keyInput, s.Input, maxInput},
		{keyAnswer, answer, MaxAnswer},
		{keyKubeconfig, s.Kubeconfig, MaxKubeconfig},
		{keyLog, []byte(s.Log), MaxLog},
	} {
		if len(field.value) > field.most {
			return nil, &TooLargeError{Key: field.key, Size: len(field.value), Most: field.most}
		}
		if len(field.value) > 0 {
			data[field.key] = field.value
		}
	}
	return data, nil
}

// TooLargeError is the error for content that the hub cannot store.
type TooLargeError struct {
	Key        string
	Size, Most int
}

// Error names the content and its sizes in bytes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, and a hub stores at most %d", e.Key, e.Size, e.Most)
}

// Decode returns the State in the data of a Secret. It trusts nothing: a pod may have written the data.
func Decode(data map[string][]byte) (State, error) {
	s := State{Input: data[keyInput], Kubeconfig: data[keyKubeconfig], Log: string(data[keyLog])}
	for key, into := range map[string]any{keyRun: &s.Run, keyFolder: &s.Folder, keyOutcome: &s.Outcome} {
		if raw := data[key]; len(raw) > 0 {
			if err := json.Unmarshal(raw, into); err != nil {
				return State{}, fmt.Errorf("key %s is damaged: delete the Secret; the next program starts with an empty state folder: %w", key, err)
			}
		}
	}
	s.Folder.Inline = data[keyInline]
	if f := s.Folder; f.First < 0 || f.Parts < 0 || f.First+f.Parts > MaxParts {
		return State{}, fmt.Errorf("key %s: there are no parts %d to %d: delete the Secret; the next program starts with an empty state folder", keyFolder, f.First, f.First+f.Parts)
	}
	if len(s.Kubeconfig) > MaxKubeconfig || len(s.Log) > MaxLog || len(s.Outcome.Problem) > MaxProblem {
		return State{}, errors.New("the Secret is larger than a pod of hotspare writes it: delete it; the next program starts with an empty state folder")
	}
	var err error
	s.Answer, err = decompress(data[keyAnswer])
	return s, err
}

func compress(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := zip.Write(raw)
	if err := errors.Join(err, zip.Close()); err != nil {
		return nil, fmt.Errorf("compressing an answer: %w", err)
	}
	return out.Bytes(), nil
}

// decompress rejects more than recipe.MaxAnswer bytes, however small they are when compressed.
func decompress(packed []byte) ([]byte, error) {
	if len(packed) == 0 {
		return nil, nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("key %s is damaged: %w", keyAnswer, err)
	}
	raw, err := io.ReadAll(io.LimitReader(zip, recipe.MaxAnswer+1))
	if err == nil && len(raw) > recipe.MaxAnswer {
		err = fmt.Errorf("it has more than %d bytes", recipe.MaxAnswer)
	}
	if err != nil {
		return nil, fmt.Errorf("key %s is damaged: %w", keyAnswer, err)
	}
	return raw, nil
}
