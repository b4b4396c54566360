package pullthrough

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
)

func TestTheSecondClusterDownloadsNothing(t *testing.T) {
	for _, tc := range []struct{ repository, user string }{{"open/app", ""}, {"open/app", alice}, {"team/app", alice}} {
		l := newLab(t)
		l.newCluster(tc.user).want("OK", tc.repository, "v1")
		l.wantRequests("3 GET blobs, 1 GET manifests, 1 HEAD manifests")
		second := l.newCluster(tc.user)
		second.want("OK", tc.repository, "v1")
		l.wantRequests("") // the registry has just been asked with the same credentials
		l.step(2 * remembered)
		second.want("OK", tc.repository, "v1")
		l.wantRequests("1 HEAD manifests")
	}
}

func TestCredentialsGiveAccessToTheirOwnClusterOnly(t *testing.T) {
	l := newLab(t)
	l.newCluster(alice).want("OK", "team/app", "v1")
	for name, user := range map[string]string{"no credentials": "", "another user": bob, "wrong credentials": wrong} {
		t.Run(name, func(t *testing.T) {
			other := l.newCluster(user)
			other.want("401", "team/app", "v1")
			digest, err := l.image.Digest()
			if err != nil {
				t.Fatal(err)
			}
			paths := append(l.layers("team/app"), "team/app/manifests/"+digest.String())
			for _, path := range paths {
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					if got := other.request(method, path); got.status != http.StatusUnauthorized {
						t.Errorf("%s %s: %d", method, path, got.status)
					}
				}
			}
		})
	}
	if !l.logged("check the credentials") {
		t.Error("the log does not say why")
	}
}

func TestAClusterWithoutCredentialsGetsWhatEverybodyMayHave(t *testing.T) {
	l := newLab(t)
	l.newCluster(alice).want("OK", "open/app", "v1")
	l.requests()
	for _, user := range []string{"", bob, wrong} {
		l.newCluster(user).want("OK", "open/app", "v1")
		if got := l.requests(); strings.Contains(got, "GET") {
			t.Errorf("user %q: the registry was asked for %s", user, got)
		}
	}
}

func TestAccessEndsWhenTheRegistrySaysSo(t *testing.T) {
	l := newLab(t)
	c := l.newCluster(alice)
	c.want("OK", "team/app", "v1")
	l.registry.Set(func(s *registrytest.Settings) { s.Owners = map[string]string{"team/app": "bob"} })
	l.step(remembered)
	for _, path := range l.layers("team/app") {
		if got := c.get(path); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, got.status)
		}
	}
	c.want("401", "team/app", "v1")
	l.registry.Set(func(s *registrytest.Settings) { s.Status = 503 })
	l.step(time.Hour)
	c.want("502", "team/app", "v1") // what it had before does not count any more
}

// A repository of somebody else cannot give access to content by naming it.
func TestContentBelongsToItsRepository(t *testing.T) {
	l := newLab(t)
	private := newImage(t, 1)
	l.registry.Push(t, "team/app:private", private)
	l.newCluster(alice).want("OK", "team/app", "private")
	layers, err := private.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	c := l.newCluster("")
	c.want("OK", "open/app", "v1") // the cluster has access to this repository
	t.Run("of another repository", func(t *testing.T) {
		// The registry of the test serves any blob in any repository, as a registry with a fault would.
		// It is asked.
		l.requests()
		c.get("open/app/blobs/" + digest.String())
		if got := l.requests(); got != "1 HEAD blobs" {
			t.Errorf("the registry was asked for %q", got)
		}
	})
	t.Run("of another registry", func(t *testing.T) {
		// It claims to have the content, and does not.
		liar := registrytest.New(t, registrytest.Basic)
		liar.Push(t, "open/app:v1", newImage(t, 1))
		nowhere := registrytest.New(t, registrytest.Basic) // clusters may not connect to it
		liar.Set(func(s *registrytest.Settings) { s.RedirectBlobs = nowhere.URL })
		attacker := &lab{t: t, registry: liar, dir: l.dir, now: l.now}
		got := attacker.newCluster("").get("open/app/blobs/" + digest.String())
		if got.status == http.StatusOK {
			t.Errorf("another registry gives access to %d bytes", len(got.body))
		}
		if requests := attacker.requests(); requests != "1 GET blobs, 1 HEAD blobs" {
			t.Errorf("the registry was asked for %q", requests)
		}
	})
}

