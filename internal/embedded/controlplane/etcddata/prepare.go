// Package etcddata checks and prepares the data of etcd before etcd opens it.
//
// When etcd and its database bbolt encounter data that they cannot read, they panic in their own
// goroutines, which ends the process without an error message for its user; and etcd waits forever
// if its log is shorter than its database says, or if its first start was cut short. Prepare reads
// all data in the goroutine of its caller.
package etcddata

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.uber.org/zap"
)

// lockWait is how long to wait for another process that has the database open.
const lockWait = time.Second

// ErrOpen reports that another process has the database open.
var ErrOpen = errors.New("another process has it open")

// A CorruptError reports that the data cannot be used: a backup is needed.
type CorruptError struct {
	// Path is the damaged file or folder.
	Path   string
	Reason error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("%s: %v", e.Path, e.Reason) }
func (e *CorruptError) Unwrap() error { return e.Reason }

// Prepare checks the data in dir, and removes a log that etcd could not continue: that of an etcd
// that was killed during its first start, before it had committed the entry that makes it a member
// of its cluster. Such an etcd would wait forever for a leader, and it has accepted no writes.
//
// Prepare returns an error if etcd could not start on the data: a *CorruptError if the data is the
// reason. A folder without data is valid.
func Prepare(dir string) error {
	begun, err := checkData(dir)
	if err != nil || begun {
		return err
	}
	return os.RemoveAll(logFolder(dir))
}

func logFolder(dir string) string { return filepath.Join(dir, "member", "wal") }

// checkData checks the data in dir, and reports whether etcd has committed an entry.
func checkData(dir string) (begun bool, err error) {
	database := filepath.Join(dir, "member", "snap", "db")
	logs := logFolder(dir)
	applied, err := checkDatabase(database)
	if err != nil {
		return false, err
	}
	if !wal.Exist(logs) {
		if applied > 0 {
			return false, &CorruptError{logs, errors.New("the database exists, but its log is missing")}
		}
		return false, nil // etcd was stopped before it wrote any data
	}
	if !fileExists(database) {
		return false, &CorruptError{database, errors.New("the log exists, but its database is missing")}
	}
	last, committed, err := readLastIndexes(dir, logs)
	if err != nil {
		return false, err
	}
	if last < applied {
		return false, &CorruptError{logs, fmt.Errorf("the log ends at entry %d, but the database has entry %d: the log was truncated", last, applied)}
	}
	return committed > 0, nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkDatabase reads the whole database at path. It returns the index of the last log entry that
// was applied to it; 0 if there is none.
func checkDatabase(path string) (uint64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if info.Size() == 0 {
		return 0, &CorruptError{path, errors.New("it is empty")}
	}
	var applied uint64
	err = readRecovering(path, func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
		if errors.Is(err, bbolterrors.ErrTimeout) {
			return ErrOpen
		}
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // it was opened for reading only
		return db.View(func(tx *bbolt.Tx) error {
			if tx.Size() > info.Size() {
				return fmt.Errorf("%d bytes are missing at its end", tx.Size()-info.Size())
			}
			if err := readAllPages(tx); err != nil {
				return err
			}
			applied = readAppliedIndex(tx)
			return checkPageUse(tx)
		})
	})
	return applied, err
}

// readRecovering runs read and returns its error or its panic as a CorruptError, unless it is an
// operating system error: a file that cannot be opened may be intact.
func readRecovering(path string, read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // for a truncated file that is mapped into memory
	defer func() {
		if p := recover(); p != nil {
			err = &CorruptError{path, fmt.Errorf("%v", p)}
		}
	}()
	err = read()
	switch {
	case err == nil, errors.Is(err, ErrOpen):
		return err
	case isSystemError(err):
		return fmt.Errorf("opening %s: %w", path, err)
	default:
		return &CorruptError{path, err}
	}
}

// isSystemError reports whether err is caused by the operating system and not by the data.
func isSystemError(err error) bool {
	for _, code := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC, syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EIO,
	} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// readAllPages reads every page that contains data: bbolt panics at a page that it cannot read.
func readAllPages(tx *bbolt.Tx) error {
	return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return readBucketPages(b) })
}

func readBucketPages(b *bbolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return readBucketPages(b.Bucket(k))
		}
		if len(v) > 0 { // a value may span several pages
			_ = v[0] + v[len(v)-1]
		}
		return nil
	})
}

// checkPageUse checks that no page is both free and in use: bbolt panics when it frees such a page.
// It runs after readAllPages, because tx.Check works in a goroutine, where a panic ends the
// process.
func checkPageUse(tx *bbolt.Tx) error {
	var first error
	for err := range tx.Check() {
		if first == nil && !strings.HasSuffix(err.Error(), "unreachable unfreed") { // lost space is harmless
			first = err
		}
	}
	return first
}

// The bucket and key in which etcd stores the index of the last entry that it applied.
var (
	metaBucket      = []byte("meta")
	consistentIndex = []byte("consistent_index")
)

func readAppliedIndex(tx *bbolt.Tx) uint64 {
	b := tx.Bucket(metaBucket)
	if b == nil {
		return 0
	}
	raw := b.Get(consistentIndex)
	if len(raw) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(raw)
}

// readLastIndexes reads the log and returns the indexes of its last entry and of its last committed
// entry.
func readLastIndexes(dir, logs string) (last, committed uint64, err error) {
	err = readRecovering(logs, func() error {
		quiet := zap.NewNop()
		marks, err := wal.ValidSnapshotEntries(quiet, logs)
		if err != nil {
			return err
		}
		from := walpb.Snapshot{}
		newest, err := snap.New(quiet, filepath.Join(dir, "member", "snap")).LoadNewestAvailable(marks)
		switch {
		case err == nil:
			from.Index, from.Term = newest.Metadata.Index, newest.Metadata.Term
		case !errors.Is(err, snap.ErrNoSnapshot):
			return err
		}
		w, err := wal.OpenForRead(quiet, logs, from)
		if err != nil {
			return err
		}
		defer w.Close() //nolint:errcheck // it was opened for reading only
		_, state, entries, err := w.ReadAll()
		if err != nil {
			return err
		}
		last, committed = from.Index, max(from.Index, state.Commit)
		if n := len(entries); n > 0 {
			last = entries[n-1].Index
		}
		return nil
	})
	return last, committed, err
}
