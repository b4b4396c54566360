package metrics

import (
	"errors"
	"fmt"
	"net"
	"os"

	"hotspare.io/hotspare/internal/loopback"
)

var flag = loopback.Flag{
	Name: "--metrics-address", Example: "127.0.0.1:9090", What: "metrics", Why: "and metrics are served to whoever asks",
}

// CheckAddress says what is wrong with an address for metrics. It must be
// a loopback address, since nobody is asked who they are; "" and "0" serve none.
func CheckAddress(address string) error { return flag.CheckAddress(address) }

// Listen listens for scrapes and writes their URL to path, for hotspare status.
// Port 0 is the one of last time, since people's scrapers name it, or else any
// that is free. It returns nil, and there is no file, when no metrics are wanted.
func Listen(path, address string) (net.Listener, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	last, err := os.ReadFile(path)
	if err != nil {
		last = nil // nobody knows where they were
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("forgetting where metrics were served: %w", err)
	}
	if loopback.IsDisabled(address) {
		return nil, nil
	}
	l, err := flag.Listen(address, string(last))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, []byte("http://"+l.Addr().String()+Path+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("writing down where metrics are served: %w", err), l.Close())
	}
	return l, nil
}
