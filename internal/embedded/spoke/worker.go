package spoke

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/programpages"
	"hotspare.io/hotspare/internal/embedded/spoke/node"
)

// Settings for a worker: many workers share a computer, and each is mostly idle.
const (
	workerGCPercent = 25
	workerThreads   = 1
)

// runWorker runs a worker until ctx ends.
func runWorker(ctx context.Context, m *runningMachine) error {
	debug.SetGCPercent(workerGCPercent)
	runtime.GOMAXPROCS(workerThreads)
	settled := time.AfterFunc(settleDelay, programpages.ReleaseAndLog)
	defer settled.Stop()
	bootstrap, err := readBootstrapConfig(m)
	if err != nil {
		return err
	}
	return node.Run(ctx, node.Options{
		Name:      m.Name,
		Dir:       machine.PKIPath(m.dir),
		Pods:      machine.PodsPath(m.dir),
		Bootstrap: bootstrap,
		Taints:    m.Taints,
		Alive:     m.faults.SuspendWhileInjected(machine.NodeNeverReady),

		SimulationCause: m.simulationCause(),
	})
}

// readBootstrapConfig returns the config with which a worker requests its first certificate.
func readBootstrapConfig(m *runningMachine) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", machine.BootstrapPath(m.dir))
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap credential of %s: %w", m.Name, err)
	}
	return config, nil
}
