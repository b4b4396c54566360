// Package runner runs the programs of recipes for the clusters of platform exec.
//
// The orchestration in internal/install/exec and internal/cloud/exec uses only the interfaces Runner
// and Store, so that it does not depend on where a program runs. Processes and Folder implement them
// with processes of this computer and a folder for each cluster.
package runner

import (
	"context"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/recipe"
)

// Task identifies the cluster for which a program runs.
type Task struct {
	Recipe *recipe.Recipe
	// Input identifies the cluster and contains its parameters.
	Input recipe.Input
	// Secrets are the files of $HOTSPARE_SECRETS, by name.
	Secrets map[string][]byte
}

// Runner runs the programs of recipes, one at a time for each cluster. Each call waits until the
// program has ended. A program that an earlier process of hotspare left running is ended first, so
// every call may be repeated after a crash.
//
// Errors of a program are a *recipe.VerbError and contain no secrets. If ctx ends, the program is
// ended, and the error wraps that of ctx.
type Runner interface {
	// Prepare returns what identifies the cluster. It creates nothing.
	Prepare(ctx context.Context, t Task) (recipe.Prepared, error)
	// Call runs a verb once. It returns true if the verb must be called again. The output of the verb
	// logs is in the log of the cluster.
	Call(ctx context.Context, t Task, v recipe.Verb) (again bool, err error)
	// Observe returns the machines; nil if the recipe has no program observe.
	Observe(ctx context.Context, t Task) (cloud.Machines, error)
	// ReadKubeconfig returns the kubeconfig that create has written or the program kubeconfig prints.
	ReadKubeconfig(ctx context.Context, t Task) ([]byte, error)
}

// Store keeps a Record and the log of each cluster. Both survive a crash of hotspare.
type Store interface {
	// ReadRecord returns the record; false if there is none.
	ReadRecord(infraID string) (Record, bool, error)
	// WriteRecord replaces the record.
	WriteRecord(infraID string, r Record) error
	// ReadLog returns the last lines of the log, without secrets; "" if there is none.
	ReadLog(infraID string, secrets map[string][]byte) string
	// Delete deletes the record, the log and the state of the recipe's programs.
	Delete(infraID string) error
}
