// Package imagecollector deletes images that no container uses from a node whose disk is nearly full.
//
// The kubelet can do that, too, but only from a percentage of the disk on: one percent of the disk of a computer can be 20 GB,
// which others have filled. It would also delete the image of the containers that hold the namespaces of pods, which no
// registry has, and the images that the node should have from its start.
package imagecollector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// interval is the time between two looks at the disk.
	interval = time.Minute
	// minUnused is how long an image must have been unused: the kubelet pulls an image before it creates the container.
	minUnused = 2 * time.Minute
)

// Collector deletes images.
type Collector struct {
	Images     runtimeapi.ImageServiceClient
	Containers runtimeapi.RuntimeServiceClient
	// Keep are the names of images that are never deleted.
	Keep []string
	// MeasureFree returns the free bytes of the disk. Below Reserve, images are deleted until twice as many are free.
	MeasureFree func() (int64, error)
	Reserve     int64
	Clock       clock.Clock

	// unusedSince is when an image was first seen without a container since the disk is nearly full, by its ID.
	unusedSince map[string]time.Time
}

// Run deletes images until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	for {
		if err := c.collectOnce(ctx); err != nil && ctx.Err() == nil { // containerd may be starting
			klog.FromContext(ctx).Error(err, "the disk is nearly full, and images that no container uses stay")
		}
		select {
		case <-ctx.Done():
			return
		case <-c.Clock.After(interval):
		}
	}
}

// collectOnce deletes images if the disk is nearly full.
func (c *Collector) collectOnce(ctx context.Context) error {
	free, err := c.MeasureFree()
	if err != nil {
		return fmt.Errorf("measuring the free space: %w", err)
	}
	if free >= c.Reserve {
		c.unusedSince = nil
		return nil
	}
	unused, err := c.findUnused(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, image := range unused {
		if _, err := c.Images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: image.GetId()}}); err != nil {
			errs = append(errs, fmt.Errorf("deleting image %s: %w", nameOf(image), err))
			continue
		}
		klog.FromContext(ctx).Info("deleted an image that no container uses, because the disk is nearly full", "image", nameOf(image), "free", free)
		if free, err = c.MeasureFree(); err != nil {
			return fmt.Errorf("measuring the free space: %w", err)
		}
		if free >= 2*c.Reserve {
			break
		}
	}
	return errors.Join(errs...)
}

func nameOf(image *runtimeapi.Image) string {
	return cmp.Or(append(slices.Clone(image.GetRepoTags()), append(slices.Clone(image.GetRepoDigests()), image.GetId())...)...)
}

// findUnused returns the images that no container has used for minUnused, those that were unused for longest first, and of these the
// largest.
func (c *Collector) findUnused(ctx context.Context) ([]*runtimeapi.Image, error) {
	images, err := c.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	used, err := c.findUsed(ctx)
	if err != nil {
		return nil, err
	}
	since, now := map[string]time.Time{}, c.Clock.Now()
	var unused []*runtimeapi.Image
	for _, image := range images.GetImages() {
		if image.GetPinned() || isAmong(used, image) {
			continue
		}
		first, known := c.unusedSince[image.GetId()]
		if !known {
			first = now
		}
		since[image.GetId()] = first
		if now.Sub(first) >= minUnused {
			unused = append(unused, image)
		}
	}
	c.unusedSince = since
	slices.SortStableFunc(unused, func(a, b *runtimeapi.Image) int {
		return cmp.Or(since[a.GetId()].Compare(since[b.GetId()]), -cmp.Compare(a.GetSize(), b.GetSize()))
	})
	return unused, nil
}

// isAmong reports whether an image has one of the names.
func isAmong(names map[string]bool, image *runtimeapi.Image) bool {
	return names[image.GetId()] || slices.ContainsFunc(image.GetRepoTags(), func(name string) bool { return names[name] }) ||
		slices.ContainsFunc(image.GetRepoDigests(), func(name string) bool { return names[name] })
}

// findUsed returns the names and IDs of the images that containers use, also as volumes, and of those that are kept.
func (c *Collector) findUsed(ctx context.Context) (map[string]bool, error) {
	used := map[string]bool{}
	for _, name := range c.Keep {
		used[name], used[normalizeName(name)] = true, true
	}
	containers, err := c.Containers.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing containers: %w", err)
	}
	for _, container := range containers.GetContainers() {
		used[container.GetImageRef()], used[container.GetImage().GetImage()], used[container.GetImageId()] = true, true, true
		answer, err := c.Containers.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: container.GetId()})
		if status.Code(err) == codes.NotFound { // it was deleted
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a container: %w", err)
		}
		for _, mount := range answer.GetStatus().GetMounts() {
			used[mount.GetImage().GetImage()], used[normalizeName(mount.GetImage().GetImage())] = true, true
		}
	}
	delete(used, "")
	return used, nil
}

// normalizeName returns the name of an image as the runtime lists it; "" if it is none.
func normalizeName(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return ""
	}
	if digested, ok := named.(reference.Digested); ok {
		return named.Name() + "@" + digested.Digest().String()
	}
	return reference.TagNameOnly(named).String()
}
