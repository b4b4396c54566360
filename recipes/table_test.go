package recipes

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/recipe"
)

var update = flag.Bool("recipes.update", false, "write the results of the conformance suite to docs/recipes/README.md")

// The marks around the table of the results in the page. The test writes what is between them.
const (
	tableBegin = "<!-- The table is written by: make recipe-table -->\n"
	tableEnd   = "<!-- End of the table -->\n"
)

// describeSuite returns the row of a recipe: how many lines its programs have, which optional verbs it
// has, and how many checks it passed.
func describeSuite(name string, lines int, checks []recipe.Check) string {
	passed := 0
	var skipped []string
	for _, c := range checks {
		switch c.State {
		case recipe.CheckPassed:
			passed++
		case recipe.CheckSkipped:
			skipped = append(skipped, c.Name)
		}
	}
	if len(skipped) == 0 {
		skipped = []string{"none"}
	}
	return fmt.Sprintf("| [%s](%[1]s.md) | %d | %d of %d | %s |\n", name, lines, passed, len(recipe.CheckNames()), strings.Join(skipped, "; "))
}

// checkSuiteTable compares the table in the page with the results, or writes it.
func checkSuiteTable(t *testing.T, results map[string]string) {
	t.Helper()
	if os.Getenv(mutationVariable) != "" {
		return
	}
	page := filepath.Join(docsFolder, "README.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(raw), tableBegin)
	table, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the marks %q and %q", page, tableBegin, tableEnd)
	}
	var want strings.Builder
	want.WriteString("\n| recipe | lines | checks passed | checks skipped |\n|---|---|---|---|\n")
	for _, name := range namesWithStandins() {
		row, ran := results[name]
		if ran && !strings.Contains(table, row) && !*update {
			t.Errorf("%s lacks the row\n%srun make recipe-table", page, row)
		}
		want.WriteString(row)
	}
	want.WriteString("\n")
	if !*update || t.Failed() || len(results) < len(namesWithStandins()) {
		return
	}
	if err := os.WriteFile(page, []byte(before+tableBegin+want.String()+tableEnd+after), 0o644); err != nil { //nolint:gosec // a page
		t.Fatal(err)
	}
}

// TestThePageHasOneRowForEachRecipe finds rows of recipes that do not exist any more.
func TestThePageHasOneRowForEachRecipe(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(docsFolder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), tableBegin)
	table, _, _ := strings.Cut(rest, tableEnd)
	var rows []string
	for line := range strings.Lines(table) {
		if name, ok := strings.CutPrefix(line, "| ["); ok {
			name, _, _ = strings.Cut(name, "]")
			rows = append(rows, name)
		}
	}
	if want := namesWithStandins(); !slices.Equal(rows, want) {
		t.Errorf("the table has the recipes %v, and not %v: run make recipe-table", rows, want)
	}
}
