package hub

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hotspare.io/hotspare/internal/embedded/controlplane"
	"hotspare.io/hotspare/internal/embedded/pki"
)

// The first port of a hub comes from this range. It is below the ephemeral ports that systems use for outgoing
// connections (from 32768 on Linux, 49152 on macOS): otherwise a client could be using the port when the hub starts
// again. It is also below the ports of local clusters (from 20000), and above those of Kubernetes' own
// components (10250 to 10259).
const (
	firstPort = 13000
	portCount = 7000
	portTries = 100
)

// listenOnLastPort listens on port, or, if that is 0, on the port of the last run of the hub in
// dir, or else on a free port. It stores the port, because users' kubeconfigs contain it.
func listenOnLastPort(dir string, port int) (net.Listener, error) {
	path := filepath.Join(dir, "port")
	last, err := readStoredPort(path)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = last
	}
	listener, err := listenOn(port)
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

// listenOn listens on port, or, if that is 0, on a random port of the range. If other programs use all that it tries, it
// listens on an ephemeral port.
func listenOn(port int) (net.Listener, error) {
	if port != 0 {
		return controlplane.Listen(port)
	}
	for range portTries {
		listener, err := controlplane.Listen(firstPort + rand.IntN(portCount)) //nolint:gosec // it is no secret
		var taken *controlplane.PortTakenError
		if !errors.As(err, &taken) {
			return listener, err
		}
	}
	return controlplane.Listen(0)
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
