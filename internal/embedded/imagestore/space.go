package imagestore

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
)

const (
	// reserve is how many bytes of the disk Load leaves free.
	reserve = registryapi.PullReserve
	// checkEvery is how many bytes of an archive are uncompressed between two checks.
	checkEvery = 16 << 20
)

// noSpaceError reports that images do not fit on the disk. It is syscall.ENOSPC.
type noSpaceError struct{ need, free int64 }

func (e *noSpaceError) Error() string {
	if e.need == 0 { // that of an archive which is not uncompressed yet
		return fmt.Sprintf("the disk has only %s free, of which %s are kept for the clusters", formatBytes(e.free), formatBytes(reserve))
	}
	return fmt.Sprintf("the images need %s, and the disk has only %s free, of which %s are kept for the clusters",
		formatBytes(e.need), formatBytes(e.free), formatBytes(reserve))
}

func (e *noSpaceError) Unwrap() error { return syscall.ENOSPC }

// formatBytes formats a number of bytes: 4.3 GB.
func formatBytes(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(max(n, 0))/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// confirmSpace returns an error unless the disk of the store has room for need bytes more.
func (s *Store) confirmSpace(need int64) error {
	free, err := s.free(s.dir)
	if err != nil {
		return err
	}
	if need < 0 || free-reserve < need { // the sum of sizes that an archive claims may overflow
		return s.explainWriteError(&noSpaceError{need: max(need, 0), free: free})
	}
	return nil
}

// sumMissing returns the size of the blobs that the store does not have.
func (s *Store) sumMissing(named []namedContent) int64 {
	total := int64(0)
	counted := map[string]bool{}
	for _, n := range named {
		for _, b := range n.content.blobs {
			path := s.path(blobName(b.digest))
			if _, err := os.Stat(path); err == nil || counted[path] {
				continue
			}
			counted[path] = true
			if total += b.size; b.size < 0 || total < 0 {
				return -1
			}
		}
	}
	return total
}

// copyWhileSpace copies an archive of unknown size, and ends with an error when the disk has no room for more.
func (s *Store) copyWhileSpace(ctx context.Context, to io.Writer, from io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.confirmSpace(0); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, checkEvery); err != nil {
			return err
		}
	}
}
