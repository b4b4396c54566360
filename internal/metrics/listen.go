package metrics

import (
	"errors"
	"fmt"
	"net"
	"os"

	"hotspare.io/hotspare/internal/listen"
)

var flag = listen.Flag{
	Name: "--metrics-address", Example: "127.0.0.1:9090", What: "metrics", Why: "and metrics are served without authentication",
}

// CheckAddress returns an error if address is not valid for metrics. It must be a loopback address,
// because clients are not authenticated; "" and "0" disable metrics.
func CheckAddress(address string) error { return flag.CheckAddress(address) }

// Listen listens for scrapes and writes the URL to path, for hotspare status. Port 0 selects the
// previous port, because users have configured it in their scrapers, or else any free port. If
// metrics are disabled, it returns nil and removes the file.
func Listen(path, address string) (net.Listener, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	last, err := os.ReadFile(path)
	if err != nil {
		last = nil // the previous address is unknown
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the file with the previous metrics URL: %w", err)
	}
	if listen.IsDisabled(address) {
		return nil, nil
	}
	l, err := flag.Listen(address, string(last))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, []byte("http://"+l.Addr().String()+Path+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the metrics URL: %w", err), l.Close())
	}
	return l, nil
}
