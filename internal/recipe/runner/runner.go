package runner

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
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
	// SecretName is the name of the Secret with these files, in the namespace of the cluster; empty if
	// there is none.
	SecretName string
	// PullSecret is the name of the Secret for pulling images, in the namespace of the cluster; empty if
	// there is none.
	PullSecret string
}

// Key returns the key of the cluster in a Store.
func (t Task) Key() Key {
	return Key{Cluster: types.NamespacedName{Namespace: t.Input.Namespace, Name: t.Input.Name}, InfraID: t.Input.InfraID}
}

// Key identifies the records of a cluster.
type Key struct {
	// Cluster is the ClusterDeployment.
	Cluster types.NamespacedName
	InfraID string
}

// Lookup identifies a recipe, and the cluster that uses it.
type Lookup struct {
	Platform *hivev1.ExecPlatform
	Cluster  types.NamespacedName
	UID      types.UID
	// PoolNamespace is the namespace of the cluster's pool; empty for a cluster without a pool.
	PoolNamespace string
	// PullSecret and Image are those of the cluster: the name of the Secret for pulling images, and the
	// release image of its image set. Either may be empty.
	PullSecret, Image string
	// ImageOverride replaces the image that Created names; empty keeps it.
	ImageOverride string
	// Created is what metadata.json says about the recipe; nil before prepare, or if it is lost.
	Created *ExecMetadata
}

// Recipes finds recipes.
type Recipes interface {
	// FindRecipe returns a recipe, with the time limits of the platform. The error is fault.Denied if the
	// platform or the recipe is invalid, and fault.Wait while the recipe is being read.
	FindRecipe(ctx context.Context, l Lookup) (*recipe.Recipe, error)
	// HibernationObstacle returns why clusters of a platform cannot hibernate; "" if they can, or if that
	// is unknown.
	HibernationObstacle(p hivev1.Platform) string
}

// StartReporter is an optional interface of a Runner whose programs may be unable to start.
type StartReporter interface {
	// StartProblem returns why the program of a cluster cannot start, and what to do about it; nil if
	// nothing prevents it. The error is fault.Wait.
	StartProblem(cluster types.NamespacedName) error
}

// FailureLogger is an optional interface of a Runner that keeps a log of each cluster.
type FailureLogger interface {
	// LogFailure adds to the log of a cluster why a program of it has failed, and when it runs again. The log
	// is an aid: LogFailure ignores errors.
	LogFailure(t Task, v recipe.Verb, err error, retryIn time.Duration)
}

// Runner runs the programs of recipes, one at a time for each cluster. Each call waits until the
// program has ended. A program that an earlier process of hotspare left running is ended first, or
// waited for if it is the same call, so every call may be repeated after a crash.
//
// Errors of a program are a *recipe.VerbError and contain no secrets. If ctx ends, the error wraps that
// of ctx. The program is then ended, at the latest before the next program of the cluster starts.
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
	ReadRecord(ctx context.Context, key Key) (Record, bool, error)
	// WriteRecord replaces the record.
	WriteRecord(ctx context.Context, key Key, r Record) error
	// ReadLog returns the last lines of the log, without secrets; "" if there is none.
	ReadLog(ctx context.Context, key Key, secrets map[string][]byte) string
	// Delete deletes the record, the log and the state of the recipe's programs.
	Delete(ctx context.Context, key Key) error
}
