package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// switchPath returns the path of a machine's switch. The switch is a file that exists or not: it
// cannot be partially written, and changing it is atomic.
func switchPath(dir string) string { return filepath.Join(dir, "on") }

func switchOn(dir string) error { return os.WriteFile(switchPath(dir), nil, 0o600) }

func switchOff(dir string) error {
	if err := os.Remove(switchPath(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func isSwitchedOn(dir string) bool {
	_, err := os.Stat(switchPath(dir))
	return err == nil
}
