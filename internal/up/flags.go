package up

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// Flags are flags of hotspare up with their values, by name, that the next start on the same data folder
// uses too. A flag without values is given with an empty one.
type Flags map[string][]string

// flagsPath returns the path of the file with the flags.
func flagsPath(dir string) string { return filepath.Join(dir, "flags.json") }

// ReadFlags returns the flags that the last successful start on the data folder has kept.
func ReadFlags(dir string) (Flags, error) {
	raw, err := os.ReadFile(flagsPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return Flags{}, nil
	}
	flags := Flags{}
	if err == nil {
		err = json.Unmarshal(raw, &flags)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the flags of the last start in %s: %w: delete the file, and give the flags again", flagsPath(dir), err)
	}
	return flags, nil
}

// keep writes the flags for the next start, unless the data folder has them already.
func (f Flags) keep(dir string) error {
	before, err := ReadFlags(dir)
	if err == nil && maps.EqualFunc(before, f, slices.Equal) {
		return nil
	}
	raw, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = pki.WriteFile(flagsPath(dir), append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keeping the flags for the next start: %w", err)
	}
	return nil
}

// Arguments returns the flags for a command line, sorted by name.
func (f Flags) Arguments() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		values := f[name]
		if len(values) == 0 {
			values = []string{""}
		}
		for _, value := range values {
			out = append(out, "--"+name+"="+value)
		}
	}
	return out
}

// String returns the flags as a user would type them.
func (f Flags) String() string {
	all := f.Arguments()
	for i, argument := range all {
		if strings.ContainsAny(argument, " \t'\"$") {
			all[i] = "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
		}
	}
	return strings.Join(all, " ")
}
