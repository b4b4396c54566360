//go:build linux

package containernode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/embedded/imagestore/blobcache"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode/imagecollector"
	"hotspare.io/hotspare/internal/embedded/spoke/containernode/imagepuller"
)

// imageNamespace is the namespace of containerd in which the kubelet's images are.
const imageNamespace = "k8s.io"

// importImage imports the images of an archive into containerd.
func importImage(ctx context.Context, p programs, archive []byte) error {
	cmd := exec.CommandContext(ctx, p.ctr, "--address", containerdSocket, "--namespace", imageNamespace, "images", "import", "-")
	cmd.Stdin = bytes.NewReader(archive)
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("importing an image: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// imagesPulledPath exists on a node that has had all images of its machine.
const imagesPulledPath = "/var/lib/hotspare/images-pulled"

// pullFirstImages pulls the images of the machine before its kubelet starts for the first time.
func pullFirstImages(ctx context.Context, o Options, problems *problems) error {
	if _, err := os.Stat(imagesPulledPath); err == nil || len(o.Machine.Images) == 0 {
		return nil
	}
	if err := pullImages(ctx, o.Machine.Images, func(problem string) { problems.setImages(ctx, problem) }); err != nil {
		return err
	}
	return writeFile(imagesPulledPath, nil, privateMode)
}

// pullMissingImages pulls the images of the machine that its containerd does not have any more, until ctx ends. A cluster
// that resumes does not wait for it.
func pullMissingImages(ctx context.Context, o Options) error {
	if len(o.Machine.Images) == 0 {
		return nil
	}
	return ignoreCancellation(ctx, pullImages(ctx, o.Machine.Images, func(problem string) {
		if problem != "" {
			klog.FromContext(ctx).Info("an image is missing", "problem", problem)
		}
	}))
}

func pullImages(ctx context.Context, images []string, report func(problem string)) error {
	return withRuntime(func(connection *grpc.ClientConn) error {
		return imagepuller.Puller{
			Images: images, Service: runtimeapi.NewImageServiceClient(connection), Report: report, Clock: clock.RealClock{},
		}.Run(ctx)
	})
}

// collectImages deletes images that no container uses while the disk is nearly full, until ctx ends.
func collectImages(ctx context.Context, o Options) error {
	var disk unix.Statfs_t
	if err := unix.Statfs("/var", &disk); err != nil {
		return fmt.Errorf("reading the size of the disk: %w", err)
	}
	return withRuntime(func(connection *grpc.ClientConn) error {
		c := imagecollector.Collector{
			Images: runtimeapi.NewImageServiceClient(connection), Containers: runtimeapi.NewRuntimeServiceClient(connection),
			Keep: append([]string{pauseImage}, o.Machine.Images...), Reserve: imageReserve(int64(disk.Blocks) * disk.Bsize), //nolint:gosec // a size
			MeasureFree: func() (int64, error) { return blobcache.MeasureFree("/var") }, Clock: clock.RealClock{},
		}
		c.Run(ctx)
		return nil
	})
}

// imageReserve returns how many bytes of a disk of a size are free before a node deletes images: a gibibyte, less on a small
// disk, and more than registryapi.PullReserve, below which it cannot pull.
func imageReserve(size int64) int64 { return max(registryapi.PullReserve*5/4, min(1<<30, size/8)) }

// withRuntime calls use with a connection to containerd.
func withRuntime(use func(*grpc.ClientConn) error) (err error) {
	connection, err := grpc.NewClient("unix://"+containerdSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to containerd: %w", err)
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	return use(connection)
}
