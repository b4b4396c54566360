package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// checkNoMounts returns an error if something is mounted in a folder of machines: to remove the folder would delete what
// is mounted there. Machines mount in mount namespaces of their own, so that only somebody else has mounted what this
// program sees.
func (s *Store) checkNoMounts(dir string) error {
	path, err := filepath.EvalSymlinks(dir) // as the kernel lists it
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mounts, err := s.listMounts(mountinfo.PrefixFilter(path))
	if err != nil {
		return fmt.Errorf("looking for mounts in %s: %w", dir, err)
	}
	if len(mounts) == 0 {
		return nil
	}
	points := make([]string, len(mounts))
	for i, m := range mounts {
		points[i] = m.Mountpoint
	}
	return fmt.Errorf("another program has mounted %s: unmount it (umount), and hotspare removes the folder", strings.Join(points, ", "))
}