// While content arrives for one repository, it is not that of another one.
func TestADownloadBelongsToItsRepository(t *testing.T) {
	l := newLab(t)
	arrives, gate := make(chan struct{}), make(chan struct{})
	path := l.layers("team/app")[0]
	other := strings.Replace(path, "team", "open", 1)
	l.registry.Set(func(s *registrytest.Settings) {
		s.Missing = []string{other}
		s.Body = func(w http.ResponseWriter, content []byte) {
			close(arrives)
			<-gate
			_, _ = w.Write(content)
		}
	})
	outsider := l.newCluster("")
	if got := outsider.request(http.MethodHead, "open/app/manifests/v1"); got.status != http.StatusOK { // it has access to open/app
		t.Fatal(got.status)
	}
	owner := l.newCluster(alice)
	var pull sync.WaitGroup
	pull.Go(func() {
		if got := owner.get(path); got.status != http.StatusOK || got.err != nil {
			t.Errorf("the owner gets %d, %v", got.status, got.err)
		}
	})
	<-arrives
	if got := outsider.get(other); got.status != http.StatusNotFound {
		t.Errorf("while it arrives: %d", got.status)
	}
	close(gate)
	pull.Wait()
	owner.source.Wait()
	if got := outsider.get(other); got.status != http.StatusNotFound {
		t.Errorf("when it is stored: %d", got.status)
	}
}

func TestContentIsServedWhileTheRegistryIsDown(t *testing.T) {
	for name, status := range map[string]int{"down": 503, "limited": 429} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.newCluster(alice).want("OK", "team/app", "v1")
			l.registry.Set(func(s *registrytest.Settings) { s.Status = status })
			l.step(2 * time.Hour)
			c := l.newCluster(alice) // a new spare with the same pull secret
			c.want("OK", "team/app", "v1")
			if got := c.request(http.MethodHead, "team/app/manifests/v1"); got.header.Get("Age") != "7200" {
				t.Errorf("the age is %q", got.header.Get("Age"))
			}
			if !l.logged("served a tag as it was") {
				t.Error("the log does not say that the tag may be old")
			}
			want := map[int]string{503: "502", 429: "429"}[status]
			l.newCluster(bob).want(want, "team/app", "v1")
			l.newCluster("").want(want, "team/app", "v1")
			c.want(want, "team/app", "v2")
			c.want(want, "open/app", "v1")
			l.step(accessLife)
			c.want(want, "team/app", "v1")
		})
	}
}

func TestALimitIsPassedOn(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	l.registry.Set(func(s *registrytest.Settings) { s.Status, s.RetryAfter = 429, 60 })
	c.want("429", "open/app", "v1")
	l.registry.Set(func(s *registrytest.Settings) { s.Status = 0 })
	got := c.get("open/app/manifests/v1")
	if got.status != 429 || got.header.Get("Retry-After") != "60" || !strings.Contains(string(got.body), "TOOMANYREQUESTS") || !strings.Contains(string(got.body), "pull secret") {
		t.Errorf("got %d, %v: %s", got.status, got.header, got.body)
	}
	l.step(time.Minute)
	c.want("OK", "open/app", "v1")
}

