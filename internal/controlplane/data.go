package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// minFree is how much room must be left on the disk to start. etcd allocates
// 4 MB of log at a time and ends the process when it cannot.
const minFree = 64 << 20

// checkRoom makes dir and returns an error if its disk is full.
func checkRoom(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the data folder: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("measuring the room left for %s: %w", dir, err)
	}
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < minFree { //nolint:unconvert // of other types on darwin
		return fmt.Errorf("the disk of %s has %d MB left, %d are needed: %w", dir, free>>20, minFree>>20, syscall.ENOSPC)
	}
	return nil
}

// checkData opens and closes the database in dir, if there is one. etcd opens it in
// a goroutine, whose panic would end the process, and waits for ever for another
// process that has it open.
func checkData(dir string) error {
	path := filepath.Join(dir, "member", "snap", "db")
	if !exists(path) {
		return nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return errors.New("another process has it open")
	}
	if err != nil {
		return corrupt(err)
	}
	return db.Close()
}

func corrupt(reason any) error {
	return fmt.Errorf("it cannot be read (%v): restore a backup, or remove the folder to start with nothing", reason)
}
