// Package listen listens on addresses that only this computer can reach, for servers without
// authentication or with plain HTTP.
package listen

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// A Flag describes a flag with the address of a server.
type Flag struct {
	// Name is the name of the flag, such as --metrics-address; Example is an example of its value.
	Name, Example string
	// Why is the reason why only loopback addresses are allowed; What is, in one word, the thing
	// that is served.
	What, Why string
}

// IsDisabled reports whether the address disables the server: it is empty or 0.
func IsDisabled(address string) bool { return address == "" || address == "0" }

// CheckAddress returns an error that says what is wrong with an address. It must be a loopback
// address with a port, or disable the server.
func (f Flag) CheckAddress(address string) error {
	if IsDisabled(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q is not an address: use a loopback address with a port, such as %s, or 0 for no %s", f.Name, address, f.Example, f.What)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s %q could be reached from elsewhere, %s: use a loopback address, such as %s", f.Name, address, f.Why, f.Example)
	}
	return nil
}

// Listen listens on an address. If its port is 0, Listen uses the port of last, a URL, because
// users keep that URL. If last is empty or another program uses its port, Listen uses any free
// port.
func (f Flag) Listen(address, last string) (net.Listener, error) {
	if before := previousAddress(address, last); before != "" {
		if l, err := net.Listen("tcp", before); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is taken by another program: stop that program, or choose another with %s", address, f.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", f.What, err)
	}
	return l, nil
}

// previousAddress returns the address of the last run, or "" if the port is not 0 or the last port
// is unknown.
func previousAddress(address, last string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "0" {
		return ""
	}
	u, err := url.Parse(strings.TrimSpace(last))
	if err != nil || u.Port() == "" {
		return ""
	}
	return net.JoinHostPort(host, u.Port())
}