func TestATagThatMovesIsFollowed(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	c.want("OK", "open/app", "v1")
	other := newImage(t, 1)
	l.registry.Push(t, "open/app:v1", other)
	want, err := other.Digest()
	if err != nil {
		t.Fatal(err)
	}
	l.step(remembered)
	c.want("OK", "open/app", "v1")
	if got := c.get("open/app/manifests/v1").header.Get("Docker-Content-Digest"); got != want.String() {
		t.Errorf("got %s, want %s", got, want)
	}
	c.want("410", "open/app", "v2") // after 404, the node would ask the registry, which it does not reach
}

func TestOneTagDoesNotMakeAnotherOneFresh(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	l.registry.Push(t, "open/app:v2", newImage(t, 1))
	c.want("OK", "open/app", "v1")
	l.step(remembered / 2)
	c.want("OK", "open/app", "v2")
	moved := newImage(t, 1)
	l.registry.Push(t, "open/app:v1", moved)
	want, err := moved.Digest()
	if err != nil {
		t.Fatal(err)
	}
	l.step(remembered / 2)
	c.want("OK", "open/app", "v2")
	if got := c.get("open/app/manifests/v1").header.Get("Docker-Content-Digest"); got != want.String() {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnIndexOfSeveralPlatforms(t *testing.T) {
	l := newLab(t)
	index := mutate.AppendManifests(
		empty.Index,
		mutate.IndexAddendum{Add: newImage(t, 1), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: newImage(t, 2), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
	)
	l.registry.Push(t, "open/app:multi", index)
	l.newCluster("").want("OK", "open/app", "multi")
	l.wantRequests("5 GET blobs, 3 GET manifests, 1 HEAD manifests")
	l.newCluster("").want("OK", "open/app", "multi")
	l.wantRequests("")
	images, size, err := List(l.dir)
	if err != nil || len(images) != 1 || images[0].Name != l.registry.Host+"/open/app:multi" || images[0].Size != size {
		t.Errorf("got %v with %d bytes, %v", images, size, err)
	}
}

func TestARegistryThatNamesNoDigests(t *testing.T) {
	l := newLab(t)
	l.registry.Set(func(s *registrytest.Settings) { s.OmitDigest = true })
	l.newCluster("").want("OK", "open/app", "v1")
	l.newCluster("").want("OK", "open/app", "v1")
}

func TestAStorageThatRefusesHead(t *testing.T) {
	l := newLab(t)
	storage := registrytest.New(t, registrytest.Basic)
	storage.Push(t, "team/app:v1", l.image)
	storage.Set(func(s *registrytest.Settings) { s.RefuseHead = true })
	l.registry.Set(func(s *registrytest.Settings) { s.RedirectBlobs = storage.URL })
	c := l.newCluster(alice)
	if got := c.request(http.MethodHead, l.layers("team/app")[0]); got.status != http.StatusOK {
		t.Errorf("HEAD: %d", got.status)
	}
	if got := c.get(l.layers("team/app")[0]); got.status != http.StatusForbidden {
		t.Errorf("the storage is at an address that is not allowed: %d", got.status)
	}
}

// manyAtOnce calls do in goroutines.
func manyAtOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

func TestPullsAtTheSameTimeMakeOneDownload(t *testing.T) {
	l := newLab(t)
	gate := make(chan struct{})
	l.registry.Set(func(s *registrytest.Settings) {
		s.Body = func(w http.ResponseWriter, content []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2])
			w.(http.Flusher).Flush()
			<-gate
			_, _ = w.Write(content[len(content)/2:])
		}
	})
	path := l.layers("team/app")[0]
	clusters := []*cluster{l.newCluster(alice), l.newCluster(alice), l.newCluster(bob)}
	statuses := make([]int, 9)
	var denied sync.WaitGroup
	denied.Add(3)
	go func() { // those who have no access do not wait for the content
		denied.Wait()
		close(gate)
	}()
	manyAtOnce(9, func(i int) {
		got := clusters[i%3].get(path)
		statuses[i] = got.status
		if i%3 == 2 {
			denied.Done()
			return
		}
		if got.err != nil || !strings.HasSuffix(path, got.header.Get("Docker-Content-Digest")) {
			t.Errorf("request %d: %v", i, got.err)
		}
		clusters[i%3].verify(got.header.Get("Docker-Content-Digest"), got)
	})
	for i, status := range statuses {
		if want := map[bool]int{false: 200, true: 401}[i%3 == 2]; status != want {
			t.Errorf("request %d: %d, want %d", i, status, want)
		}
	}
	gets := 0
	for _, r := range l.registry.Take() {
		if strings.HasPrefix(r, "GET ") {
			gets++
		}
	}
	if gets != 1 {
		t.Errorf("the registry has served the blob %d times", gets)
	}
}

func TestADownloadThatEndsBeforeAnotherBeginsServesBoth(t *testing.T) {
	l := newLab(t)
	path := l.layers("team/app")[0]
	first, second := l.newCluster(alice), l.newCluster(alice)
	var called atomic.Bool
	l.registry.Set(func(s *registrytest.Settings) {
		s.BeforeHead = func() { // the second cluster has looked, and found nothing
			if called.CompareAndSwap(false, true) {
				first.get(path)
				first.source.Wait()
			}
		}
	})
	second.verify(strings.SplitN(path, "/blobs/", 2)[1], second.get(path))
	l.wantRequests("1 GET blobs, 2 HEAD blobs")
}

func TestBadContentIsNotKept(t *testing.T) {
	for name, body := range map[string]func(http.ResponseWriter, []byte){
		"truncated": func(w http.ResponseWriter, content []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(content[:len(content)/2])
		},
		"shorter": func(w http.ResponseWriter, content []byte) { _, _ = w.Write(content[:len(content)/2]) },
		"altered": func(w http.ResponseWriter, content []byte) {
			altered := append([]byte{^content[0]}, content[1:]...)
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			_, _ = w.Write(altered)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			c := l.newCluster("")
			l.registry.Set(func(s *registrytest.Settings) { s.Body = body })
			path := l.layers("open/app")[0]
			got := c.get(path)
			is, _, err := v1.SHA256(strings.NewReader(string(got.body)))
			if err != nil || got.err == nil && name != "altered" || strings.HasSuffix(path, is.Hex) {
				t.Errorf("the client does not notice it: %d, %v", got.status, got.err)
			}
			c.source.Wait()
			if files := contents(t, l.dir); len(files) > 0 {
				t.Errorf("kept %v", files)
			}
			if !l.logged("did not store an image") {
				t.Error("the log does not say it")
			}
			l.registry.Set(func(s *registrytest.Settings) { s.Body = nil })
			c.want("OK", "open/app", "v1")
		})
	}
}

