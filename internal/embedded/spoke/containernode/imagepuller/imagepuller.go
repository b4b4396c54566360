// Package imagepuller pulls the images that a node has from its start, so that pods with these images do not wait for them.
package imagepuller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// Delays between attempts to pull an image: the first, and the longest, to which it doubles.
const (
	firstDelay   = time.Second
	longestDelay = 30 * time.Second
)

// Puller pulls images into a container runtime.
type Puller struct {
	// Images are the names of the images.
	Images []string
	// Service is that of the runtime.
	Service runtimeapi.ImageServiceClient
	// Report is called after each round of attempts with the reason why the first image that is missing could not be pulled,
	// as a clause, and with "" when all are there after that.
	Report func(problem string)
	Clock  clock.Clock
}

// Run pulls the images that the runtime does not have, one after the other. It tries again until it has all. The error is
// that of ctx if ctx ends first.
func (p Puller) Run(ctx context.Context) error {
	for delay, failed := firstDelay, false; ; delay, failed = min(2*delay, longestDelay), true {
		problem := p.pullOnce(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case problem == "" && failed:
			p.Report("")
			return nil
		case problem == "":
			return nil
		}
		p.Report(problem)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Clock.After(delay):
		}
	}
}

// pullOnce pulls each image that the runtime does not have, and returns why the first one could not be pulled.
func (p Puller) pullOnce(ctx context.Context) (problem string) {
	for _, image := range p.Images {
		if err := p.pullImage(ctx, image); err != nil {
			problem = cmp.Or(problem, fmt.Sprintf("the image %s could not be pulled: %s", image, status.Convert(err).Message()))
		}
	}
	return problem
}

// errEmpty reports an answer of a runtime that contradicts its API.
var errEmpty = errors.New("the container runtime names no image")

// pullImage pulls an image unless the runtime has it.
func (p Puller) pullImage(ctx context.Context, image string) error {
	spec := &runtimeapi.ImageSpec{Image: image}
	status, err := p.Service.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec})
	if err != nil {
		return err
	}
	if status.GetImage().GetId() != "" {
		return nil
	}
	pulled, err := p.Service.PullImage(ctx, &runtimeapi.PullImageRequest{Image: spec})
	if err == nil && pulled.GetImageRef() == "" {
		err = errEmpty
	}
	return err
}
