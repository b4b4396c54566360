package local

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// job is work in the background.
type job struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
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
func (e *Executor) startJob(cluster types.NamespacedName, do func(context.Context) error) *job {
	ctx, cancel := context.WithCancel(e.workContext)
	j := &job{cancel: cancel, done: make(chan struct{})}
	e.jobs.Go(func() {
		defer cancel()
		if j.err = do(ctx); j.err != nil {
			j.err = fmt.Errorf("%s: %w", cluster, j.err)
		}
		close(j.done)
		if cluster.Name != "" {
			e.onChange(cluster)
		}
	})
	return j
}
