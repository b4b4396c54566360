package imagestore

import (
	"archive/tar"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writeHugeArchive writes an archive of docker save with one layer of size bytes, which takes no space: the
// file is sparse.
func writeHugeArchive(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "huge.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw := config(t, "amd64", []byte("a layer that is not this one"))
	w := tar.NewWriter(f)
	for name, content := range map[string][]byte{
		"config.json":  raw,
		dockerManifest: toJSON(t, []dockerImage{{Config: "config.json", RepoTags: []string{busybox}, Layers: []string{"layer.tar"}}}),
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "layer.tar", Size: size, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	end, err := f.Seek(0, 1)
	if err == nil {
		err = f.Truncate(end + size + 1024) // an archive ends with two blocks of zeros
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnImageThatIsLargerThanTheFreeSpaceIsRefusedAtOnce(t *testing.T) {
	for size, want := range map[int64]string{
		3 << 30: "the images need 3.2 GB, and the disk has only 2.1 GB free, of which 268.4 MB are kept for the clusters",
		8 << 40: "the images need 8796.1 GB, and the disk has only 2.1 GB free, of which 268.4 MB are kept for the clusters",
	} {
		s := newStore(t)
		s.free = func(string) (int64, error) { return 2 << 30, nil }
		load(t, s, layoutOf(t, "amd64", "other:v1"))
		before := listFiles(t, s.dir)
		images, err := s.Load(t.Context(), writeHugeArchive(t, size), LoadOptions{Architecture: "amd64"})
		if !errors.Is(err, syscall.ENOSPC) || len(images) > 0 || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "free space on the disk of "+s.dir) {
			t.Errorf("got %v, %v", images, err)
		}
		if diff := cmp.Diff(before, listFiles(t, s.dir)); diff != "" {
			t.Errorf("the store has changed: %s", diff)
		}
	}
}

func TestLoadLeavesTheReserveFree(t *testing.T) {
	layout, _, _, _ := multiLayout(t, busybox)
	folder := writeFolder(t, layout)
	images, err := newStore(t).Load(t.Context(), folder, LoadOptions{Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t)
	free := reserve + images[0].Size - 1
	s.free = func(string) (int64, error) { return free, nil }
	if _, err := s.Load(t.Context(), folder, LoadOptions{Architecture: "amd64"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("an image is loaded that needs a byte of the reserve: %v", err)
	}
	free++
	if _, err := s.Load(t.Context(), folder, LoadOptions{Architecture: "amd64"}); err != nil {
		t.Errorf("an image that fits is not loaded: %v", err)
	}
	free = reserve
	if _, err := s.Load(t.Context(), folder, LoadOptions{Architecture: "amd64"}); err != nil {
		t.Errorf("an image that the store has needs more space: %v", err)
	}
}

func TestACompressedArchiveIsUncompressedWhileThereIsSpace(t *testing.T) {
	archive := writeTemp(t, "a.tar.gz", compress(t, toTar(t, dockerArchive(t, "amd64", busybox).with("zeros", strings.Repeat("\x00", 4*checkEvery)))))
	s := newStore(t)
	checks := 0
	s.free = func(string) (int64, error) {
		checks++
		return reserve - int64(checks/3), nil // it becomes full at the third check
	}
	images, err := s.Load(t.Context(), archive, LoadOptions{Architecture: "amd64"})
	if !errors.Is(err, syscall.ENOSPC) || len(images) > 0 || checks != 3 || !strings.Contains(err.Error(), "the disk has only 268.4 MB free") {
		t.Errorf("after %d checks: %v, %v", checks, images, err)
	}
	if left := listFiles(t, s.dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if runtime.GOOS == "linux" {
		if open := openFilesBelow(t, s.dir); len(open) > 0 {
			t.Errorf("the space is not given back: %q is open", open)
		}
	}
}

// openFilesBelow returns the files below a folder that this process has open; deleted ones, too.
func openFilesBelow(t *testing.T, dir string) (found []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, dir) {
			found = append(found, target)
		}
	}
	return found
}

func TestABlobIsNotServedToANodeWhoseDiskIsFull(t *testing.T) {
	s := newStore(t)
	layout, _, amd64, _ := multiLayout(t, busybox)
	load(t, s, layout)
	digest := layerOf(t, layout, amd64)
	size := int64(len(contentOf(t, layout, digest)))
	path := "/v2/library/busybox/blobs/" + digest.String() + "?ns=docker.io"
	for free, want := range map[int64]int{reserve + size: http.StatusOK, reserve + size - 1: http.StatusInsufficientStorage, 0: http.StatusInsufficientStorage} {
		s.free = func(string) (int64, error) { return free, nil }
		for method, want := range map[string]int{http.MethodGet: want, http.MethodHead: http.StatusOK} {
			recorder := httptest.NewRecorder()
			s.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			if recorder.Code != want || want == http.StatusInsufficientStorage && !strings.Contains(recorder.Body.String(), "free space for blob "+digest.String()) {
				t.Errorf("%s with %d bytes free: %d %s, want %d", method, free, recorder.Code, recorder.Body, want)
			}
		}
	}
}
