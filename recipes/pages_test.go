package recipes

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/recipe"
)

// headings are the sections that each page has, in this order. Sections in between are the recipe's own.
var headings = []string{"What it needs", "Parameters", "A pool to copy", "Hibernation", "How it is tested", "Limits"}

func TestThePagesHaveOneShape(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^## (.*)$`)
	for _, name := range namesWithStandins() {
		raw, err := os.ReadFile(filepath.Join(docsFolder, name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, match := range heading.FindAllStringSubmatch(string(raw), -1) {
			if slices.Contains(headings, match[1]) {
				found = append(found, match[1])
			}
		}
		if !slices.Equal(found, headings) {
			t.Errorf("%s.md has the sections %q: it must have %q", name, found, headings)
		}
	}
}

// TestTerraformHibernatesWithTheProgramsOfItsPage adds the programs of the page to the recipe terraform, as
// a user does whose module can stop its machines.
func TestTerraformHibernatesWithTheProgramsOfItsPage(t *testing.T) {
	r, state := loadShipped(t, "terraform")
	page, err := os.ReadFile(filepath.Join(docsFolder, "terraform.md"))
	if err != nil {
		t.Fatal(err)
	}
	program := regexp.MustCompile("(?s)`(stop|start)`:\n\n```text\n(.*?)```")
	for _, match := range program.FindAllStringSubmatch(string(page), -1) {
		if err := os.WriteFile(filepath.Join(r.Dir, match[1]), []byte(match[2]), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	if r, err = recipe.Load(r.Dir); err != nil || !r.CanHibernate() {
		t.Fatalf("the page has no programs stop and start: %v", err)
	}
	k := &killer{t: t, recipe: r, state: state}
	k.prepare()
	k.call(recipe.Create)
	for range 2 {
		k.reach(recipe.Stop, cloud.Stopped)
		if left := strings.Join(listLeftovers(t, state), " "); strings.Contains(left, "machine") || !strings.Contains(left, "network") {
			t.Errorf("a stopped cluster has %s", left)
		}
		k.reach(recipe.Start, cloud.Running)
	}
	k.call(recipe.Destroy)
	k.checkNothingLeft()
}
