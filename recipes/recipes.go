// Package recipes contains the recipes that hotspare ships: one folder for each cluster tool.
// Package internal/recipe defines what a recipe is.
package recipes

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hotspare.io/hotspare/internal/recipe"
)

//go:embed */*
var shipped embed.FS

// markerFile marks a folder that WriteTo wrote. WriteTo replaces no folder without it.
const markerFile = ".shipped-with-hotspare"

// Names returns the names of the shipped recipes, sorted.
func Names() []string {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic(err) // embed.FS always has its root
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// WriteTo writes each shipped recipe into a folder of its name below dir, and creates dir if needed.
// It replaces a folder that an earlier WriteTo wrote, as a whole and only if its content differs.
// Everything else in dir stays, a folder with the name of a shipped recipe included: a recipe that
// the user wrote takes precedence.
func WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // programs that others may run
		return fmt.Errorf("creating the recipe folder: %w", err)
	}
	var errs []error
	for _, name := range Names() {
		if err := writeRecipe(dir, name); err != nil {
			errs = append(errs, fmt.Errorf("writing recipe %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func writeRecipe(dir, name string) error {
	target := filepath.Join(dir, name)
	files, err := readRecipe(name)
	if err != nil {
		return err
	}
	exists := true
	switch _, err := os.Lstat(target); {
	case errors.Is(err, fs.ErrNotExist):
		exists = false
	case err != nil:
		return err
	case !isShipped(target) || hasFiles(target, files):
		return nil
	}
	temporary, err := os.MkdirTemp(dir, "."+name+"-")
	if err != nil {
		return err
	}
	err = replaceFolder(target, temporary, files, exists)
	return errors.Join(err, os.RemoveAll(temporary))
}

// replaceFolder writes the files into a folder below temporary and then renames that folder to
// target. The previous target, if it exists, ends up below temporary.
func replaceFolder(target, temporary string, files map[string][]byte, exists bool) error {
	next, previous := filepath.Join(temporary, "next"), filepath.Join(temporary, "previous")
	if err := os.Mkdir(next, 0o755); err != nil { //nolint:gosec // programs that others may run
		return err
	}
	for file, content := range files {
		path := filepath.Join(next, file)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, recipe.FileMode(content)); err != nil { // independent of the umask
			return err
		}
	}
	if err := os.Chmod(next, 0o755); err != nil { //nolint:gosec // programs that others may run
		return err
	}
	if exists {
		if err := os.Rename(target, previous); err != nil {
			return err
		}
	}
	return os.Rename(next, target)
}

// readRecipe returns the files of a shipped recipe by name, the marker included.
func readRecipe(name string) (map[string][]byte, error) {
	entries, err := shipped.ReadDir(name)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{markerFile: nil}
	for _, e := range entries {
		if files[e.Name()], err = shipped.ReadFile(name + "/" + e.Name()); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func isShipped(folder string) bool {
	_, err := os.Lstat(filepath.Join(folder, markerFile))
	return err == nil
}

// hasFiles reports whether folder contains exactly these files, with their modes.
func hasFiles(folder string, files map[string][]byte) bool {
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != len(files) {
		return false
	}
	for file, want := range files {
		path := filepath.Join(folder, file)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != recipe.FileMode(want) {
			return false
		}
		if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, want) {
			return false
		}
	}
	return true
}
