package recipe

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed skeleton
var skeleton embed.FS

// WriteSkeleton creates the folder dir with a working recipe to start from, and returns the names of its
// files. The name of the recipe is the base name of dir. If dir exists, WriteSkeleton returns an error
// and changes nothing.
func WriteSkeleton(dir string) ([]string, error) {
	name := filepath.Base(dir)
	if err := validateName(name); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s already exists: choose another name, or delete it", dir)
	}
	// The folder gets its name when it is complete, so that a crash leaves no incomplete recipe.
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("creating recipe %s: %w", name, err)
	}
	temporary, err := os.MkdirTemp(parent, "."+name+"-")
	if err != nil {
		return nil, fmt.Errorf("creating recipe %s: %w", name, err)
	}
	names, err := writeSkeletonFiles(temporary, name)
	if err == nil {
		err = errors.Join(os.Chmod(temporary, 0o755), os.Rename(temporary, dir)) //nolint:gosec // other users may run the programs
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating recipe %s: %w", name, err), os.RemoveAll(temporary))
	}
	return names, nil
}

func writeSkeletonFiles(dir, name string) ([]string, error) {
	entries, err := skeleton.ReadDir("skeleton")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		raw, err := skeleton.ReadFile("skeleton/" + e.Name())
		if err != nil {
			return nil, err
		}
		content := strings.ReplaceAll(string(raw), "RECIPENAME", name)
		if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte(content), FileMode(raw)); err != nil {
			return nil, err
		}
		names = append(names, e.Name())
	}
	return names, nil
}
