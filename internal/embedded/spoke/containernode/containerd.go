//go:build linux

package containernode

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/spoke/containernode/runtimesupervisor"
)

// containerdPoll is the interval between attempts to connect to containerd.
const containerdPoll = 50 * time.Millisecond

// superviseContainerd runs containerd until ctx ends. It records why containerd does not run in health, for the node, and
// in problems.
func superviseContainerd(ctx context.Context, p programs, health *runtimesupervisor.Health, problems *problems) error {
	return runtimesupervisor.Supervisor{
		Name: "containerd",
		Command: func() *exec.Cmd {
			return exec.Command(p.containerd, "--config", containerdConfigPath, "--log-level", "warn") //nolint:noctx // it ends with this process
		},
		Output: os.Stderr,
		Report: func(problem string) {
			health.SetProblem(problem)
			problems.setRuntime(ctx, problem)
		},
		Clock: clock.RealClock{},
	}.Run(ctx)
}

// prepareContainerd waits until containerd listens and gives it the image of the containers that
// hold the namespaces of pods. It waits without a limit for a containerd that ends again and again.
func prepareContainerd(ctx context.Context, p programs, health *runtimesupervisor.Health) error {
	archive, err := newPauseArchive()
	if err != nil {
		return fmt.Errorf("making the image %s: %w", pauseImage, err)
	}
	for {
		if err := waitForContainerd(ctx); err != nil {
			return fmt.Errorf("waiting for containerd: %w", err)
		}
		err := importImage(ctx, p, archive)
		if err == nil || !endsSoon(ctx, health) {
			return err
		}
	}
}

// waitForContainerd waits until containerd accepts a connection.
func waitForContainerd(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, containerdPoll, true, func(ctx context.Context) (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", containerdSocket)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, conn.Close()
	})
}

// problemDelay is how long the end of containerd may take to be known.
const problemDelay = time.Second

// endsSoon reports whether containerd has ended, or ends within problemDelay.
func endsSoon(ctx context.Context, health *runtimesupervisor.Health) bool {
	select {
	case <-ctx.Done():
	case <-time.After(problemDelay):
	}
	return ctx.Err() == nil && health.Problem() != ""
}
