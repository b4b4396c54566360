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

// freezePath returns the path of a file that exists if the machine should be frozen while it is switched off, and
// not stopped. It has no meaning for a machine that is switched on.
func freezePath(dir string) string { return filepath.Join(dir, "freeze") }

// switchOn switches a machine on.
func switchOn(dir string) error { return os.WriteFile(switchPath(dir), nil, 0o600) }

// switchOff switches a machine off, to be stopped.
func switchOff(dir string) error {
	return errors.Join(removeFile(freezePath(dir)), removeFile(switchPath(dir)))
}

// switchToFrozen switches a machine off, to be frozen.
func switchToFrozen(dir string) error {
	return errors.Join(os.WriteFile(freezePath(dir), nil, 0o600), removeFile(switchPath(dir)))
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func isSwitchedOn(dir string) bool { return fileExists(switchPath(dir)) }

// isFreezeWanted reports whether the machine should be frozen.
func isFreezeWanted(dir string) bool { return !isSwitchedOn(dir) && fileExists(freezePath(dir)) }

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
