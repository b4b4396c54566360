//go:build !linux

package spoke

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// enterContainerNode returns an error: containers need Linux.
func enterContainerNode(_ string, c machine.Config) error {
	return fmt.Errorf("starting machine %s: it runs containers, which need Linux, and this computer runs %s: "+
		"create the cluster with platform.local.containers: Never", c.Name, runtime.GOOS)
}

func processID() int { return os.Getpid() }

// runContainerWorker is never called: enterContainerNode returns an error before.
func runContainerWorker(_ context.Context, m *runningMachine) error {
	return enterContainerNode(m.dir, m.Config)
}
