package imagestore

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// copyStore returns a store with a copy of the folder: what a kill -9 at this moment leaves behind.
func copyStore(t testing.TB, s *Store) *Store {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "images")
	if err := os.CopyFS(copied, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return openUnsynced(copied)
}

// At each moment, a reference has all of its blobs; and from each moment, the next commands succeed.
func TestACrashLeavesACompleteStore(t *testing.T) {
	before := layoutOf(t, "amd64", busybox)
	after, _, _, _ := multiLayout(t, busybox)
	two := dockerArchive(t, "amd64", busybox, "quay.io/a/b:c")
	archive := writeTemp(t, "two.tar.gz", compress(t, toTar(t, two)))
	folder := writeFolder(t, after)
	for name, act := range map[string]func(s *Store) error{
		"loading": func(s *Store) error {
			_, err := s.Load(t.Context(), folder, LoadOptions{Architecture: "amd64"})
			return err
		},
		"loading two names from an archive": func(s *Store) error {
			_, err := s.Load(t.Context(), archive, LoadOptions{Architecture: "amd64"})
			return err
		},
		"deleting": func(s *Store) error { return s.Delete(t.Context(), busybox) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			load(t, s, before)
			var crashes []*Store
			s.afterChange = func(change string) error {
				if !strings.HasPrefix(change, "synced") { // which changes no file
					crashes = append(crashes, copyStore(t, s))
				}
				return nil
			}
			if err := act(s); err != nil {
				t.Fatal(err)
			}
			if len(crashes) < 4 {
				t.Fatalf("only %d moments", len(crashes))
			}
			for _, crashed := range crashes {
				checkStore(t, crashed, false)
				again := copyStore(t, crashed)
				if err := act(again); err != nil && !errors.Is(err, ErrNotFound) {
					t.Errorf("the next attempt: %v", err)
				}
				if name != "deleting" {
					checkStore(t, again, true)
				}
				if _, err := crashed.Load(t.Context(), folder, LoadOptions{Architecture: "amd64"}); err != nil {
					t.Error(err)
				}
				checkStore(t, crashed, true)
				deleteAll(t, crashed)
			}
		})
	}
}

// deleteAll deletes all images, and expects that nothing but the lock remains.
func deleteAll(t testing.TB, s *Store) {
	t.Helper()
	images, err := s.List()
	if err != nil {
		t.Error(err)
	}
	for _, i := range images {
		if err := s.Delete(t.Context(), i.Name); err != nil {
			t.Error(err)
		}
		checkStore(t, s, true)
	}
	if diff := cmp.Diff([]string{"lock"}, listFiles(t, s.dir)); diff != "" {
		t.Error(diff)
	}
}

// A loss of power must not leave a name without its content: each file is synced before it gets its
// name, and everything that a reference needs before the reference.
func TestFilesAreSyncedBeforeTheirNames(t *testing.T) {
	s := newStore(t)
	var synced []string
	s.syncFile = func(f *os.File) error {
		below, err := filepath.Rel(s.dir, f.Name())
		if name := filepath.Base(below); strings.HasPrefix(name, temporaryPrefix) {
			below = filepath.Join(filepath.Dir(below), temporaryPrefix)
		}
		synced = append(synced, below)
		return err
	}
	s.afterChange = func(change string) error {
		if path, isRename := strings.CutPrefix(change, "renamed "+s.dir+"/"); isRename {
			synced = append(synced, "renamed "+filepath.Dir(path))
		}
		return nil
	}
	load(t, s, layoutOf(t, "amd64", busybox))
	blobs, tags := blobsFolder, "references/docker.io/library/busybox/_tags"
	var want []string
	for range 3 { // a configuration, a layer and a manifest
		want = append(want, blobs+"/"+temporaryPrefix, "renamed "+blobs)
	}
	want = append(want, blobs, "blobs", ".", tags+"/"+temporaryPrefix, "renamed "+tags)
	for dir := tags; dir != "."; dir = filepath.Dir(dir) {
		want = append(want, dir)
	}
	if diff := cmp.Diff(append(want, "."), synced); diff != "" {
		t.Error(diff)
	}
}

// The disk is full from a certain write on, wherever that is: the error says what to do, and what was
// in the store remains.
func TestAFullDiskLeavesNothing(t *testing.T) {
	layout, _, _, _ := multiLayout(t, "busybox:new")
	folder := writeFolder(t, layout)
	old := layoutOf(t, "amd64", busybox)
	for n := 0; ; n++ {
		s := newStore(t)
		load(t, s, old)
		writes := 0
		s.afterChange = func(change string) error {
			isWrite := strings.HasPrefix(change, "wrote") || strings.Contains(change, temporaryPrefix)
			if isWrite {
				writes++
			}
			if isWrite && writes > n {
				return syscall.ENOSPC
			}
			return nil
		}
		images, err := s.Load(t.Context(), folder, LoadOptions{Architecture: "amd64"})
		if err == nil {
			if n < 8 {
				t.Errorf("only %d writes", n)
			}
			return
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free space on the disk of "+s.dir) || len(images) > 0 {
			t.Errorf("got %v, %v", images, err)
		}
		checkStore(t, s, true)
		if listed, err := s.List(); err != nil || summarize(listed) != busybox+" linux/amd64" {
			t.Errorf("after write %d: %v, %v", n, listed, err)
		}
	}
}

