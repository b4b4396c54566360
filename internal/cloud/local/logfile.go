package local

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// maxLogSize is the maximum size in bytes of a machine's log when the machine starts. A larger log
// is renamed to machine.log.1, so that at most two files exist, and they contain everything printed
// since the second to last start.
const maxLogSize = 8 << 20

// openMachineLog opens a machine's log for appending. It first rotates a log that is larger than
// maxLogSize.
func openMachineLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("rotating a log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return f, nil
}

// maxLineLength is the number of bytes at the end of a log that are searched for its last line.
const maxLineLength = 1 << 10

// readLastLogLine returns the last line of the log at path that was written after the log had
// reached size from, or "" if there is none or it cannot be read.
func readLastLogLine(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was opened for reading only
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, max(from, end-maxLineLength), maxLineLength))
	if err != nil {
		return ""
	}
	raw = bytes.TrimSpace(raw)
	return string(raw[bytes.LastIndexByte(raw, '\n')+1:])
}
