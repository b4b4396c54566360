package imagestore

import (
	"context"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
)

// imageFor returns an image with a layer of random content for an architecture.
func imageFor(t *testing.T, architecture string) v1.Image {
	t.Helper()
	image, err := random.Image(500, 1)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return image
}

func indexOf(t *testing.T, architectures ...string) v1.ImageIndex {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, architecture := range architectures {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: imageFor(t, architecture), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index
}

// pullLab is a registry with users, and a client.
func pullLab(t *testing.T) (*registrytest.Registry, *upstream.Client) {
	t.Helper()
	r := registrytest.New(t, registrytest.Token)
	r.Set(func(s *registrytest.Settings) {
		s.Users = map[string]string{"alice": "hush"}
		s.Owners = map[string]string{"team/app": "alice"}
	})
	return r, upstream.New(upstream.Options{IsAllowed: func(netip.Addr) bool { return false }, Insecure: []string{r.Host}})
}

func TestPullCopiesAnImageFromItsRegistry(t *testing.T) {
	r, client := pullLab(t)
	r.Push(t, "open/one:v1", imageFor(t, "amd64"))
	r.Push(t, "open/several:v1", indexOf(t, "arm64", "amd64", "s390x"))
	r.Push(t, "team/app:v1", imageFor(t, "amd64"))
	alice := authn.AuthConfig{Username: "alice", Password: "hush"}
	for name, c := range map[string]struct {
		image       string
		credentials authn.AuthConfig
		o           LoadOptions
		want        string
		requests    int // a manifest and, for an index, that of the architecture, a configuration (which also names the platform of a single image) and a layer
	}{
		"of one platform":      {"open/one:v1", authn.AuthConfig{}, LoadOptions{}, r.Host + "/open/one:v1 linux/amd64", 4},
		"of several platforms": {"open/several:v1", authn.AuthConfig{}, LoadOptions{}, r.Host + "/open/several:v1 linux/amd64", 4},
		"with another name":    {"open/one:v1", authn.AuthConfig{}, LoadOptions{Name: "example.com/one:v2"}, "example.com/one:v2 linux/amd64", 4},
		"with credentials":     {"team/app:v1", alice, LoadOptions{}, r.Host + "/team/app:v1 linux/amd64", 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			c.o.Architecture = "amd64"
			r.Take()
			for range 2 { // the second time, the store has its blobs
				images, err := s.Pull(t.Context(), r.Host+"/"+c.image, client, c.credentials, c.o)
				if err != nil {
					t.Fatal(err)
				}
				if len(images) != 1 || images[0].Name+" "+strings.Join(images[0].Platforms, " ") != c.want {
					t.Errorf("got %+v, want %s", images, c.want)
				}
				if requests := r.Take(); len(requests) > c.requests {
					t.Errorf("%d requests, want at most %d: %q", len(requests), c.requests, requests)
				}
				checkStore(t, s, true)
			}
		})
	}
}

func TestAPullThatFailsLeavesNothing(t *testing.T) {
	r, client := pullLab(t)
	r.Push(t, "open/foreign:v1", imageFor(t, "s390x"))
	r.Push(t, "open/foreign:all", indexOf(t, "s390x", "ppc64le"))
	r.Push(t, "team/app:v1", imageFor(t, "amd64"))
	image := imageFor(t, "amd64")
	r.Push(t, "open/app:v1", image)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	r.Set(func(s *registrytest.Settings) { s.Missing = []string{"open/app/blobs/" + digest.String()} })
	for name, c := range map[string]struct {
		image string
		o     LoadOptions
		want  string
	}{
		"there is none":                    {"open/none:v1", LoadOptions{}, "answers 404"},
		"no credentials":                   {"team/app:v1", LoadOptions{}, "check the credentials for it in the pull secret"},
		"another platform":                 {"open/foreign:v1", LoadOptions{}, "the registry has no such image for linux/amd64"},
		"only other platforms":             {"open/foreign:all", LoadOptions{}, "the registry has no such image for linux/amd64"},
		"a layer is missing":               {"open/app:v1", LoadOptions{}, "answers 404"},
		"the name is a digest":             {"open/app@" + digest.String(), LoadOptions{}, "specify a tag instead"},
		"another name, which is not valid": {"open/app:v1", LoadOptions{Name: "A:b"}, "--name: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			c.o.Architecture = "amd64"
			images, err := s.Pull(t.Context(), r.Host+"/"+c.image, client, authn.AuthConfig{}, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "loading "+r.Host+"/"+c.image) {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			if diff := cmp.Diff("", summarize(images)); diff != "" {
				t.Error(diff)
			}
			if left, err := s.List(); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

func TestAPullThatIsCanceledEnds(t *testing.T) {
	r, client := pullLab(t)
	r.Push(t, "open/one:v1", imageFor(t, "amd64"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newStore(t).Pull(ctx, r.Host+"/open/one:v1", client, authn.AuthConfig{}, LoadOptions{Architecture: "amd64"}); err == nil {
		t.Error("no error")
	}
}

// longBlobs is a registry that sends more than the manifests say.
type longBlobs struct {
	Registry
	sent atomic.Int64
}

func (l *longBlobs) Open(ctx context.Context, i upstream.Item, credentials authn.AuthConfig) (io.ReadCloser, upstream.Descriptor, error) {
	body, d, err := l.Registry.Open(ctx, i, credentials)
	if err != nil || !i.IsBlob {
		return body, d, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(io.MultiReader(body, endless{}), countingWriter{&l.sent}), body}, d, nil
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type countingWriter struct{ n *atomic.Int64 }

func (w countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return len(p), nil
}

func TestARegistryThatSendsTooMuchIsRefused(t *testing.T) {
	r, client := pullLab(t)
	r.Push(t, "open/one:v1", imageFor(t, "amd64"))
	long := &longBlobs{Registry: client}
	s := newStore(t)
	if _, err := s.Pull(t.Context(), r.Host+"/open/one:v1", long, authn.AuthConfig{}, LoadOptions{Architecture: "amd64"}); err == nil {
		t.Error("the image was loaded")
	}
	if n := long.sent.Load(); n > 1<<20 {
		t.Errorf("%d bytes were read", n)
	}
}
