//go:build linux

package containernode

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Intervals of the supervision of containerd.
const (
	containerdPoll    = 50 * time.Millisecond
	containerdRestart = time.Second
)

// superviseContainerd runs containerd until ctx ends. It starts containerd again when it has ended:
// containers do not end with it.
func superviseContainerd(ctx context.Context, p programs) error {
	for ctx.Err() == nil {
		// Not bound to ctx: the containers are stopped by containerd, and it ends with this process.
		cmd := exec.Command(p.containerd, "--config", containerdConfigPath, "--log-level", "warn") //nolint:noctx // see above
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("starting containerd: %w", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			klog.FromContext(ctx).Error(errors.Join(errContainerdEnded, err), "will start it again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(containerdRestart):
		}
	}
	return nil
}

var errContainerdEnded = errors.New("containerd ended unexpectedly")

// prepareContainerd waits until containerd listens and gives it the image of the containers that
// hold the namespaces of pods.
func prepareContainerd(ctx context.Context, p programs) error {
	err := wait.PollUntilContextCancel(ctx, containerdPoll, true, func(ctx context.Context) (bool, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", containerdSocket)
		if err != nil {
			return false, nil //nolint:nilerr // not yet
		}
		return true, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("waiting for containerd: %w", err)
	}
	archive, err := newPauseArchive()
	if err != nil {
		return fmt.Errorf("making the image %s: %w", pauseImage, err)
	}
	return importImage(ctx, p, archive)
}
