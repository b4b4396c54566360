// Package loopback listens where this computer alone can connect, for what is served
// there without asking who somebody is, or by plain http.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// A Flag takes the address of something that is served.
type Flag struct {
	// Name is the flag's, such as --metrics-address, Example an address for it.
	Name, Example string
	// What is served, in a word; Why says why not to others.
	What, Why string
}

// IsDisabled reports whether an address stands for nothing served: it is empty or 0.
func IsDisabled(address string) bool { return address == "" || address == "0" }

// CheckAddress says what is wrong with an address. It must be a loopback address with a port, or
// stand for nothing.
func (f Flag) CheckAddress(address string) error {
	if IsDisabled(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q is no address: give a loopback address with a port, such as %s, or 0 for no %s", f.Name, address, f.Example, f.What)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s %q could be reached from elsewhere, %s: give a loopback address, such as %s", f.Name, address, f.Why, f.Example)
	}
	return nil
}

// Listen listens at an address. Port 0 is that of last, a URL, since people keep it, or
// else, when there was no last or another program has its port, any that is free.
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

// previousAddress is the address of last time; "" when the port is not left open, or nobody knows.
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
