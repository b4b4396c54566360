package imagecollector

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
)

// fakeRuntime has images and containers on a disk with free bytes. Images in deleted are gone.
type fakeRuntime struct {
	runtimeapi.ImageServiceClient
	runtimeapi.RuntimeServiceClient
	images     []*runtimeapi.Image
	containers []*runtimeapi.Container
	mounts     map[string]string // the image that a container mounts, by its ID
	lost       map[string]bool   // containers that are deleted after they were listed
	free       int64
	deleted    []string
	stuck      string // an image that cannot be deleted
	err        error
}

func (r *fakeRuntime) ListImages(context.Context, *runtimeapi.ListImagesRequest, ...grpc.CallOption) (*runtimeapi.ListImagesResponse, error) {
	return &runtimeapi.ListImagesResponse{Images: r.images}, r.err
}

func (r *fakeRuntime) ListContainers(context.Context, *runtimeapi.ListContainersRequest, ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	return &runtimeapi.ListContainersResponse{Containers: r.containers}, nil
}

func (r *fakeRuntime) ContainerStatus(_ context.Context, q *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	if r.lost[q.GetContainerId()] {
		return nil, status.Error(codes.NotFound, "it was deleted")
	}
	s := &runtimeapi.ContainerStatus{}
	if name := r.mounts[q.GetContainerId()]; name != "" {
		s.Mounts = []*runtimeapi.Mount{{}, {Image: &runtimeapi.ImageSpec{Image: name}}}
	}
	return &runtimeapi.ContainerStatusResponse{Status: s}, nil
}

func (r *fakeRuntime) RemoveImage(_ context.Context, q *runtimeapi.RemoveImageRequest, _ ...grpc.CallOption) (*runtimeapi.RemoveImageResponse, error) {
	if q.GetImage().GetImage() == r.stuck {
		return nil, status.Error(codes.Internal, "it cannot be deleted")
	}
	for i, image := range r.images {
		if image.GetId() == q.GetImage().GetImage() {
			r.free += int64(image.GetSize())
			r.deleted = append(r.deleted, image.GetId())
			r.images = slices.Delete(slices.Clone(r.images), i, i+1)
			return &runtimeapi.RemoveImageResponse{}, nil
		}
	}
	return nil, status.Error(codes.NotFound, "there is no such image")
}

// newImage returns an image of a size whose ID and name end with a letter.
func newImage(letter string, size uint64) *runtimeapi.Image {
	return &runtimeapi.Image{Id: "sha256:" + letter, RepoTags: []string{"docker.io/library/" + letter + ":1"}, Size: size}
}

// runFor runs a collector, that keeps images, on the runtime for a time.
func (r *fakeRuntime) runFor(t *testing.T, span time.Duration, keep ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	c := &Collector{Images: r, Containers: r, Keep: keep, MeasureFree: func() (int64, error) { return r.free, nil }, Reserve: 100, Clock: clock.RealClock{}}
	c.Run(ctx)
}

func TestImagesAreDeletedUntilThereIsRoom(t *testing.T) {
	for name, c := range map[string]struct {
		free int64
		want []string
	}{
		"there is room":         {100, nil},
		"one makes room":        {99, []string{"sha256:c"}},
		"two make room":         {60, []string{"sha256:c", "sha256:b"}},
		"all are not enough":    {0, []string{"sha256:c", "sha256:b", "sha256:a"}},
		"less than nothing":     {-100, []string{"sha256:c", "sha256:b", "sha256:a"}},
		"nearly twice the need": {90, []string{"sha256:c", "sha256:b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &fakeRuntime{images: []*runtimeapi.Image{newImage("a", 10), newImage("b", 40), newImage("c", 101)}, free: c.free}
				r.runFor(t, minUnused+interval/2)
				if diff := cmp.Diff(c.want, r.deleted); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestAnImageMustBeUnusedForAWhile looks once a minute. Image a is used at the second look, and b is pulled before the second.
func TestAnImageMustBeUnusedForAWhile(t *testing.T) {
	now := testclock.NewFakeClock(time.Now())
	r := &fakeRuntime{images: []*runtimeapi.Image{newImage("a", 1), newImage("c", 1)}}
	c := &Collector{Images: r, Containers: r, MeasureFree: func() (int64, error) { return r.free, nil }, Reserve: 100, Clock: now}
	for look, want := range [][]string{nil, nil, {"sha256:c"}, {"sha256:c", "sha256:b"}, {"sha256:c", "sha256:b", "sha256:a"}} {
		r.containers = nil
		if look == 1 {
			r.images = append(r.images, newImage("b", 1))
			r.containers = []*runtimeapi.Container{{Id: "1", ImageRef: "sha256:a"}}
		}
		if err := c.collectOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.deleted); diff != "" {
			t.Errorf("look %d: %s", look, diff)
		}
		now.Step(interval)
	}
}

func TestImagesThatAreUsedOrKeptStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pinned := newImage("p", 10)
		pinned.Pinned = true
		byDigest := &runtimeapi.Image{Id: "sha256:d", RepoDigests: []string{"quay.io/team/d@sha256:" + digest}}
		r := &fakeRuntime{
			images: []*runtimeapi.Image{newImage("a", 1), newImage("b", 1), newImage("c", 1), newImage("v", 1), newImage("w", 1), newImage("k", 1), newImage("l", 1), newImage("u", 1), byDigest, pinned},
			containers: []*runtimeapi.Container{
				{Id: "1", ImageRef: "sha256:a"}, {Id: "2", Image: &runtimeapi.ImageSpec{Image: "sha256:b"}}, {Id: "3", ImageId: "sha256:c"}, {Id: "4"}, {Id: "5"}, {Id: "6"},
			},
			mounts: map[string]string{"4": "v:1", "5": "sha256:w"},
			lost:   map[string]bool{"6": true},
		}
		r.runFor(t, time.Hour, "k:1", "docker.io/library/l:1", "quay.io/team/d:2@sha256:"+digest, "Not a name")
		if diff := cmp.Diff([]string{"sha256:u"}, r.deleted); diff != "" {
			t.Error(diff)
		}
	})
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestAnImageThatCannotBeDeletedDoesNotKeepTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{images: []*runtimeapi.Image{newImage("a", 2), newImage("b", 1)}, stuck: "sha256:a"}
		r.runFor(t, minUnused+interval/2)
		if diff := cmp.Diff([]string{"sha256:b"}, r.deleted); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAnErrorOfTheRuntimeDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fakeRuntime{images: []*runtimeapi.Image{newImage("a", 1)}, err: errors.New("it is starting")}
		r.runFor(t, 10*interval)
		if r.deleted != nil {
			t.Errorf("deleted %v", r.deleted)
		}
	})
}
