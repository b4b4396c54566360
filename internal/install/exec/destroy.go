package exec

import (
	"context"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// Destroy ends the attempt with md's infraID and destroys what carries the infraID, or returns the
// progress. It needs only the metadata: the state of the recipe's programs may be lost.
func (e *Executor) Destroy(ctx context.Context, place install.ClusterTarget, md install.Metadata) (install.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, _, err := e.readRecord(ctx, md.InfraID, place.Cluster); err != nil {
		return install.Result{}, err
	}
	if j := e.destroys[md.InfraID]; j != nil && !e.mayDestroyAgain(j) {
		res := e.destroyResult(md.InfraID, j)
		if res.Phase == install.Running {
			return res, e.startProblem(place.Cluster)
		}
		return res, nil
	}
	t, err := e.newDestroyTask(ctx, place, md)
	if err != nil {
		return install.Result{}, err
	}
	installing := e.installs[md.InfraID]
	delete(e.installs, md.InfraID)
	e.destroys[md.InfraID] = e.startJob(place.Cluster, func(ctx context.Context, j *job) error { // the work outlives the call
		if installing != nil {
			installing.cancel()
			<-installing.done
		}
		err := e.destroyCluster(ctx, t)
		if err != nil {
			j.log = e.Store.ReadLog(ctx, t.Key(), t.Secrets)
		}
		return err
	})
	return install.Result{Phase: install.Running}, nil
}

// mayDestroyAgain reports whether the next call starts another destruction: if the last one has failed, and
// Options.Pause has passed since then. A pass of the controller that does not know of the failure yet,
// because its cache is stale, therefore starts none.
func (e *Executor) mayDestroyAgain(j *job) bool {
	return j.isDone() && j.err != nil && e.workContext.Err() == nil && e.Clock.Since(j.ended) >= e.Pause
}

// destroyResult returns the progress of a destruction. Success is kept, because the cluster's controller may ask again while it
// destroys what another infraID marks. The caller holds e.mu.
func (e *Executor) destroyResult(infraID string, j *job) install.Result {
	if !j.isDone() || e.workContext.Err() != nil {
		return install.Result{Phase: install.Running}
	}
	if j.err != nil {
		return install.Result{Phase: install.Failed, Reason: "DestroyFailed", Log: j.log + "\n" + j.err.Error()}
	}
	e.forgetDestroyed(infraID)
	return install.Result{Phase: install.Succeeded}
}

// maxDestroyed bounds how many successful destructions are kept.
const maxDestroyed = 1000

// forgetDestroyed forgets a successful destruction other than keep, if too many are kept. The caller
// holds e.mu.
func (e *Executor) forgetDestroyed(keep string) {
	if len(e.destroys) <= maxDestroyed {
		return
	}
	for id, j := range e.destroys {
		if id != keep && j.isDone() && j.err == nil {
			delete(e.destroys, id)
			return
		}
	}
}

// destroyCluster calls destroy until it has succeeded, and deletes the state.
func (e *Executor) destroyCluster(ctx context.Context, t runner.Task) error {
	for started := e.Clock.Now(); ; {
		again, err := e.Runner.Call(ctx, t, recipe.Destroy)
		if again, err = DecideAfterDestroy(again, err, started, e.Clock.Now(), t.Recipe.Timeout(recipe.Destroy)); err != nil {
			return err
		}
		if !again {
			return e.Store.Delete(ctx, t.Key())
		}
		if err := e.waitBeforeNextCall(ctx); err != nil {
			return err
		}
	}
}

// newDestroyTask returns the task that destroys what the metadata identifies. It validates nothing: an
// invalid parameter must not keep a cluster.
func (e *Executor) newDestroyTask(ctx context.Context, place install.ClusterTarget, md install.Metadata) (runner.Task, error) {
	p := &hivev1.ExecPlatform{}
	if place.Platform.Exec != nil {
		p = place.Platform.Exec.DeepCopy()
	}
	input := runner.FallbackInput(place.Cluster, place.UID, md.InfraID, p)
	var created *runner.ExecMetadata
	if named, err := runner.ParseMetadata(md.Raw); err == nil && named.InfraID == md.InfraID {
		p.Recipe, input, created = named.Exec.Recipe, named.Exec.Input, &named.Exec
	}
	// The namespace is where Secrets and the record are: that of the cluster, whatever the metadata says.
	input.Namespace, input.Name = place.Cluster.Namespace, place.Cluster.Name
	r, err := e.Catalog.FindRecipe(ctx, newLookup(place, p, created))
	if fault.KindOf(err) == fault.Denied {
		p.Timeouts = hivev1.ExecTimeouts{}
		r, err = e.Catalog.FindRecipe(ctx, newLookup(place, p, created))
	}
	if err != nil {
		return runner.Task{}, err
	}
	t := runner.Task{Recipe: r, Input: input, PullSecret: place.PullSecret}
	return t, e.addCredentials(ctx, &t, place.Cluster, p)
}
