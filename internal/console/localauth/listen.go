package localauth

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/listen"
)

var addressFlag = listen.Flag{
	Name: "--console-address", Example: "127.0.0.1:9080", What: "console", Why: "where others could read the traffic",
}

// CheckAddress returns an error if a console must not be served on an address by plain HTTP. The
// address must be a loopback address; "" and "0" disable the console.
func CheckAddress(address string) error { return addressFlag.CheckAddress(address) }

// A Listener listens for the console's connections on this computer, until Close.
type Listener struct {
	net.Listener
	Endpoint Endpoint
	path     string
}

// Listen listens for browsers and writes the endpoint with a new key to the data folder. Port 0
// selects the port of the previous run, because users bookmark it, or any free port if that one is
// taken. If the console is disabled, Listen returns nil and removes the endpoint.
func Listen(dir, address string) (*Listener, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	path := EndpointPath(dir)
	if err := removeLinkPage(dir); err != nil {
		return nil, err
	}
	if listen.IsDisabled(address) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("removing the console endpoint: %w", err)
		}
		return nil, nil
	}
	last, err := ReadEndpoint(path)
	if err != nil {
		last = Endpoint{} // without it, the previous port is unknown
	}
	l, err := addressFlag.Listen(address, last.URL)
	if err != nil {
		return nil, err
	}
	s := &Listener{Listener: l, Endpoint: Endpoint{URL: "http://" + l.Addr().String() + "/", Key: NewKey()}, path: path}
	if err := s.Endpoint.WriteFile(path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// LinkPagePath returns the path of the page in a data folder that opens the console.
func LinkPagePath(dir string) string { return filepath.Join(dir, "console.html") }

func removeLinkPage(dir string) error {
	if err := os.Remove(LinkPagePath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an old link to the console: %w", err)
	}
	return nil
}

// Port returns the port of the listener.
func (l *Listener) Port() string {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return ""
	}
	return port
}

// Close stops listening, if the server has not, and removes the key from the endpoint: a reader of
// the endpoint then knows that no console is running.
func (l *Listener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	l.Endpoint.Key = nil
	return errors.Join(err, l.Endpoint.WriteFile(l.path), removeLinkPage(filepath.Dir(l.path)))
}
