package door

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
)

// off tells the addresses that have no console served.
func off(address string) bool { return address == "" || address == "0" }

// CheckAddress says what is wrong with the address of a console that is served by plain
// http. It must be a loopback address; "" and "0" serve none.
func CheckAddress(address string) error {
	if off(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--console-address %q is no address: give a loopback address with a port, such as 127.0.0.1:9080, or 0 for no console", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--console-address %q could be reached from elsewhere, where others could read what passes: "+
			"give a loopback address, such as 127.0.0.1:9080", address)
	}
	return nil
}

// A Stand is where a console is served on this computer, until Close.
type Stand struct {
	net.Listener
	Plate Plate
	path  string
}

// Listen listens for browsers, and says in a data folder where, with a new key. Port 0
// is the one of last time, since people keep it among their bookmarks, or else any that
// is free. It returns nil, and there is no plate, when no console is wanted.
func Listen(dir, address string) (*Stand, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	path := FilePath(dir)
	if err := forgetLink(dir); err != nil {
		return nil, err
	}
	if off(address) {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("forgetting where the console was: %w", err)
		}
		return nil, nil
	}
	l, err := listenAgain(path, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: stop that program, or choose another with --console-address", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for browsers: %w", err)
	}
	s := &Stand{Listener: l, Plate: Plate{URL: "http://" + l.Addr().String() + "/", Key: NewKey()}, path: path}
	if err := s.Plate.Write(path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// LinkPath is that of a page in a data folder that leads to the console.
func LinkPath(dir string) string { return filepath.Join(dir, "console.html") }

func forgetLink(dir string) error {
	if err := os.Remove(LinkPath(dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an old link to the console: %w", err)
	}
	return nil
}

// listenAgain prefers where it was last time, if the port is left open, unless somebody
// else is there now.
func listenAgain(path, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err == nil && port == "0" {
		if last := lastPort(path); last != "" {
			if l, err := net.Listen("tcp", net.JoinHostPort(host, last)); err == nil {
				return l, nil
			}
		}
	}
	return net.Listen("tcp", address)
}

// lastPort is that of last time; "" when nobody knows.
func lastPort(path string) string {
	last, err := Read(path)
	if err != nil {
		return ""
	}
	u, err := url.Parse(last.URL)
	if err != nil {
		return ""
	}
	return u.Port()
}

// Port is the one listened on.
func (s *Stand) Port() string {
	_, port, err := net.SplitHostPort(s.Addr().String())
	if err != nil {
		return ""
	}
	return port
}

// Close stops listening, if nobody has, and takes the key off the plate: whoever reads
// it from now on can tell that there is no console.
func (s *Stand) Close() error {
	err := s.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	s.Plate.Key = nil
	return errors.Join(err, s.Plate.Write(s.path), forgetLink(filepath.Dir(s.path)))
}
