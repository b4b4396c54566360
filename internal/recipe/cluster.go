package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/cloud"
)

// Cluster is one cluster of a recipe, and the folder with its state. No two verbs of a cluster run
// at once.
type Cluster struct {
	Recipe *Recipe
	// Input identifies the cluster and has its parameters. InfraID and Metadata are set once Prepare
	// has returned them, and recorded, before anything is created.
	Input Input
	// Dir is the state folder.
	Dir     string
	Secrets string
	Log     io.Writer
	// StopGrace is as in Run.
	StopGrace time.Duration
}

// VerbError says that a verb did not succeed.
type VerbError struct {
	Recipe string
	Verb   Verb
	// Outcome is Invalid, NoRoom or Failed.
	Outcome Outcome
	Problem string
}

// Error names the recipe, the verb and what went wrong.
func (e *VerbError) Error() string {
	problem := e.Problem
	switch {
	case problem != "":
	case e.Outcome == Invalid:
		problem = fmt.Sprintf("%s rejects the request (exit code %d): see its log for what to change", e.Verb, exitInvalid)
	case e.Outcome == NoRoom:
		problem = fmt.Sprintf("%s reports that there is no room for the cluster (exit code %d)", e.Verb, exitNoRoom)
	}
	return fmt.Sprintf("recipe %s: %s", e.Recipe, problem)
}

// Call runs a verb once. It returns true if the verb must be called again.
func (c Cluster) Call(ctx context.Context, v Verb) (again bool, err error) {
	_, again, err = c.call(ctx, v)
	return again, err
}

func (c Cluster) call(ctx context.Context, v Verb) (answer []byte, again bool, err error) {
	run := Run{Recipe: c.Recipe, Verb: v, Input: c.Input, Dir: c.Dir, Secrets: c.Secrets, Log: c.Log, StopGrace: c.StopGrace}
	result, err := run.Do(ctx)
	if err != nil {
		return nil, false, err
	}
	switch result.Outcome {
	case Done:
		return result.Answer, false, nil
	case Going:
		return nil, true, nil
	}
	return nil, false, &VerbError{Recipe: c.Recipe.Name, Verb: v, Outcome: result.Outcome, Problem: result.Problem}
}

// Prepare returns what identifies the cluster that Create will create. A recipe without a program
// prepare gets an infraID that follows from the cluster's name and UID and the attempt.
func (c Cluster) Prepare(ctx context.Context) (Prepared, error) {
	if !c.Recipe.Has(Prepare) {
		return Prepared{APIVersion: APIVersion, InfraID: c.defaultInfraID()}, nil
	}
	answer, again, err := c.call(ctx, Prepare)
	if err != nil {
		return Prepared{}, err
	}
	if again {
		return Prepared{}, &VerbError{Recipe: c.Recipe.Name, Verb: Prepare, Outcome: Failed, Problem: fmt.Sprintf("%s exited with %d: it must answer at once", Prepare, exitGoing)}
	}
	p, err := ParsePrepared(answer)
	if err != nil {
		return Prepared{}, &VerbError{Recipe: c.Recipe.Name, Verb: Prepare, Outcome: Failed, Problem: err.Error()}
	}
	return p, nil
}

// defaultInfraID is the same each time, so that an attempt whose metadata was not recorded yet gets
// the same one again.
func (c Cluster) defaultInfraID() string {
	const suffix = 5
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", c.Input.UID, c.Input.Attempt))
	name := c.Input.Name
	if most := maxInfraID - suffix - 1; len(name) > most {
		name = name[:most]
	}
	id := name + "-" + hex.EncodeToString(sum[:])[:suffix]
	if !infraID.MatchString(id) {
		return "c-" + hex.EncodeToString(sum[:])[:2*suffix]
	}
	return id
}

// Observe returns the machines of the cluster; nil, false if the recipe has no program observe.
func (c Cluster) Observe(ctx context.Context) (cloud.Machines, bool, error) {
	if !c.Recipe.Has(Observe) {
		return nil, false, nil
	}
	answer, again, err := c.call(ctx, Observe)
	if err != nil {
		return nil, true, err
	}
	if again {
		return nil, true, &VerbError{Recipe: c.Recipe.Name, Verb: Observe, Outcome: Failed, Problem: fmt.Sprintf("%s exited with %d: it must answer at once", Observe, exitGoing)}
	}
	ms, err := ParseObservation(answer)
	if err != nil {
		return nil, true, &VerbError{Recipe: c.Recipe.Name, Verb: Observe, Outcome: Failed, Problem: err.Error()}
	}
	return ms, true, nil
}

// ReadKubeconfig returns the kubeconfig that create has left, or what the program kubeconfig prints.
func (c Cluster) ReadKubeconfig(ctx context.Context) ([]byte, error) {
	raw, source, err := c.findKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(raw)
	if err != nil || len(config.Clusters) == 0 {
		return nil, &VerbError{Recipe: c.Recipe.Name, Verb: Create, Outcome: Failed, Problem: source + " is not a kubeconfig with a cluster"}
	}
	return raw, nil
}

func (c Cluster) findKubeconfig(ctx context.Context) (raw []byte, source string, err error) {
	if c.Recipe.Has(Kubeconfig) {
		answer, again, err := c.call(ctx, Kubeconfig)
		if err == nil && again {
			err = &VerbError{Recipe: c.Recipe.Name, Verb: Kubeconfig, Outcome: Failed, Problem: fmt.Sprintf("%s exited with %d: it must answer at once", Kubeconfig, exitGoing)}
		}
		return answer, "the answer of " + string(Kubeconfig), err
	}
	raw, err = os.ReadFile(filepath.Join(c.Dir, KubeconfigFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", &VerbError{Recipe: c.Recipe.Name, Verb: Create, Outcome: Failed, Problem: fmt.Sprintf("%s succeeded and left no file %s in $HOTSPARE_DIR: write the cluster's kubeconfig there", Create, KubeconfigFile)}
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.Input.Name, err)
	}
	return raw, "file " + KubeconfigFile, nil
}

// WithPrepared returns the cluster with what Prepare has returned.
func (c Cluster) WithPrepared(p Prepared) Cluster {
	c.Input.InfraID, c.Input.Metadata = p.InfraID, append(json.RawMessage(nil), p.Metadata...)
	return c
}
