package local

import (
	"fmt"
	"syscall"
)

// MeasureResources returns the resources that this computer has available: the memory that new
// programs can use without swapping, and the free space of the file system of dir.
func MeasureResources(dir string) (Resources, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return Resources{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	memory, err := availableMemory()
	if err != nil {
		return Resources{}, err
	}
	return Resources{Memory: memory, Disk: int64(fs.Bavail) * int64(fs.Bsize)}, nil //nolint:unconvert // the types differ on darwin
}
