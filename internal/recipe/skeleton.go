package recipe

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

//go:embed skeleton
var skeleton embed.FS

// WriteSkeleton writes a recipe that works, as a start for another one, into a new folder. The
// folder's last part is the recipe's name. It returns the names of the files. Nothing is written if
// the folder exists.
func WriteSkeleton(dir string) ([]string, error) {
	name := filepath.Base(dir)
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return nil, fmt.Errorf("recipe name %q: %s", name, strings.Join(problems, ", "))
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s exists: choose another name, or remove it first", dir)
	}
	// A folder under another name until it is complete: half a recipe would look like a broken one.
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
		err = errors.Join(os.Chmod(temporary, 0o755), os.Rename(temporary, dir)) //nolint:gosec // programs that others may run
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
		mode := os.FileMode(0o755)
		if e.Name() == FileName {
			mode = 0o644
		}
		content := strings.ReplaceAll(string(raw), "RECIPENAME", name)
		if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte(content), mode); err != nil {
			return nil, err
		}
		names = append(names, e.Name())
	}
	return names, nil
}
