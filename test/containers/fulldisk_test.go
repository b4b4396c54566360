//go:build containers

package containers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
)

const (
	// smallDisk is the size of the disk in memory that the test fills.
	smallDisk = 1200 << 20
	// hugeLayer is the size of a layer that does not fit on it: a multiple of zeroPart.
	hugeLayer = 1536 << 20
	// zeroPart is how many zeros are compressed at once.
	zeroPart = 64 << 20
)

// TestAFullDisk runs a hub in the background on a small disk. Images that do not fit are refused, and take no
// space. A hub that ends because the disk is full says so, and starts again with the pods and their volumes.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	dir := mountSmallDisk(t)
	images := registrytest.NewHandler(registrytest.Basic)
	server := httptest.NewServer(images)
	t.Cleanup(server.Close)
	images.URL, images.Host = server.URL, strings.TrimPrefix(server.URL, "http://")
	h := &hub{dir: filepath.Join(dir, "data")}
	t.Logf("%s", h.run(t, "up", "--detach", "--data-dir", h.dir, "--insecure-registries", images.Host))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if out, err := h.command(ctx, "down", "--data-dir", h.dir).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	h.run(t, "image", "load", image)
	c := h.newCluster(t, "small", 1)
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: kept}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [sh, -c, "echo started >> /host/log; exec testpod wait"]
    volumeMounts: [{name: host, mountPath: /host}]
  volumes: [{name: host, hostPath: {path: /var/lib/kept, type: DirectoryOrCreate}}]
