package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// listenOnLastPort listens on port, or, if that is 0, on the port of the last run of the hub in
// dir, or else on any free port. It stores the port, because users' kubeconfigs contain it.
func listenOnLastPort(dir string, port int) (net.Listener, error) {
	path := filepath.Join(dir, "port")
	last, err := readStoredPort(path)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = last
	}
	listener, err := controlplane.Listen(port)
	if err != nil {
		return nil, fmt.Errorf("%w, or use another port for the hub", err)
	}
	port = listener.Addr().(*net.TCPAddr).Port
	if port == last {
		return listener, nil
	}
	if err := pki.WriteFile(path, []byte(strconv.Itoa(port)+"\n")); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// readStoredPort returns the port stored at path, or 0 if there is none.
func readStoredPort(path string) (int, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the previous port: %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("reading the previous port from %s: %w", path, err)
	}
	return port, nil
}
