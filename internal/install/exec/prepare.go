package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// prepareKey identifies an attempt before it has an infraID.
type prepareKey struct {
	uid     types.UID
	attempt int
	request string
}

// Prepare returns what identifies the cluster that create will create. While the program prepare runs,
// it returns fault.Wait; while it runs again after a failure, it returns that failure.
func (e *Executor) Prepare(ctx context.Context, req install.Request) (install.Metadata, error) {
	t, version, err := e.newTask(ctx, req, nil)
	if err != nil {
		return install.Metadata{}, err
	}
	if !t.Recipe.Has(recipe.Prepare) {
		return e.prepareTask(ctx, t, version)
	}
	request, err := runner.HashRequest(version, t)
	if err != nil {
		return install.Metadata{}, err
	}
	key := prepareKey{req.UID, req.Attempt, request}
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.prepares[key]
	if j == nil || j.isDone() && e.Clock.Since(j.ended) >= e.prepareDelay(j.err) {
		j = e.startPrepare(key, t, version, req.Cluster) // the work outlives the call
	}
	if j.isDone() {
		return j.metadata, j.err
	}
	running := fault.NewWait(time.Second, "program prepare of recipe %s runs", t.Recipe.Name)
	return install.Metadata{}, cmp.Or(e.startProblem(req.Cluster), j.previous, running)
}

// startPrepare runs prepare in the background. The caller holds e.mu.
func (e *Executor) startPrepare(key prepareKey, t runner.Task, version string, cluster types.NamespacedName) *job {
	var previous error
	if old := e.prepares[key]; old != nil {
		previous = old.err
	}
	maps.DeleteFunc(e.prepares, func(_ prepareKey, j *job) bool {
		return j.isDone() && e.Clock.Since(j.ended) >= forgetPrepareAfter
	})
	j := e.startJob(cluster, func(ctx context.Context, j *job) (err error) {
		j.metadata, err = e.prepareTask(ctx, t, version)
		return err
	})
	j.previous = previous
	e.prepares[key] = j
	return j
}

// forgetPrepareAfter is how long the result of prepare is kept. A request that prepare has rejected as
// invalid is not repeated before.
const forgetPrepareAfter = time.Hour

// prepareDelay returns how long the result of prepare is kept before it runs again for the same request. Each
// report of a failure wakes the controller, which would otherwise run it again at once. A result that is
// asked for again was not recorded, for example because another cluster uses the infraID.
func (e *Executor) prepareDelay(result error) time.Duration {
	switch fault.KindOf(result) {
	case fault.Denied:
		return forgetPrepareAfter
	case fault.Wait, fault.Capacity:
		return fault.RetryAfter(result)
	case fault.Conflict: // another process of hotspare runs the program
		return 0
	default: // prepare has succeeded, or hotspare could not run it
		return e.RetryPrepare
	}
}

// prepareTask runs prepare, and converts its result.
func (e *Executor) prepareTask(ctx context.Context, t runner.Task, version string) (install.Metadata, error) {
	prepared, err := e.Runner.Prepare(ctx, t)
	if err != nil {
		return install.Metadata{}, e.toPrepareFault(err)
	}
	if err := e.confirmInfraIDFree(ctx, prepared.InfraID, t); err != nil {
		return install.Metadata{}, err
	}
	t.Input.InfraID, t.Input.Metadata = prepared.InfraID, prepared.Metadata
	md := runner.NewMetadata(t.Recipe, version, t.Input)
	md.Exec.PullSecret = t.PullSecret
	raw, err := json.Marshal(md)
	if err != nil {
		return install.Metadata{}, fmt.Errorf("encoding metadata.json: %w", err)
	}
	return install.Metadata{ClusterID: md.ClusterID, InfraID: md.InfraID, Raw: raw}, nil
}

// confirmInfraIDFree returns an error if the record of another cluster has the infraID: the cluster must
// not record it, because hotspare would then start, stop and destroy the other one's machines.
func (e *Executor) confirmInfraIDFree(ctx context.Context, infraID string, t runner.Task) error {
	cluster := types.NamespacedName{Namespace: t.Input.Namespace, Name: t.Input.Name}
	r, found, err := e.Store.ReadRecord(ctx, runner.Key{Cluster: cluster, InfraID: infraID})
	if err != nil || !found || r.IsOf(cluster) && string(r.UID) == t.Input.UID {
		return err
	}
	return &install.PrepareFailedError{Err: fault.NewWait(e.RetryPrepare,
		"program prepare of recipe %s returned infraID %s, which belongs to ClusterDeployment %s/%s with UID %s: "+
			"derive the infraID from name, uid and attempt in input.json", t.Recipe.Name, infraID, r.Namespace, r.Name, r.UID)}
}

// toPrepareFault says what to do about an error of the program prepare: nothing exists yet that must be
// destroyed before prepare runs again.
func (e *Executor) toPrepareFault(err error) error {
	var failed *recipe.VerbError
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Outcome {
	case recipe.Invalid:
		return fault.New(fault.Denied, err)
	case recipe.NoRoom:
		return fault.NewCapacity(e.RetryNoRoom, "%w", err)
	}
	return &install.PrepareFailedError{Err: fault.NewWait(e.RetryPrepare, "%w", err)}
}
