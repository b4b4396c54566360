//go:build browser

package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	// timeout bounds every wait. The machine may be busy with builds.
	timeout = 90 * time.Second
	// pollInterval is the interval of polling.
	pollInterval = 50 * time.Millisecond
)

var (
	// binary is the program under test.
	binary string
	// shots is the folder for screenshots.
	shots string
	// browser is the Chromium that all tests share; each page has its own cookies.
	browser *chromium
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run starts what all tests share, runs the tests and cleans up.
func run(m *testing.M) (code int, err error) {
	if err := findBinary(); err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "hotspare-browser-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if browser, err = startChromium(context.Background(), filepath.Join(dir, "profile")); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, browser.stop()) }()
	demoHub.dir = filepath.Join(dir, "data")
	defer func() { err = errors.Join(err, demoHub.end()) }()
	return m.Run(), nil
}

// findBinary finds the binary, Chromium, and a folder for screenshots.
func findBinary() error {
	path := os.Getenv("HOTSPARE_BINARY")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "hotspare")
	}
	var err error
	if binary, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("finding the binary: %w", err)
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("these tests drive the built binary: run 'make build' first, or set HOTSPARE_BINARY (%w)", err)
	}
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("these tests need Chromium: 'make test-browser' installs it (%w)", err)
	}
	if shots = os.Getenv("HOTSPARE_SHOTS"); shots == "" {
		shots = filepath.Join(os.TempDir(), "hotspare-shots")
	}
	if shots, err = filepath.Abs(shots); err != nil {
		return fmt.Errorf("finding a place for screenshots: %w", err)
	}
	return os.MkdirAll(shots, 0o755)
}