// contents lists the files with content, complete or not.
func contents(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"blobs/*", "downloads/*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	return found
}

func TestAConnectionThatBreaksOnceIsRepaired(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	var mu sync.Mutex
	calls := 0
	l.registry.Set(func(s *registrytest.Settings) {
		s.Body = func(w http.ResponseWriter, content []byte) {
			mu.Lock()
			defer mu.Unlock()
			w.Header().Set("Content-Length", fmt.Sprint(len(content)))
			if calls++; calls == 1 {
				content = content[:len(content)-100]
			}
			_, _ = w.Write(content)
		}
	})
	path := l.layers("open/app")[0]
	got := c.get(path)
	if got.status != http.StatusOK || got.err != nil || calls != 2 {
		t.Fatalf("got %d, %v after %d requests", got.status, got.err, calls)
	}
	_, digest, _ := strings.Cut(path, "/blobs/")
	c.verify(digest, got)
}

func TestAFullCacheStreams(t *testing.T) {
	l := newLab(t)
	c := l.newClusterWith("", 1000) // a layer has 3000 bytes
	for range 2 {
		c.want("OK", "open/app", "v1")
	}
	if !l.logged("more than its limit of 1000") {
		t.Error("the log does not say why")
	}
	for _, file := range contents(t, l.dir) {
		if info, err := os.Stat(file); err != nil || info.Size() > 1000 {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Run("a folder that cannot be written", func(t *testing.T) {
		l := newLab(t)
		c := l.newCluster("")
		if err := os.WriteFile(filepath.Join(l.dir, "downloads"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.want("OK", "open/app", "v1")
		if !l.logged("did not store an image") {
			t.Error("the log does not say it")
		}
	})
}

func TestADiskThatBecomesFullDoesNotBreakAPull(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	content := make([]byte, 2<<20)
	_, _ = rand.Read(content) // it does not fail
	layer := static.NewLayer(content, types.OCIUncompressedLayer)
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	l.registry.Push(t, "open/app:large", image)
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	c.source.cache.Write = func(f *os.File, p []byte) (int, error) {
		if written += len(p); written > len(content)/2 {
			return 0, syscall.ENOSPC
		}
		return f.Write(p)
	}
	got := c.get("open/app/blobs/" + digest.String())
	if got.status != http.StatusOK || got.err != nil {
		t.Fatalf("got %d, %v", got.status, got.err)
	}
	c.verify(digest.String(), got)
	c.source.Wait()
	if files := contents(t, l.dir); len(files) > 0 || !l.logged("no space left on device") {
		t.Errorf("kept %v", files)
	}
}

func TestABlobIsNotServedToANodeWhoseDiskIsFull(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	path := l.layers("open/app")[0]
	for _, what := range []string{"of the registry", "of the cache"} {
		c.source.free = func(string) (int64, error) { return registryapi.PullReserve, nil }
		if got := c.get(path); got.status != http.StatusInsufficientStorage || !strings.Contains(string(got.body), "free space for blob") {
			t.Errorf("a blob %s: %d %s", what, got.status, got.body)
		}
		if got := c.request(http.MethodHead, path); got.status != http.StatusOK {
			t.Errorf("a blob %s: HEAD answers %d", what, got.status)
		}
		c.source.free = func(string) (int64, error) { return 1 << 40, nil }
		c.want("OK", "open/app", "v1")
	}
	if !l.logged("free space for blob") {
		t.Error("the log does not say why")
	}
}

func TestAnotherAnswerOfARegistryLetsTheNodeAskItself(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	inside := registrytest.New(t, registrytest.Basic) // at an address that is not allowed, and not listed as insecure
	inside.Push(t, "team/app:v1", l.image)
	if got := c.requestFrom(inside, http.MethodHead, "team/app/manifests/v1"); got.status != http.StatusNotFound {
		t.Errorf("a registry that only the node reaches: %d", got.status)
	}
	if !l.logged("did not pull") {
		t.Error("the log does not say that the registry is not asked")
	}
}

func TestARegistryThatStallsEndsThePull(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	c.source.stall = 20 * time.Millisecond
	ended := make(chan struct{})
	l.registry.Set(func(s *registrytest.Settings) {
		s.Body = func(w http.ResponseWriter, content []byte) {
			_, _ = w.Write(content[:100])
			w.(http.Flusher).Flush()
			<-ended
		}
	})
	if got := c.get(l.layers("open/app")[0]); got.err == nil {
		t.Errorf("got %d and %d bytes", got.status, len(got.body))
	}
	close(ended)
	c.source.Wait()
	if files := contents(t, l.dir); len(files) > 0 {
		t.Errorf("kept %v", files)
	}
}

func TestOldImagesMakeRoom(t *testing.T) {
	l := newLab(t)
	for i := range 4 {
		l.registry.Push(t, fmt.Sprintf("open/app:n%d", i), newImage(t, 1))
	}
	c := l.newClusterWith("", 9000) // two images of more than 3000 bytes
	for i := range 4 {
		c.want("OK", "open/app", fmt.Sprintf("n%d", i))
		l.step(time.Hour)
	}
	images, size, err := List(l.dir)
	if err != nil || size > 9000 {
		t.Fatalf("%d bytes, %v", size, err)
	}
	names := ""
	for _, i := range images {
		if i.Size > 3000 {
			names += strings.TrimPrefix(i.Name, l.registry.Host+"/open/app:")
		}
	}
	if names != "n2n3" {
		t.Errorf("the cache has %s of %v", names, images)
	}
	c.want("OK", "open/app", "n0")
}

func TestDamagedContentIsReplaced(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"cut":     func(path string) error { return os.Truncate(path, 5) },
		"deleted": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			c := l.newCluster("")
			c.want("OK", "open/app", "v1")
			for _, path := range contents(t, l.dir) {
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
			}
			c.want("OK", "open/app", "v1")
			c.source.Wait()
			l.requests()
			c.want("OK", "open/app", "v1")
			l.wantRequests("")
		})
	}
}

func TestAnAlteredLayerIsDownloadedAgain(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	c.want("OK", "open/app", "v1")
	layer := l.layers("open/app")[0]
	_, hex, _ := strings.Cut(layer, "sha256:")
	path := filepath.Join(l.dir, "blobs", hex)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.get(layer); got.err == nil || len(got.body) >= len(raw) {
		t.Errorf("got %d of %d bytes of a damaged layer, %v", len(got.body), len(raw), got.err)
	}
	if !l.logged("deleted damaged content") {
		t.Error("the log does not name the damage")
	}
	l.requests()
	c.want("OK", "open/app", "v1")
	l.wantRequests("1 GET blobs")
	c.want("OK", "open/app", "v1")
	l.wantRequests("")
}

func TestAnAlteredManifestIsNotServed(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	c.want("OK", "open/app", "v1")
	digest, err := l.image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(l.dir, "blobs", digest.Hex)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(string(raw), "sha256:", "sha257:", 1)
	if err := os.WriteFile(path, []byte(altered), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.get("open/app/manifests/" + digest.String()); got.status != http.StatusInternalServerError {
		t.Errorf("got %d: %s", got.status, got.body)
	}
	c.want("OK", "open/app", "v1")
}

func TestALayerIsNoManifest(t *testing.T) {
	l := newLab(t)
	c := l.newCluster("")
	c.want("OK", "open/app", "v1")
	path := strings.Replace(l.layers("open/app")[0], "/blobs/", "/manifests/", 1)
	if got := c.get(path); got.status != http.StatusNotFound {
		t.Errorf("got %d", got.status)
	}
}

func TestRecordsThatAreDamagedCostARequest(t *testing.T) {
	l := newLab(t)
	c := l.newCluster(alice)
	c.want("OK", "team/app", "v1")
	err := c.source.records.walk(func(path, _ string, _ os.FileInfo) {
		if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.want("OK", "team/app", "v1")
	l.newCluster(bob).want("401", "team/app", "v1")
}

func TestRecordsContainNoCredentials(t *testing.T) {
	l := newLab(t)
	l.newCluster(alice).want("OK", "team/app", "v1")
	err := filepath.WalkDir(l.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		raw, err := os.ReadFile(path)
		if text := path + string(raw); strings.Contains(text, "hush") || strings.Contains(text, "alice") || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %s, %s", path, raw, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestIdentitiesDependOnAllOfTheCredentials(t *testing.T) {
	r, err := openRecords(t.TempDir(), time.Now, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	again, err := openRecords(r.dir, time.Now, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, raw := range []string{`{}`, `{"username":"a","password":"b"}`, `{"username":"b","password":"a"}`, `{"username":"ab"}`, `{"identitytoken":"ab"}`, `{"registrytoken":"ab"}`} {
		c := parseConfig(t, raw)
		id := r.identity(c)
		if seen[id] || id != again.identity(c) {
			t.Errorf("%s: %s", raw, id)
		}
		seen[id] = true
	}
}

func TestADamagedKeyIsReplaced(t *testing.T) {
	for name, damaged := range map[string][]byte{"empty": nil, "cut": make([]byte, 31), "too long": []byte(strings.Repeat("k", 33)), "zeros": make([]byte, 32)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, keyFile), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			var said []string
			log := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
			var keys []string
			for range 2 { // the second time, there is a good key
				r, err := openRecords(dir, time.Now, log)
				if err != nil {
					t.Fatal(err)
				}
				if !isKey(r.key) {
					t.Errorf("the key is %x", r.key)
				}
				keys = append(keys, string(r.key))
			}
			if keys[0] != keys[1] || len(said) != 1 || !strings.Contains(said[0], dir) {
				t.Errorf("the keys are %x, and the log %q", keys, said)
			}
		})
	}
}

func TestOldRecordsAreSwept(t *testing.T) {
	l := newLab(t)
	c := l.newCluster(alice)
	c.want("OK", "team/app", "v1")
	count := func() (n int) {
		err := c.source.records.walk(func(string, string, os.FileInfo) { n++ })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	l.step(2 * unusedLife)
	if l.newCluster(""); count() != before {
		t.Errorf("of content that exists: %d of %d are left", count(), before)
	}
	for _, path := range contents(t, l.dir) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if l.newCluster(""); count() != 1 { // the access
		t.Errorf("of deleted content: %d of %d are left", count(), before)
	}
	l.step(accessLife)
	if l.newCluster(""); count() != 0 {
		t.Errorf("of an old access: %d are left", count())
	}
}

func TestListAndPrune(t *testing.T) {
	l := newLab(t)
	if images, size, err := List(l.dir); len(images) != 0 || size != 0 || err != nil {
		t.Errorf("a cache that does not exist: %v, %d, %v", images, size, err)
	}
	if freed, err := Prune(t.Context(), l.dir); freed != 0 || err != nil {
		t.Errorf("a cache that does not exist: %d, %v", freed, err)
	}
	single := newImage(t, 1)
	l.registry.Push(t, "team/single:v1", single)
	digest, err := single.Digest()
	if err != nil {
		t.Fatal(err)
	}
	c := l.newCluster(alice)
	c.want("OK", "open/app", "v1")
	c.want("OK", "team/app", "v1")
	if got := c.pullDigest("team/single", digest.String()); got != "OK" {
		t.Fatal(got)
	}
	images, size, err := List(l.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	total := int64(0)
	for _, i := range images {
		names = append(names, strings.TrimPrefix(i.Name, l.registry.Host+"/"))
		if i.Name != l.registry.Host+"/team/app:v1" { // it has the content of open/app
			total += i.Size
		}
	}
	if want := "open/app:v1 team/app:v1 team/single@" + digest.String(); strings.Join(names, " ") != want || total != size {
		t.Errorf("got %v with %d of %d bytes", names, total, size)
	}
	if freed, err := Prune(t.Context(), l.dir); freed != size || err != nil || len(contents(t, l.dir)) > 0 {
		t.Errorf("freed %d of %d bytes, %v", freed, size, err)
	}
	if images, size, err := List(l.dir); len(images) != 0 || size != 0 || err != nil {
		t.Errorf("after pruning: %v, %d, %v", images, size, err)
	}
	c.want("OK", "open/app", "v1")
}

func TestSettings(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if got, err := ReadSettings(dir); err != nil || got.Limit != 0 {
		t.Errorf("without settings: %v, %v", got, err)
	}
	want := Settings{Limit: 5, InsecureRegistries: []string{"localhost:5000"}}
	if err := WriteSettings(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSettings(dir); err != nil || got.Limit != 5 || got.InsecureRegistries[0] != "localhost:5000" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := os.WriteFile(settingsPath(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadSettings(dir); err == nil {
		t.Error("damaged settings are read")
	}
}

func parseConfig(t *testing.T, raw string) (c authConfig) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatal(err)
	}
	return c
}
