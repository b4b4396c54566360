// Package runrecord records in a data folder how the last hotspare up on it has ended, for the next
// command of a user: the output of a process in the background is lost.
//
//	DIR/run.json    the record as JSON, padded with spaces to a constant size
//
// The file gets its size when hotspare starts, and the record of the end replaces the content in place:
// this needs no free space, so that a process which ends because the disk is full can record it.
package runrecord

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"hotspare.io/hotspare/internal/fault"
)

const (
	// size is the size of the file.
	size = 4096
	// maxReason is the maximum length of a reason, of which JSON can make six bytes each.
	maxReason = 600
)

// Record is what is known about the last run.
type Record struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	// Ended is when the process recorded its end; zero if it has not.
	Ended time.Time `json:"ended,omitzero"`
	// Reason is the error with which it has ended, with its remedy; empty if it was stopped.
	Reason string `json:"reason,omitempty"`
}

// Path returns the path of the file in a data folder.
func Path(dir string) string { return filepath.Join(dir, "run.json") }

// Begin records that this process runs on the data folder.
func Begin(dir string, now time.Time) (Record, error) {
	r := Record{PID: os.Getpid(), Started: now}
	f, err := os.OpenFile(Path(dir), os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(r.write(f), f.Close())
	}
	if err != nil {
		return r, fmt.Errorf("recording the start: %w", err)
	}
	return r, nil
}

// End records that the process of a record ends, with an error or, if failure is nil, because it was stopped.
func (r Record) End(dir string, failure error, now time.Time) error {
	r.Ended = now
	if failure != nil {
		r.Reason = shorten(fault.OneLine(failure))
	}
	f, err := os.OpenFile(Path(dir), os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(r.write(f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("recording the end: %w", err)
	}
	return nil
}

// shorten cuts a text to maxReason bytes.
func shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// write replaces the content of the file in place.
func (r Record) write(f *os.File) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	padded := bytes.Repeat([]byte{' '}, size)
	copy(padded, raw)
	padded[size-1] = '\n'
	if _, err := f.WriteAt(padded, 0); err != nil {
		return err
	}
	return f.Sync()
}

// Read returns the record of the last run on a data folder; false if there is none, or it cannot be read.
func Read(dir string) (Record, bool) {
	raw, err := os.ReadFile(Path(dir))
	var r Record
	if err != nil || json.Unmarshal(raw, &r) != nil || r.PID == 0 {
		return Record{}, false
	}
	return r, true
}

// IsFailed reports whether the process has ended, and nobody stopped it.
func (r Record) IsFailed() bool { return r.Reason != "" || r.Ended.IsZero() && !isRunning(r.PID) }

// Describe returns how the run has ended, as a sentence without a full stop.
func (r Record) Describe(now time.Time) string {
	ago := duration.HumanDuration(now.Sub(r.Ended)) + " ago"
	switch {
	case r.Reason != "":
		return fmt.Sprintf("hotspare up (pid %d) ended %s: %s", r.PID, ago, r.Reason)
	case !r.Ended.IsZero():
		return fmt.Sprintf("hotspare up (pid %d) was stopped %s", r.PID, ago)
	case isRunning(r.PID):
		return fmt.Sprintf("hotspare up (pid %d) runs: it may be starting or stopping", r.PID)
	}
	return fmt.Sprintf("hotspare up (pid %d) was killed, or this computer was switched off. All stored data is kept", r.PID)
}

// isRunning reports whether there is a process. It may be another one that has got the same ID since.
func isRunning(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, fs.ErrPermission)
}