func TestDelete(t *testing.T) {
	s := newStore(t)
	var shared files
	shared.finish(t, called(shared.addManifest(t, "amd64", "same"), nameAnnotation, "a:1"), called(shared.addManifest(t, "amd64", "other"), nameAnnotation, "a/b:1"))
	load(t, s, shared)
	load(t, s, layoutOf(t, "amd64", busybox))
	for _, name := range []string{"a", "a:2", "quay.io/a:1"} {
		if err := s.Delete(t.Context(), name); !errors.Is(err, ErrNotFound) {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
	if err := s.Delete(t.Context(), "A B"); err == nil || !strings.Contains(err.Error(), "is no image name") {
		t.Errorf("got %v", err)
	}
	for _, c := range []struct{ name, want string }{
		{"a:1", "docker.io/a/b:1 linux/amd64\n" + busybox + " linux/amd64"},
		{"docker.io/a/b:1", busybox + " linux/amd64"},
		{"busybox:1.36", ""},
	} {
		if err := s.Delete(t.Context(), c.name); err != nil {
			t.Fatal(err)
		}
		images, err := s.List()
		if diff := cmp.Diff(c.want, summarize(images)); err != nil || diff != "" {
			t.Errorf("after deleting %s (%v): %s", c.name, err, diff)
		}
		checkStore(t, s, true)
	}
	entries, err := os.ReadDir(s.path(referencesFolder))
	if err != nil || len(entries) > 0 {
		t.Errorf("folders remain: %v, %v", entries, err)
	}
	never := newStore(t)
	if err := never.Delete(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(never.dir); !os.IsNotExist(err) {
		t.Errorf("deleting created the folder: %v", err)
	}
}

func TestADamagedImageIsReportedAndLoadedAgain(t *testing.T) {
	layout, index, amd64, _ := multiLayout(t, busybox)
	for name, damage := range map[string]func(s *Store) string{
		"reference":      func(s *Store) string { return s.path("references/docker.io/library/busybox/_tags/1.36") },
		"index":          func(s *Store) string { return s.path(blobName(index.Digest)) },
		"manifest":       func(s *Store) string { return s.path(blobName(amd64.Digest)) },
		"size of layers": func(s *Store) string { return s.path(blobName(layerOf(t, layout, amd64))) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			load(t, s, layout)
			load(t, s, layoutOf(t, "amd64", "other:v1"))
			if err := os.WriteFile(damage(s), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			images, err := s.List()
			if err == nil || !strings.Contains(err.Error(), "image "+busybox) || !strings.Contains(err.Error(), "load the image again") {
				t.Errorf("got %v", err)
			}
			if summarize(images) != "docker.io/library/other:v1 linux/amd64" {
				t.Errorf("the other image is not listed: %v", images)
			}
			if err := s.Delete(t.Context(), "other:v1"); err == nil || !strings.Contains(err.Error(), busybox) {
				t.Errorf("blobs were removed without knowing what the image needs: %v", err)
			}
			load(t, s, layout)
			checkStore(t, s, true)
			deleteAll(t, s)
		})
	}
}

func TestAMissingManifestIsReported(t *testing.T) {
	s := newStore(t)
	images := load(t, s, layoutOf(t, "amd64", busybox))
	if err := os.Remove(s.path(blobsFolder + "/" + strings.TrimPrefix(images[0].Digest, "sha256:"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(); err == nil || !strings.Contains(err.Error(), "is missing: load the image again, or delete it") {
		t.Errorf("got %v", err)
	}
	if err := s.Delete(t.Context(), busybox); err != nil {
		t.Error(err)
	}
	checkStore(t, s, true)
}

func TestLoadAndDeleteEndWithTheirContext(t *testing.T) {
	s := newStore(t)
	archive := writeTemp(t, "a.tar.gz", compress(t, toTar(t, dockerArchive(t, "amd64", busybox))))
	folder := writeFolder(t, layoutOf(t, "amd64", busybox))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{archive, folder} {
		if images, err := s.Load(ctx, path, LoadOptions{Architecture: "amd64"}); !errors.Is(err, context.Canceled) || len(images) > 0 {
			t.Errorf("got %v, %v", images, err)
		}
		checkStore(t, s, true)
	}
	ctx, cancel = context.WithCancel(t.Context())
	s.afterChange = func(string) error {
		cancel()
		return nil
	}
	if images, err := s.Load(ctx, folder, LoadOptions{Architecture: "amd64"}); !errors.Is(err, context.Canceled) || len(images) > 0 {
		t.Errorf("got %v, %v", images, err)
	}
	checkStore(t, s, true)
}

// Loads, deletions, lists and pulls of random images at the same time: each succeeds, and nothing
// is lost or left.
func TestManyProcessesUseOneStore(t *testing.T) {
	dir := newStore(t).dir
	var folders []string
	for _, name := range []string{"a:1", "a:2", "b:1"} {
		folders = append(folders, writeFolder(t, layoutOf(t, "amd64", name)))
	}
	seed := rand.Uint64() //nolint:gosec // a test
	t.Logf("seed %d", seed)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker))) //nolint:gosec // a test
			s := openUnsynced(dir)
			for range 15 {
				i := random.IntN(len(folders))
				switch random.IntN(3) {
				case 0:
					if err := s.Delete(t.Context(), []string{"a:1", "a:2", "b:1"}[i]); err != nil && !errors.Is(err, ErrNotFound) {
						t.Error(err)
					}
				case 1:
					if _, err := s.List(); err != nil {
						t.Error(err)
					}
				default:
					if _, err := s.Load(t.Context(), folders[i], LoadOptions{Architecture: "amd64"}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	s := openUnsynced(dir)
	checkStore(t, s, true)
	load(t, s, layoutOf(t, "amd64", busybox))
	deleteAll(t, s)
}
