//go:build linux

package containernode

import (
	"cmp"
	"context"
	"sync"

	"k8s.io/klog/v2"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// problems are why the node cannot become ready, for programs of this computer. The folder of the machine has one: that
// of containerd, or else that of the images.
type problems struct {
	dir string

	mu              sync.Mutex
	runtime, images string
}

// setRuntime sets why containerd does not run; "" if it does.
func (p *problems) setRuntime(ctx context.Context, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runtime = problem
	p.writeFirst(ctx)
}

// setImages sets why an image that the node needs cannot be pulled; "" if it can.
func (p *problems) setImages(ctx context.Context, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.images = problem
	p.writeFirst(ctx)
}

// writeFirst writes the problem of containerd, or else that of the images.
func (p *problems) writeFirst(ctx context.Context) {
	problem := cmp.Or(p.runtime, p.images)
	if err := machine.WriteProblem(p.dir, problem); err != nil {
		klog.FromContext(ctx).Error(err, "the problem is only in this log", "problem", problem)
	}
}
