//go:build containers

package containers

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// image is the path of an archive of the image imageName.
var image string

const imageName = "hotspare.test/testpod:1"

// makeImage makes an archive of an image with busybox and the program testpod, in the format of
// docker save, and returns its path.
func makeImage(dir string) (string, error) {
	program := filepath.Join(dir, "testpod")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "./testpod") //nolint:noctx // it ends
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building testpod: %w\n%s", err, out)
	}
	layer, err := makeLayer(program)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "testpod.tar")
	return path, writeImage(path, imageName, layer, map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"testpod", "wait"}})
}

// makeProgramImage makes an archive of an image with one static program in /usr/bin, as the ones of
// Containerfile, and returns its path.
func makeProgramImage(dir, name, program string) (string, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return "", err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := addFile(w, "usr/bin/"+filepath.Base(program), content); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(dir, filepath.Base(program)+".tar")
	return path, writeImage(path, name, layer.Bytes(), map[string]any{
		"Env": []string{"PATH=/usr/bin"}, "User": "65532:65532", "Entrypoint": []string{"/usr/bin/" + filepath.Base(program)},
	})
}

// writeImage writes an archive of an image with one layer.
func writeImage(path, name string, layer []byte, settings map[string]any) error {
	var archive bytes.Buffer
	if err := writeImageTo(&archive, name, layer, settings); err != nil {
		return err
	}
	return os.WriteFile(path, archive.Bytes(), 0o600)
}

func writeImageTo(archive io.Writer, name string, layer []byte, settings map[string]any) error {
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": settings,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	w := tar.NewWriter(archive)
	for name, content := range map[string][]byte{"config.json": config, "layer.tar": layer, "manifest.json": manifest} {
		if err := addFile(w, name, content); err != nil {
			return err
		}
	}
	return w.Close()
}

// makeLayer returns a tar of the image's files.
func makeLayer(program string) ([]byte, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, dir := range []string{"bin", "tmp", "etc", "data"} {
		if err := w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o777}); err != nil {
			return nil, err
		}
	}
	for name, path := range map[string]string{"bin/busybox": "/bin/busybox", "bin/testpod": program} {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := addFile(w, name, content); err != nil {
			return nil, err
		}
	}
	list, err := exec.Command("/bin/busybox", "--list").Output() //nolint:noctx // it ends
	if err != nil {
		return nil, err
	}
	for applet := range strings.FieldsSeq(string(list)) {
		if applet == "busybox" {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox"}); err != nil {
			return nil, err
		}
	}
	if err := addFile(w, "etc/passwd", []byte("root:x:0:0:root:/:/bin/sh\n")); err != nil {
		return nil, err
	}
	return layer.Bytes(), w.Close()
}

func addFile(w *tar.Writer, name string, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
