package spoke

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/machine"
	"hotspare.io/hotspare/internal/spoke/node"
)

// Many workers share a computer, and each has next to nothing to do.
const (
	workerGCPercent = 25
	workerThreads   = 1
)

// runWorker is a worker until ctx ends.
func runWorker(ctx context.Context, dir string, config machine.Config) error {
	debug.SetGCPercent(workerGCPercent)
	runtime.GOMAXPROCS(workerThreads)
	bootstrap, err := clientcmd.BuildConfigFromFlags("", machine.BootstrapPath(dir))
	if err != nil {
		return fmt.Errorf("reading the bootstrap credential of %s: %w", config.Name, err)
	}
	return node.Run(ctx, node.Options{
		Name:      config.Name,
		Dir:       machine.PKIPath(dir),
		Bootstrap: bootstrap,
	})
}
