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
	Name: "--console-address", Example: "127.0.0.1:9080", What: "console", Why: "where others could read what passes",
}

// CheckAddress says what is wrong with the address of a console that is served by plain
// http. It must be a loopback address; "" and "0" serve none.
func CheckAddress(address string) error { return addressFlag.CheckAddress(address) }

// A ConsoleListener is where a console is served on this computer, until Close.
type Listener struct {
	net.Listener
	Endpoint Endpoint
	path     string
}

// Listen listens for browsers, and says in a data folder where, with a new key. Port 0
// is the one of last time, since people keep it among their bookmarks, or else any that
// is free. It returns nil, and there is no plate, when no console is wanted.
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
			return nil, fmt.Errorf("forgetting where the console was: %w", err)
		}
		return nil, nil
	}
	last, err := ReadEndpoint(path)
	if err != nil {
		last = Endpoint{} // nobody knows where it was
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

// LinkPagePath is that of a page in a data folder that leads to the console.
func LinkPagePath(dir string) string { return filepath.Join(dir, "console.html") }

func removeLinkPage(dir string) error {
	if err := os.Remove(LinkPagePath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an old link to the console: %w", err)
	}
	return nil
}

// Port is the one listened on.
func (s *Listener) Port() string {
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		return ""
	}
	return port
}

// Close stops listening, if nobody has, and takes the key off the plate: whoever reads
// it from now on can tell that there is no console.
func (s *Listener) Close() error {
	err := s.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	s.Endpoint.Key = nil
	return errors.Join(err, s.Endpoint.WriteFile(s.path), removeLinkPage(filepath.Dir(s.path)))
}
