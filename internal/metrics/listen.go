package metrics

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// off tells the addresses that have no metrics served.
func off(address string) bool { return address == "" || address == "0" }

// CheckAddress says what is wrong with an address for metrics. It must be
// a loopback address, since nobody is asked who they are; "" and "0" serve none.
func CheckAddress(address string) error {
	if off(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--metrics-address %q is no address: give a loopback address with a port, such as 127.0.0.1:9090, or 0 for no metrics", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("--metrics-address %q could be reached from elsewhere, and metrics are served to whoever asks: "+
			"give a loopback address, such as 127.0.0.1:9090", address)
	}
	return nil
}

// Listen listens for scrapes and writes their URL to path, for hotspare status.
// Port 0 is the one of last time, since people's scrapers name it, or else any
// that is free. It returns nil, and there is no file, when no metrics are wanted.
func Listen(path, address string) (net.Listener, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	last := lastAddress(path, address)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("forgetting where metrics were served: %w", err)
	}
	if off(address) {
		return nil, nil
	}
	l, err := listenAgain(last, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: stop that program, or choose another with --metrics-address", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for scrapes of metrics: %w", err)
	}
	if err := os.WriteFile(path, []byte("http://"+l.Addr().String()+Path+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("writing down where metrics are served: %w", err), l.Close())
	}
	return l, nil
}

// listenAgain prefers where it was last time, unless somebody else is there now.
func listenAgain(last, address string) (net.Listener, error) {
	if last != "" {
		if l, err := net.Listen("tcp", last); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", address)
}

// lastAddress is where metrics were served last time, if address leaves the port
// open; "" when nobody knows.
func lastAddress(path, address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" {
		return ""
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	was, err := url.Parse(strings.TrimSpace(string(raw)))
	if err != nil || was.Port() == "" {
		return ""
	}
	return net.JoinHostPort(host, was.Port())
}
