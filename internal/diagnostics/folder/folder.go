// Package folder stores bundles of diagnostics in a folder.
//
// A bundle appears under its name when it is complete, and never again changes. The process may be killed at any
// time: what it leaves is a temporary file that a later Prune deletes.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hotspare.io/hotspare/internal/diagnostics"
	"hotspare.io/hotspare/internal/diagnostics/retention"
)

// temporary is the beginning of the names of files that are not complete.
const temporary = ".writing-"

// temporaryLimit is the age from which a temporary file belongs to no process that still writes it.
const temporaryLimit = time.Hour

// Folder stores bundles in a folder with limits.
type Folder struct {
	Dir    string
	Limits retention.Limits
}

// Has reports whether a bundle is stored.
func (f Folder) Has(_ context.Context, name string) (bool, error) {
	_, err := os.Lstat(filepath.Join(f.Dir, filepath.Base(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for a bundle: %w", err)
	}
	return true, nil
}

// Write stores a bundle, and creates the folder if it does not exist.
func (f Folder) Write(_ context.Context, name string, b *diagnostics.Bundle) (err error) {
	if !retention.IsBundleName(name) {
		return fmt.Errorf("%q is no name of a bundle", name)
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return fmt.Errorf("creating the folder of diagnostics: %w", err)
	}
	file, err := os.CreateTemp(f.Dir, temporary+"*")
	if err != nil {
		return fmt.Errorf("creating a bundle: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = b.WriteTo(file)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing a bundle: %w", err)
	}
	if err := os.Rename(file.Name(), filepath.Join(f.Dir, name)); err != nil {
		return fmt.Errorf("storing a bundle: %w", err)
	}
	return nil
}

// List returns the stored bundles. A folder that does not exist has none.
func (f Folder) List() ([]retention.Bundle, error) {
	entries, err := os.ReadDir(f.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing diagnostics: %w", err)
	}
	var out []retention.Bundle
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !retention.IsBundleName(e.Name()) {
			continue // it was deleted meanwhile, or is not one of ours
		}
		out = append(out, retention.NewBundle(e.Name(), info.ModTime(), info.Size()))
	}
	return out, nil
}

// Prune deletes the bundles that exceed the limits, and what a killed process has left. It deletes no other file.
func (f Folder) Prune(_ context.Context, now time.Time) error {
	bundles, err := f.List()
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range retention.Decide(retention.Snapshot{Now: now, Bundles: bundles, Limits: f.Limits}).Delete {
		errs = append(errs, removeIfThere(filepath.Join(f.Dir, b.Name)))
	}
	left, err := filepath.Glob(filepath.Join(f.Dir, temporary+"*"))
	errs = append(errs, err)
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && now.Sub(info.ModTime()) > temporaryLimit {
			errs = append(errs, removeIfThere(path))
		}
	}
	return errors.Join(errs...)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("deleting a bundle: %w", err)
	}
	return nil
}
