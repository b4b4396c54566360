package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
	"hotspare.io/hotspare/internal/fault"
)

const (
	// MaxState is the maximum size of the files in the state folder, in bytes: on a hub, a Secret stores
	// them.
	MaxState = 1 << 20
	// maxStateFiles is the maximum number of files and folders in the state folder.
	maxStateFiles = 10000
	// lockFile is locked during a run. It contains the ID of the process that has locked it last.
	lockFile = ".lock"
	// markerFile contains the marker of the processes of the current run.
	markerFile = ".run"
	// lockTimeout is the default of Run.LockTimeout, lockPause the time between two attempts.
	lockTimeout = 2 * time.Second
	lockPause   = 20 * time.Millisecond
)

const (
	// KubeconfigFile is the file in the state folder to which create writes the cluster's kubeconfig.
	KubeconfigFile = "kubeconfig"
	// InputFile is the file in the state folder with the Input of the program that ran last.
	InputFile = "input.json"
)

// stateLock is the lock of a state folder for one run. The kernel releases it when this process ends,
// and the programs of the recipe do not inherit it.
type stateLock struct {
	dir  string
	lock *flock.Lock
}

// lockState creates and locks a state folder. It waits until timeout while another run has locked it.
// If a previous run did not end, because its process was killed, lockState kills what it left
// running: two programs of a cluster never run at the same time.
func lockState(ctx context.Context, dir string, timeout time.Duration) (*stateLock, error) {
	wait, cancel := context.WithTimeout(ctx, valueOr(timeout, lockTimeout))
	defer cancel()
	retry := time.NewTicker(lockPause)
	defer retry.Stop()
	for {
		lock, err := flock.Acquire(filepath.Join(dir, lockFile))
		if err == nil {
			s := &stateLock{dir: dir, lock: lock}
			if err := s.killPreviousRun(); err != nil {
				return nil, errors.Join(err, lock.Release())
			}
			return s, nil
		}
		var locked *flock.LockedError
		if !errors.As(err, &locked) {
			return nil, err
		}
		select {
		case <-wait.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fault.New(fault.Conflict, fmt.Errorf("another program of this cluster is running (%w): call it again after that program has ended", err))
		case <-retry.C:
		}
	}
}

// EndPreviousRun kills the programs that run with the state folder dir. Their hotspare must have ended:
// otherwise the next run of the cluster does the same.
func EndPreviousRun(dir string) error { return (&stateLock{dir: dir}).killPreviousRun() }

func (s *stateLock) killPreviousRun() error {
	raw, err := readRegularFile(filepath.Join(s.dir, markerFile), 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the marker of the previous run: %w", err)
	}
	if marker := strings.TrimSpace(string(raw)); marker != "" {
		killMarked(marker)
	}
	return nil
}

// recordMarker records the marker of the processes that are started next.
func (s *stateLock) recordMarker(marker string) error {
	return replaceFile(filepath.Join(s.dir, markerFile), []byte(marker+"\n"))
}

// release removes the marker and unlocks the folder.
func (s *stateLock) release() error {
	err := os.Remove(filepath.Join(s.dir, markerFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // the program removed it
	}
	return errors.Join(err, s.lock.Release())
}

// writeInput writes the Input to the state folder.
func writeInput(dir string, v Verb, input Input) error {
	input.APIVersion, input.Verb = APIVersion, v
	raw, err := json.MarshalIndent(input, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", InputFile, err)
	}
	return replaceFile(filepath.Join(dir, InputFile), append(raw, '\n'))
}

// replaceFile writes a file with mode 0600. It replaces whatever is at path, and does not follow a
// symbolic link.
func replaceFile(path string, content []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	if err = errors.Join(err, temporary.Close()); err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
	}
	return nil
}

// readRegularFile reads at most most bytes of a file that a program has written. It does not follow a
// symbolic link, and does not open a pipe, which would block.
func readRegularFile(path string, most int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: write a file, not a link", path)
	}
	if info.Size() > most {
		return nil, fmt.Errorf("%s has %d bytes: use at most %d", path, info.Size(), most)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was opened for reading only
	return io.ReadAll(io.LimitReader(f, most))
}

// checkStateSize returns an error if the state folder is larger than allowed. It does not follow
// symbolic links.
func checkStateSize(dir string, v Verb) error {
	var size int64
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil // a background process removed it
		}
		if err != nil {
			return err
		}
		if path == dir {
			if !e.IsDir() {
				return fmt.Errorf("%s replaced its state folder: change only the content of $HOTSPARE_DIR", v)
			}
			return nil
		}
		if files++; e.Type().IsRegular() {
			info, err := e.Info()
			if err == nil {
				size += info.Size()
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if files > maxStateFiles {
			return fmt.Errorf("%s left more than %d files in its state folder: keep large data elsewhere", v, maxStateFiles)
		}
		if size > MaxState {
			return fmt.Errorf("%s left more than %d bytes in its state folder: keep large data elsewhere", v, MaxState)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s deleted its state folder: change only the content of $HOTSPARE_DIR", v)
	}
	return err
}
