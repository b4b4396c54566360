package recipes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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

func TestWrittenFilesKeepTheirModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	modes := map[os.FileMode]int{}
	for _, name := range Names() {
		sources, err := filepath.Glob(filepath.Join(name, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, source := range sources {
			want := os.FileMode(0o644)
			if stat(t, source).Mode().Perm()&0o100 != 0 {
				want = 0o755
			}
			modes[want]++
			if got := stat(t, filepath.Join(dir, source)).Mode(); got != want {
				t.Errorf("%s has mode %s, want %s", source, got, want)
			}
		}
	}
	if modes[0o644] <= len(Names()) || modes[0o755] == 0 {
		t.Errorf("the modes are %v: the test compares too little", modes)
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

// docsFolder has a page for each shipped recipe.
const docsFolder = "../docs/recipes"

func TestThePagesListTheParameters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		r, err := recipe.Load(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		page := filepath.Join(docsFolder, name+".md")
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Errorf("recipe %s has no page: %v", name, err)
			continue
		}
		for _, parameter := range r.Parameters.Names() {
			if row := describeParameter(parameter, r.Parameters.Property(parameter)); !strings.Contains(string(raw), row) {
				t.Errorf("%s lacks the row\n%s", page, row)
			}
		}
	}
}

// describeParameter returns the row of a parameter in the table of its page.
func describeParameter(name string, p recipe.Property) string {
	value := "none"
	if p.Default != nil {
		value = "empty"
		if *p.Default != "" {
			value = "`" + *p.Default + "`"
		}
	}
	meaning := strings.ReplaceAll(strings.TrimSpace(p.Description), "|", `\|`)
	if len(p.Enum) > 0 {
		meaning += ": `" + strings.Join(p.Enum, "`, `") + "`"
	}
	return "| `" + name + "` | " + value + " | " + meaning + " |\n"
}
