package recipe

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// WithTimeouts returns a copy of the recipe with other time limits for some verbs. Zero keeps the
// limit of the recipe.
func (r *Recipe) WithTimeouts(limits map[Verb]time.Duration) *Recipe {
	out := *r
	out.timeouts = maps.Clone(r.timeouts)
	for v, limit := range limits {
		if limit > 0 {
			out.timeouts[v] = limit
		}
	}
	return &out
}

// maxHashed is the size, in bytes, up to which ContentVersion reads a file. Larger files count with
// their size and modification time.
const maxHashed = 4 << 20

// ContentVersion returns the version of the recipe and a hash of the files in its folder, such as
// 1-0123456789abcdef. It changes when the author changes the version, a program or a permission.
func (r *Recipe) ContentVersion() (string, error) {
	if r.Definition != nil {
		return r.Definition.ContentVersion, nil
	}
	sum := sha256.New()
	err := filepath.WalkDir(r.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(r.Dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%q %s\n", name, info.Mode())
		switch {
		case !info.Mode().IsRegular():
			return nil
		case info.Size() > maxHashed:
			fmt.Fprintf(sum, "%d %d\n", info.Size(), info.ModTime().UnixNano())
			return nil
		}
		return hashFile(sum, path)
	})
	if err != nil {
		return "", fmt.Errorf("hashing recipe %s: %w", r.Name, err)
	}
	hash := hex.EncodeToString(sum.Sum(nil)[:8])
	if r.Version == "" {
		return hash, nil
	}
	return r.Version + "-" + hash, nil
}

func hashFile(sum io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was opened for reading only
	n, err := io.Copy(sum, f)
	fmt.Fprintf(sum, "\n%d\n", n)
	return err
}
