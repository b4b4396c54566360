package recipe

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// findMarked returns the IDs of the running processes with the marker. Without /proc it finds none.
func findMarked(marker string) []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close() //nolint:errcheck // it was opened for reading only
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && isMarked(pid, marker) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isMarked reports whether the process runs with the marker. The environment of a process that has
// ended, or that belongs to another user, cannot be read.
func isMarked(pid int, marker string) bool {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	entry := []byte(markerVariable + "=" + marker)
	for variable := range bytes.SplitSeq(raw, []byte{0}) {
		if bytes.Equal(variable, entry) {
			return true
		}
	}
	return false
}

// killIfMarked sends SIGKILL to a process. It opens a handle of the process before it reads the
// marker again, so that it never kills another process that has received the same ID.
func killIfMarked(pid int, marker string) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return // it has ended
	}
	if isMarked(pid, marker) {
		_ = p.Kill() // it may have ended
	}
	_ = p.Release() // it was opened by its ID only
}
