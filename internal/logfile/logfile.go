// Package logfile limits the sizes of log files. A log PATH has one predecessor, PATH.1.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"k8s.io/utils/clock"
)

// previousSuffix is added to the path of a log for that of its predecessor.
const previousSuffix = ".1"

// limitInterval is how often KeepLimited looks at the logs.
const limitInterval = 5 * time.Second

// Open opens a log for appending, and creates it if it does not exist. A log of more than limit bytes becomes its
// predecessor first.
func Open(path string, limit int64) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > limit {
		if err := os.Rename(path, path+previousSuffix); err != nil {
			return nil, fmt.Errorf("rotating a log: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return f, nil
}

// Limit makes the last limit bytes of a log its predecessor and empties it, if it has more than limit bytes. It may have
// writers, which must append: what they write meanwhile may be lost. If the disk has no space for the predecessor, the log is
// emptied all the same. A log that does not exist is no error.
func Limit(path string, limit int64) error {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() <= limit {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("limiting a log: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing is written by it
	if info, err := f.Stat(); err != nil || info.Size() <= limit {
		return err // it is the successor of the one that was too large
	}
	if err := errors.Join(copyEnd(f, path+previousSuffix, limit), f.Truncate(0)); err != nil {
		return fmt.Errorf("limiting log %s: %w", path, err)
	}
	return nil
}

// copyEnd writes the last limit bytes of a log to its predecessor.
func copyEnd(f *os.File, previous string, limit int64) (err error) {
	if _, err := f.Seek(-limit, io.SeekEnd); err != nil {
		return err
	}
	to, err := os.OpenFile(previous, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = io.CopyN(to, f, limit)
	return err
}

// KeepLimited calls Limit every five seconds for the logs that list returns, until ctx ends. It calls report with errors.
func KeepLimited(ctx context.Context, c clock.Clock, limit int64, list func() []string, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.After(limitInterval):
		}
		for _, path := range list() {
			if err := Limit(path, limit); err != nil {
				report(err)
			}
		}
	}
}
