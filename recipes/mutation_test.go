package recipes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutation is a fault in a program of a recipe: the first Old becomes New.
type mutation struct{ Recipe, Program, Old, New string }

// mutationVariable is the environment variable with the mutation under which this test binary runs.
const mutationVariable = "RECIPES_MUTATION"

// mutateProgram applies the mutation of this process to the recipe in dir.
func mutateProgram(t *testing.T, dir string) {
	t.Helper()
	raw := os.Getenv(mutationVariable)
	if raw == "" {
		return
	}
	var m mutation
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		t.Fatal(err)
	}
	if m.Recipe != filepath.Base(dir) {
		return
	}
	path := filepath.Join(dir, m.Program)
	content, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(content), m.Old) {
		t.Fatalf("mutation of %s: %q is not in it: %v", path, m.Old, err)
	}
	changed := strings.Replace(string(content), m.Old, m.New, 1)
	if err := os.WriteFile(path, []byte(changed), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

// mutations are faults that the tests of the recipes must find.
var mutations = []mutation{}

// TestFaultsInTheRecipesAreFound runs the tests of a recipe with one fault in it at a time. They must fail,
// and not because the fault could not be applied.
func TestFaultsInTheRecipesAreFound(t *testing.T) {
	if !*exhaustive || os.Getenv(mutationVariable) != "" {
		t.Skip("takes minutes: run make test-recipes")
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		t.Run(m.Recipe+" "+m.Program+" "+m.Old, func(t *testing.T) {
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			for _, tests := range []string{"TestShippedRecipes/^" + m.Recipe + "$", "TestEachStepMayBeKilled/^" + m.Recipe + "$", "TestImagesAndLogs/^" + m.Recipe + "$|TestCreateSaysWhoseFaultItIs/^" + m.Recipe + ",|TestWrong/^" + m.Recipe + "$"} {
				cmd := exec.CommandContext(t.Context(), binary, "-test.run", tests, "-recipes.exhaustive", "-test.failfast")
				cmd.Env = append(os.Environ(), mutationVariable+"="+string(raw))
				out, err := cmd.CombinedOutput()
				if strings.Contains(string(out), "is not in it") {
					t.Fatalf("%s", out)
				}
				if err != nil {
					t.Logf("found by %s", tests)
					return
				}
			}
			t.Errorf("%s of %s, with %q instead of %q, passes all tests", m.Program, m.Recipe, m.New, m.Old)
		})
	}
}
