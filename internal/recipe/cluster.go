package recipe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/cloud"
)

// Cluster is a cluster of a recipe. Its verbs run one after the other: see Run.Do.
type Cluster struct {
	Recipe *Recipe
	// Input identifies the cluster and contains its parameters. Before the first call of Create, the
	// caller records the result of Prepare and sets it with WithPrepared.
	Input Input
	// Dir is the state folder.
	Dir string
	// Secrets, Log and StopGrace are those of Run.
	Secrets   string
	Log       io.Writer
	StopGrace time.Duration
}

// VerbError is the error of a verb that ran and did not succeed.
type VerbError struct {
	Recipe string
	Verb   Verb
	// Outcome is Invalid, NoRoom or Failed.
	Outcome Outcome
	// Problem is the reason, without secrets; empty if only the outcome is known.
	Problem string
}

// Error returns the recipe, the verb and the reason.
func (e *VerbError) Error() string {
	return fmt.Sprintf("recipe %s: %s", e.Recipe, cmp.Or(e.Problem, describeExit(e.Verb, e.Outcome, -1, "")))
}

// newFailure returns the error of a verb that broke the contract.
func (c Cluster) newFailure(v Verb, problem string) error {
	return &VerbError{Recipe: c.Recipe.Name, Verb: v, Outcome: Failed, Problem: problem}
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
	case InProgress:
		return nil, true, nil
	}
	return nil, false, &VerbError{Recipe: c.Recipe.Name, Verb: v, Outcome: result.Outcome, Problem: result.Problem}
}

// callOnce runs a verb that must not exit with 10, and returns its answer.
func (c Cluster) callOnce(ctx context.Context, v Verb) ([]byte, error) {
	answer, again, err := c.call(ctx, v)
	if err == nil && again {
		err = c.newFailure(v, fmt.Sprintf("%s exited with code %d: only %s can be called again", v, exitInProgress, joinNames(repeatableVerbs)))
	}
	return answer, err
}

// Prepare returns what identifies the cluster that Create will create. Without a program prepare, the
// infraID is derived from the cluster's name, UID and attempt.
func (c Cluster) Prepare(ctx context.Context) (Prepared, error) {
	if !c.Recipe.Has(Prepare) {
		return Prepared{APIVersion: APIVersion, InfraID: c.defaultInfraID()}, nil
	}
	answer, err := c.callOnce(ctx, Prepare)
	if err != nil {
		return Prepared{}, err
	}
	secrets, err := readSecrets(c.Secrets)
	if err != nil {
		return Prepared{}, err
	}
	p, err := parsePrepared(answer, secrets.Scrub)
	if err != nil {
		return Prepared{}, c.newFailure(Prepare, err.Error())
	}
	if secrets.FindsSecret(p.InfraID) || secrets.FindsSecret(string(p.Metadata)) {
		return Prepared{}, c.newFailure(Prepare, "prepare printed a value from $HOTSPARE_SECRETS: remove it, because all users who can read the cluster can read its metadata")
	}
	return p, nil
}

// defaultInfraID returns the same infraID each time, so that an attempt whose metadata was not
// recorded gets it again.
func (c Cluster) defaultInfraID() string {
	const suffix = 5
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", c.Input.UID, c.Input.Attempt))
	name := c.Input.Name
	if most := maxInfraID - suffix - 1; len(name) > most {
		name = name[:most]
	}
	id := name + "-" + hex.EncodeToString(sum[:])[:suffix]
	if !infraIDPattern.MatchString(id) {
		return "c-" + hex.EncodeToString(sum[:])[:2*suffix]
	}
	return id
}

// Observe returns the machines of the cluster; nil and false if the recipe has no program observe.
func (c Cluster) Observe(ctx context.Context) (cloud.Machines, bool, error) {
	if !c.Recipe.Has(Observe) {
		return nil, false, nil
	}
	answer, err := c.callOnce(ctx, Observe)
	if err != nil {
		return nil, true, err
	}
	secrets, err := readSecrets(c.Secrets)
	if err != nil {
		return nil, true, err
	}
	ms, err := parseObservation(answer, secrets.Scrub)
	if err != nil {
		return nil, true, c.newFailure(Observe, err.Error())
	}
	return ms, true, nil
}

// ReadKubeconfig returns the kubeconfig that create has written, or that the program kubeconfig prints.
func (c Cluster) ReadKubeconfig(ctx context.Context) ([]byte, error) {
	raw, source, err := c.findKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(raw)
	if err != nil || len(config.Clusters) == 0 {
		return nil, c.newFailure(Create, source+" is not a kubeconfig with a cluster")
	}
	return raw, nil
}

func (c Cluster) findKubeconfig(ctx context.Context) (raw []byte, source string, err error) {
	if c.Recipe.Has(Kubeconfig) {
		answer, err := c.callOnce(ctx, Kubeconfig)
		return answer, "the output of program " + string(Kubeconfig), err
	}
	raw, err = readRegularFile(filepath.Join(c.Dir, KubeconfigFile), MaxState)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", c.newFailure(Create, fmt.Sprintf("%s succeeded and wrote no file %s to $HOTSPARE_DIR: write the cluster's kubeconfig to $KUBECONFIG", Create, KubeconfigFile))
	}
	if err != nil {
		return nil, "", c.newFailure(Create, err.Error())
	}
	return raw, "file " + KubeconfigFile, nil
}

// WithPrepared returns the cluster with the result of Prepare.
func (c Cluster) WithPrepared(p Prepared) Cluster {
	c.Input.InfraID, c.Input.Metadata = p.InfraID, append(json.RawMessage(nil), p.Metadata...)
	return c
}
