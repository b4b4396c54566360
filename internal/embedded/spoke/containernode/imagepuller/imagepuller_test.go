package imagepuller

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// fakeRuntime is a runtime with some images. Each pull takes a second and calls pull.
type fakeRuntime struct {
	runtimeapi.ImageServiceClient
	images []string
	pull   func(image string) error
	pulled []string
}

func (r *fakeRuntime) ImageStatus(_ context.Context, q *runtimeapi.ImageStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ImageStatusResponse, error) {
	if !slices.Contains(r.images, q.GetImage().GetImage()) {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:1"}}, nil
}

func (r *fakeRuntime) PullImage(ctx context.Context, q *runtimeapi.PullImageRequest, _ ...grpc.CallOption) (*runtimeapi.PullImageResponse, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Second):
	}
	image := q.GetImage().GetImage()
	r.pulled = append(r.pulled, image)
	if err := r.pull(image); err != nil {
		return nil, err
	}
	r.images = append(r.images, image)
	return &runtimeapi.PullImageResponse{ImageRef: "sha256:1"}, nil
}

func succeed(string) error { return nil }

func (r *fakeRuntime) newPuller(problems *[]string, images ...string) Puller {
	report := func(problem string) { *problems = append(*problems, problem) }
	return Puller{Images: images, Service: r, Report: report, Clock: clock.RealClock{}}
}

func TestOnlyMissingImagesArePulled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var problems []string
		r := &fakeRuntime{images: []string{"b"}, pull: succeed}
		if err := r.newPuller(&problems, "a", "b", "c").Run(t.Context()); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"a", "c"}, r.pulled); diff != "" || problems != nil {
			t.Error(diff, problems)
		}
	})
}

func TestAPullThatFailsIsRepeatedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var problems []string
		r := &fakeRuntime{}
		r.pull = func(image string) error {
			if image == "b" && len(r.pulled) < 10 {
				return errors.New("no such host")
			}
			return nil
		}
		start := time.Now()
		if err := r.newPuller(&problems, "a", "b", "c").Run(t.Context()); err != nil {
			t.Error(err)
		}
		// Ten pulls, and the delays 1, 2, 4, 8, 16, 30 and 30 s.
		if took := time.Since(start); took != 101*time.Second {
			t.Errorf("it took %s", took)
		}
		if r.pulled[2] != "c" {
			t.Errorf("an image that cannot be pulled keeps the others from being pulled: %q", r.pulled)
		}
		if len(problems) != 8 || problems[6] != "the image b could not be pulled: no such host" || problems[7] != "" {
			t.Errorf("%q", problems)
		}
	})
}

func TestAPullEndsWithItsContext(t *testing.T) {
	for name, fails := range map[string]error{"during a pull": nil, "between two pulls": errors.New("no such host")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
				defer cancel()
				var problems []string
				r := &fakeRuntime{pull: func(string) error { return fails }}
				if err := r.newPuller(&problems, "a", "b").Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}
