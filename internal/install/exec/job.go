package exec

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
)

// job is work in the background.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}
	// needs is what the cluster needs of this computer while it is being created.
	needs recipe.Needs
	// The remaining fields are valid once done is closed.
	err      error
	log      string
	metadata install.Metadata
}

func (j *job) isDone() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// startJob starts background work for a cluster.
func (e *Executor) startJob(cluster types.NamespacedName, do func(context.Context, *job) error) *job {
	ctx, cancel := context.WithCancel(e.workContext)
	j := &job{cancel: cancel, done: make(chan struct{})}
	e.jobs.Go(func() {
		defer cancel()
		if j.err = do(ctx, j); j.err != nil {
			j.err = fmt.Errorf("%s: %w", cluster, j.err)
		}
		close(j.done)
		e.OnChange(cluster)
	})
	return j
}
