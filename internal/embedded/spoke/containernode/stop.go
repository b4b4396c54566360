//go:build linux

package containernode

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// Limits of the stop of a node. Together they are shorter than the time that the store of machines
// gives a machine.
const (
	containerGrace = 5 * time.Second
	stopLimit      = 10 * time.Second
)

// stopContainers stops all containers, also if ctx has ended: it sends each its stop signal, and kills it if it does not
// end in time. A container that it cannot stop ends with this process.
func stopContainers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	err := withRuntime(func(connection *grpc.ClientConn) error {
		return stopAll(ctx, runtimeapi.NewRuntimeServiceClient(connection))
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "containers are killed")
	}
}

// stopAll stops the containers that run, at the same time.
func stopAll(ctx context.Context, client runtimeapi.RuntimeServiceClient) error {
	running, err := client.ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
	}})
	if err != nil {
		return fmt.Errorf("listing containers: %w", err)
	}
	var stops sync.WaitGroup
	for _, c := range running.GetContainers() {
		stops.Go(func() {
			request := &runtimeapi.StopContainerRequest{ContainerId: c.GetId(), Timeout: int64(containerGrace / time.Second)}
			if _, err := client.StopContainer(ctx, request); err != nil {
				klog.FromContext(ctx).Error(err, "a container is killed", "container", c.GetMetadata().GetName())
			}
		})
	}
	stops.Wait()
	return nil
}
