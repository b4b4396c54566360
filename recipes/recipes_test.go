package recipes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"hotspare.io/hotspare/internal/recipe"
)

func TestWrittenRecipesCanBeLoaded(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	for _, e := range entries {
		written = append(written, e.Name())
		if _, err := recipe.Load(filepath.Join(dir, e.Name())); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(written, Names()) || len(written) == 0 {
		t.Errorf("wrote %v, and the names are %v", written, Names())
	}
}

func TestAnOlderVersionIsReplacedAsAWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	name := Names()[0]
	before := stat(t, filepath.Join(dir, name))
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, stat(t, filepath.Join(dir, name))) {
		t.Error("a recipe of the same version was replaced")
	}
	for file, content := range map[string]string{"create": "old", "removed-verb": "old"} {
		if err := os.WriteFile(filepath.Join(dir, name, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, name, "removed-verb")); !os.IsNotExist(err) {
		t.Errorf("a program that the recipe does not have any more: %v", err)
	}
	if mode := stat(t, filepath.Join(dir, name, "create")).Mode(); mode != 0o755 {
		t.Errorf("create has mode %s", mode)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(Names()) {
		t.Errorf("%v: %v", entries, err)
	}
}

func TestRecipesOfTheUserStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{Names()[0], "own"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "create"), []byte("own"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Names()[0], "own"} {
		if content, err := os.ReadFile(filepath.Join(dir, name, "create")); string(content) != "own" {
			t.Errorf("%s/create has %q, %v", name, content, err)
		}
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
