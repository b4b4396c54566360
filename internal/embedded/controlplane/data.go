package controlplane

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"hotspare.io/hotspare/internal/embedded/controlplane/etcddata"
)

// minFreeSpace is the minimum free disk space, in bytes, to start. etcd allocates its log in steps
// of 4 MB and ends the process when it cannot.
const minFreeSpace = 64 << 20

// checkDiskSpace creates dir and returns an error if its disk is full.
func checkDiskSpace(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the data folder: %w", err)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return fmt.Errorf("measuring the free disk space for %s: %w", dir, err)
	}
	if free := uint64(disk.Bavail) * uint64(disk.Bsize); free < minFreeSpace { //nolint:unconvert // the types differ on darwin
		return fmt.Errorf("the disk of %s has %d MB free, and %d MB are needed: %w", dir, free>>20, minFreeSpace>>20, syscall.ENOSPC)
	}
	return nil
}

// prepareEtcdData returns an error if etcd could not start on the data in dir.
func prepareEtcdData(dir string) error {
	err := etcddata.Prepare(dir)
	var damaged *etcddata.CorruptError
	if errors.As(err, &damaged) {
		return corruptDataError(err)
	}
	return err
}

func corruptDataError(reason any) error {
	return fmt.Errorf("it cannot be read (%v): restore a backup, or remove the folder to start with nothing", reason)
}
