package exec

import (
	"context"
	"time"

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
	// previous is the error of the preceding run of prepare for the same request; nil if there is none.
	previous error
	// The remaining fields are valid once done is closed.
	err      error
	ended    time.Time
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
		j.err = do(ctx, j)
		j.ended = e.Clock.Now()
		close(j.done)
		e.OnChange(cluster)
	})
	return j
}