`)
	c.kubectl("wait", "pod/kept", "--for=condition=Ready", "--timeout=3m")
	t.Run("an image that does not fit is not loaded", func(t *testing.T) { testLoadOnFullDisk(t, h) })
	t.Run("an image that does not fit is not pulled", func(t *testing.T) { testPullOnFullDisk(t, c.of(t), images) })
	t.Run("a hub whose disk is full ends, and starts again", func(t *testing.T) { testHubOnFullDisk(t, h, c.of(t)) })
}

// mountSmallDisk mounts a disk in memory, and returns its folder.
func mountSmallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d", int64(smallDisk))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func measureFree(t *testing.T, dir string) int64 {
	t.Helper()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	return int64(disk.Bavail) * disk.Bsize
}

// waitForSpace waits until nearly as much of the disk is free as before.
func waitForSpace(t *testing.T, dir string, before int64) {
	t.Helper()
	const tolerance = 64 << 20 // what the cluster writes meanwhile
	var free int64
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		if free = measureFree(t, dir); free >= before-tolerance {
			return
		}
	}
	t.Errorf("of the disk, %d MB were free, and %d MB are", before>>20, free>>20)
}

func testLoadOnFullDisk(t *testing.T, h *hub) {
	before := measureFree(t, h.dir)
	archive := filepath.Join(t.TempDir(), "huge.tar")
	if err := writeSparseImage(archive, "hotspare.test/huge:1", hugeLayer); err != nil {
		t.Fatal(err)
	}
	compressed := filepath.Join(t.TempDir(), "huge.tar.gz")
	if err := os.WriteFile(compressed, makeHugeFile(t, "layer.tar"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{archive: "the images need 1.6 GB, and the disk has only ", compressed: "the disk has only "} {
		out, err := h.command(t.Context(), "image", "load", path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), "free space on the disk of "+h.dir) {
			t.Errorf("%v\n%s", err, out)
		}
		waitForSpace(t, h.dir, before)
	}
	if out := h.run(t, "image", "list", "-o", "name"); out != imageName+"\n" {
		t.Errorf("the images are %s", out)
	}
	h.run(t, "status")
}

// writeSparseImage writes an archive of an image with one layer of zeros, as a sparse file.
func writeSparseImage(path, name string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // Truncate has written it
	var small bytes.Buffer
	if err := writeImageTo(&small, name, []byte("not this layer"), nil); err != nil {
		return err
	}
	w, r := tar.NewWriter(f), tar.NewReader(&small)
	for {
		header, err := r.Next()
		if err == io.EOF { //nolint:errorlint // as documented
			break
		}
		if err != nil {
			return err
		}
		if header.Name == "layer.tar" {
			continue
		}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(w, r); err != nil {
			return err
		}
	}
	if err := w.WriteHeader(&tar.Header{Name: "layer.tar", Mode: 0o644, Size: size}); err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	return f.Truncate(end + size + 1024)
}

// testPullOnFullDisk pulls an image whose layer does not fit when it is unpacked.
func testPullOnFullDisk(t *testing.T, c *cluster, images *registrytest.Registry) {
	huge, err := mutate.AppendLayers(readTestImage(t), static.NewLayer(makeHugeFile(t, "zeros"), types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	images.Push(t, "team/huge:v1", huge)
	before := measureFree(t, c.hub.dir)
	c.apply(fmt.Sprintf(privatePod, "huge", images.Host+"/team/huge:v1"))
	c.eventually(2*time.Minute, "no space left on device", "get", "events", "--field-selector", "reason=Failed,involvedObject.name=huge", "-o", "jsonpath={.items[*].message}")
	t.Log(c.kubectl("get", "events", "--field-selector", "reason=Failed,involvedObject.name=huge", "-o", "jsonpath={.items[*].message}"))
	c.kubectl("delete", "pod", "huge", "--now")
	waitForSpace(t, c.hub.dir, before)
	c.hub.run(t, "status")
	if out := c.kubectl("get", "pod", "kept", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"); out != "0" {
		t.Errorf("another pod has restarted %s times", out)
	}
}

// makeHugeFile returns a compressed tar with one file of hugeLayer zeros. A compressed file may consist of
// several, so that the zeros are compressed once.
func makeHugeFile(t *testing.T, name string) []byte {
	t.Helper()
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: hugeLayer}); err != nil {
		t.Fatal(err)
	}
	out := compress(t, header.Bytes())
	part := compress(t, make([]byte, zeroPart))
	for range hugeLayer / zeroPart {
		out = append(out, part...)
	}
	return append(out, compress(t, make([]byte, 1024))...) // the end of an archive
}

func compress(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// testHubOnFullDisk fills the disk until the hub ends.
func testHubOnFullDisk(t *testing.T, h *hub, c *cluster) {
	filler := filepath.Join(filepath.Dir(h.dir), "filler")
	fill(t, filler)
	var out []byte
	var err error
	for n, deadline := 0, time.Now().Add(2*time.Minute); time.Now().Before(deadline); n++ { // the hub ends at a write that needs space
		cmd := h.command(t.Context(), "kubectl", "create", "configmap", fmt.Sprintf("large-%d", n), "--from-literal=text="+strings.Repeat("x", 100_000))
		if out, err = cmd.CombinedOutput(); err != nil && strings.Contains(string(out), "refused") {
			break
		}
	}
	out, err = h.command(t.Context(), "status").CombinedOutput()
	for _, want := range []string{"does not answer: connection refused", "hotspare up (pid ", " ago: ", "the disk of " + h.dir + " is full: free disk space there, and run hotspare up again. All stored data is kept"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: status does not say %q:\n%s", err, want, out)
		}
	}
	t.Logf("%s", out)
	if out, err := h.command(t.Context(), "up", "--detach", "--data-dir", h.dir).CombinedOutput(); err == nil || !strings.Contains(string(out), "is full: free disk space there") {
		t.Errorf("a start while the disk is full: %v\n%s", err, out)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	started := h.run(t, "up", "--detach", "--data-dir", h.dir)
	for _, want := range []string{"the last run: hotspare up (pid ", "is full", "using the flags of an earlier start: --insecure-registries="} {
		if !strings.Contains(started, want) {
			t.Errorf("the next start does not say %q:\n%s", want, started)
		}
	}
	h.run(t, "kubectl", "get", "configmap", "large-0")
	c.eventually(2*time.Minute, "1", "get", "pod", "kept", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")
	c.eventually(time.Minute, "started\nstarted\n", "exec", "kept", "--", "cat", "/host/log")
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the disk is full
	for size := 1 << 20; size > 0; size /= 4 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
}
