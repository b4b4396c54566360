package local

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/embedded/machine"
)

// maxLogSize is the maximum size in bytes of a machine's log and of its predecessor.
const maxLogSize = 8 << 20

// listLogs lists the logs of all machines. It leaves out what cannot be read.
func (s *Store) listLogs() []string {
	names, _ := fs.Glob(os.DirFS(s.dir), "*/*/"+filepath.Base(machine.LogPath(""))) // the pattern is valid
	for i, name := range names {
		names[i] = filepath.Join(s.dir, filepath.FromSlash(name))
	}
	return names
}

// maxLineLength is the number of bytes at the end of a log that are searched for its last line.
const maxLineLength = 1 << 10

// readLastLogLine returns the last line of the log at path that was written after the log had
// reached size from, or "" if there is none or it cannot be read. A log that is smaller was emptied since.
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
	if from > end {
		from = 0
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, max(from, end-maxLineLength), maxLineLength))
	if err != nil {
		return ""
	}
	raw = bytes.TrimSpace(raw)
	return string(raw[bytes.LastIndexByte(raw, '\n')+1:])
}
