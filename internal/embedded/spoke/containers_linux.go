package spoke

import (
	"context"
	"net"
	"net/netip"
	"runtime/debug"
	"strconv"

	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode"
)

// enterContainerNode prepares the process of a worker that runs containers; see
// containernode.Enter.
func enterContainerNode(dir string, c machine.Config) error { return containernode.Enter(dir, c) }

// processID returns the ID of this process as the store of machines sees it.
func processID() int { return containernode.ProcessID() }

// runContainerWorker runs a worker that runs containers until ctx ends.
func runContainerWorker(ctx context.Context, m *runningMachine) error {
	debug.SetGCPercent(idleGCPercent)
	bootstrap, err := readBootstrapConfig(m)
	if err != nil {
		return err
	}
	// The worker has its own loopback interface: it reaches the API at the gateway.
	bootstrap.Host = "https://" + net.JoinHostPort(machine.Gateway.String(), strconv.Itoa(machine.GatewayAPIPort))
	return containernode.Run(ctx, containernode.Options{
		Machine:    m.Config,
		Dir:        m.dir,
		Bootstrap:  bootstrap,
		ClusterDNS: netip.MustParseAddr(clusterDNSIP),
		Alive:      m.faults.SuspendWhileInjected(machine.NodeNeverReady),
	})
}
