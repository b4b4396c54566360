package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page describes the packages, in its first block below this heading, and the controllers,
// in a table.
var page = filepath.Join("..", "..", "docs", "architecture.md")

func TestThePageOfTheArchitectureHasEveryPackage(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, below, _ := strings.Cut(string(raw), "\n## Packages\n")
	_, block, _ := strings.Cut(below, "\n```text\n")
	block, _, _ = strings.Cut(block, "\n```\n")
	listed := map[string]bool{}
	for _, word := range strings.Fields(block) {
		if strings.HasPrefix(word, "internal/") || strings.HasPrefix(word, "cmd/") {
			for _, name := range expand(word) {
				if listed[name] {
					t.Errorf("%s lists %s twice", page, name)
				}
				listed[name] = true
			}
		}
	}
	there := packages(t)
	for _, name := range there {
		if !listed[name] {
			t.Errorf("%s does not list %s, below Packages: add a line that says what it is", page, name)
		}
		if controller, found := strings.CutPrefix(name, "internal/controller/"); found && !strings.Contains(string(raw), "\n| "+controller+" | ") {
			t.Errorf("%s does not say what controller %s keeps: add a row to the table", page, controller)
		}
	}
	for name := range listed {
		if !slices.Contains(there, name) {
			t.Errorf("%s lists %s, which does not exist", page, name)
		}
	}
	if len(there) < 80 {
		t.Errorf("only %d packages were found: this test looks in the wrong place", len(there))
	}
}

// packages are the folders with Go code of internal and cmd.
func packages(t *testing.T) []string {
	t.Helper()
	top := filepath.Join("..", "..")
	found := map[string]bool{}
	for _, root := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(top, root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			name, err := filepath.Rel(top, filepath.Dir(path))
			found[filepath.ToSlash(name)] = true
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

var braces = regexp.MustCompile(`^([^{]*)\{([^}]*)\}(.*)$`)

// expand expands braces as a shell does.
func expand(word string) []string {
	parts := braces.FindStringSubmatch(word)
	if parts == nil {
		return []string{word}
	}
	var out []string
	for one := range strings.SplitSeq(parts[2], ",") {
		out = append(out, expand(parts[1]+one+parts[3])...)
	}
	return out
}
