package machine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ImageTokenHeader is the header of HTTP in which a node shows the image token of its cluster.
const ImageTokenHeader = "Hotspare-Image-Token"

// ImageTokenPath returns the path of a cluster's image token; dir is the folder of its control plane.
func ImageTokenPath(dir string) string { return filepath.Join(NetworkPath(dir), "image-token") }

// EnsureImageToken returns the image token of a cluster, whose control plane has the folder dir. The token distinguishes
// the container runtime of a node, for which the control plane uses the pull secret of the cluster, from pods in the
// network of the node. The control plane or a worker creates it, whichever comes first.
func EnsureImageToken(dir string) (string, error) {
	token, err := ensureImageToken(ImageTokenPath(dir))
	if err != nil {
		return "", fmt.Errorf("reading the image token of the cluster: %w", err)
	}
	return token, nil
}

func ensureImageToken(path string) (string, error) {
	token, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) && (err != nil || len(token) > 0) {
		return string(token), err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err == nil { // a power failure has left it empty
		err = os.Remove(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := createImageToken(path); err != nil {
		return "", err
	}
	token, err = os.ReadFile(path) // it may be the one of another process
	return string(token), err
}

// createImageToken creates the file with its content, unless it exists.
func createImageToken(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".image-token-") // with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(rand.Text())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}
