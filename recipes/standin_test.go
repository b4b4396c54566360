package recipes

import (
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/recipe"
)

// A stand-in takes the place of a tool that cannot run in a test: this test binary runs it when it is
// started under the tool's name. It checks its arguments, keeps its state on disk and fails, as the
// tool's documentation says. File standin_<tool>_test.go has the stand-in of one tool:
//
//	func init() {
//		registerTool("kind", runKind)
//		registerParameters("kind", map[string]string{"workers": "2"}) // only if the suite needs values
//	}
//
// The stand-ins of one recipe share a state folder. Everything in it counts as leaked when the suite
// has ended, and so does everything in $HOME.

// Environment variables of the stand-ins. Names with HOTSPARE_ or RECIPE_ do not reach the programs.
const (
	stateVariable = "STANDIN_STATE"
	// killVariable is the number of the step in which a stand-in kills its process group.
	killVariable = "STANDIN_KILL_AT"
	// stepsVariable is the file that counts the steps.
	stepsVariable = "STANDIN_STEPS"
)

// stepTime is how long a step of a stand-in takes.
const stepTime = 5 * time.Millisecond

// toolCall is one call of a stand-in.
type toolCall struct {
	// Args are the arguments without the tool's name.
	Args []string
	// State is the folder with everything that the tools have created.
	State          string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
}

var (
	tools      = map[string]func(toolCall) int{}
	parameters = map[string]map[string]string{}
	// scripts are stand-ins as shell programs: they are called so often that this test binary would start too
	// slowly. registerTool must register their names too.
	scripts = map[string]string{}
	// servers and runningParts are optional: what the stand-ins of a recipe know about a cluster. The
	// first returns the address of its API, the second what of it runs.
	servers      = map[string]func(t toolCall, infraID string) string{}
	runningParts = map[string]func(t toolCall, infraID string) []string{}
)

// registerTool registers the stand-in of a tool; run returns its exit code.
func registerTool(name string, run func(t toolCall) int) { tools[name] = run }

// registerParameters registers the parameters with which the suite runs on a recipe.
func registerParameters(recipe string, with map[string]string) { parameters[recipe] = with }

func TestMain(m *testing.M) {
	if run, ok := findTool(os.Getenv(recipeVariable), filepath.Base(os.Args[0])); ok {
		os.Exit(run(toolCall{
			Args: os.Args[1:], State: os.Getenv(stateVariable),
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		}))
	}
	os.Exit(runTests(m))
}

// fail prints a message to standard error and returns the exit code.
func (t toolCall) fail(code int, format string, args ...any) int {
	fmt.Fprintf(t.Stderr, format+"\n", args...)
	return code
}

// step takes some time, and ends the process group if this step is the one to be killed in. Call it
// between two changes of the state.
func (t toolCall) step() {
	counter := t.Getenv(stepsVariable)
	if counter == "" {
		time.Sleep(stepTime)
		return
	}
	raw, _ := os.ReadFile(counter) // missing: no step yet
	n, _ := strconv.Atoi(string(raw))
	n++
	if err := os.WriteFile(counter, []byte(strconv.Itoa(n)), 0o600); err != nil {
		panic(err)
	}
	if strconv.Itoa(n) == t.Getenv(killVariable) {
		_ = syscall.Kill(0, syscall.SIGKILL) // does not return
	}
}

// path returns the path of a file in the state folder and creates its folder.
func (t toolCall) path(parts ...string) string {
	path := filepath.Join(append([]string{t.State}, parts...)...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		panic(err)
	}
	return path
}

// write writes a file in the state folder, as a whole.
func (t toolCall) write(content string, parts ...string) {
	path := t.path(parts...)
	if err := os.WriteFile(path+"~", []byte(content), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		panic(err)
	}
}

// read returns the content of a file in the state folder, and whether it exists.
func (t toolCall) read(parts ...string) (string, bool) {
	raw, err := os.ReadFile(filepath.Join(append([]string{t.State}, parts...)...))
	return string(raw), err == nil
}

// remove removes a file or folder of the state folder, and the folders above it that become empty.
func (t toolCall) remove(parts ...string) {
	path := filepath.Join(append([]string{t.State}, parts...)...)
	if err := os.RemoveAll(path); err != nil {
		panic(err)
	}
	for path = filepath.Dir(path); path != t.State; path = filepath.Dir(path) {
		if os.Remove(path) != nil {
			return
		}
	}
}

// list returns the names in a folder of the state folder, sorted.
func (t toolCall) list(parts ...string) []string {
	entries, _ := os.ReadDir(filepath.Join(append([]string{t.State}, parts...)...)) // missing: none
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "~") {
			names = append(names, e.Name())
		}
	}
	return names
}

// installTools puts the stand-ins of the named tools first in PATH and gives them an empty state
// folder, which it returns, and an empty $HOME.
func installTools(t *testing.T, names ...string) (state string) {
	t.Helper()
	program, err := findProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if script, ok := scripts[name]; ok {
			err = os.WriteFile(path, []byte(script), 0o755) //nolint:gosec // a program
		} else {
			err = os.Symlink(program, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	state = t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv(stateVariable, state)
	// One call of a stand-in is too short to collect garbage.
	t.Setenv("GOMAXPROCS", "1")
	t.Setenv("GOGC", "off")
	return state
}

// listLeftovers returns everything below the folders, except unfinished writes of killed stand-ins.
func listLeftovers(t *testing.T, folders ...string) []string {
	t.Helper()
	var left []string
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && !strings.HasSuffix(path, "~") {
				left = append(left, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// realRecipes are the recipes without stand-ins: package test/recipes tests them with real clusters.
var realRecipes = []string{"kubernetes-processes"}

// namesWithStandins returns the names of all other shipped recipes.
func namesWithStandins() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return slices.Contains(realRecipes, name) })
}

// loadRecipe writes the shipped recipes and returns one of them.
func loadRecipe(t *testing.T, name string) *recipe.Recipe {
	t.Helper()
	dir := t.TempDir()
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	mutateProgram(t, filepath.Join(dir, name))
	r, err := recipe.Load(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// loadShipped returns a shipped recipe, with its stand-ins installed.
func loadShipped(t *testing.T, name string) (r *recipe.Recipe, state string) {
	t.Helper()
	r = loadRecipe(t, name)
	t.Setenv(recipeVariable, name)
	return r, installTools(t, toolsOf(name, r.Needs.Programs)...)
}

// maxLines bounds the lines of all programs of a recipe together, comments and blank lines included.
const maxLines = 60

func TestShippedRecipes(t *testing.T) {
	results := map[string]string{}
	for _, name := range namesWithStandins() {
		t.Run(name, func(t *testing.T) {
			r, state := loadShipped(t, name)
			lines := checkPrograms(t, r)
			if lines > maxLines {
				t.Errorf("the programs have %d lines: at most %d", lines, maxLines)
			}
			seed := rand.Uint64()
			var log strings.Builder
			s := &recipe.Suite{
				Recipe: r, With: parameters[name], Dir: t.TempDir(), Secrets: writeSecrets(t, name), Log: &log, Random: rand.New(rand.NewPCG(seed, 0)),
				Pause: time.Millisecond, Patience: time.Minute, KillWithin: 100 * time.Millisecond,
			}
			checks := s.Run(t.Context())
			t.Logf("recipe %s, seed %d\n%s", name, seed, recipe.Table(checks))
			for _, c := range checks {
				if c.State == recipe.CheckFailed {
					t.Errorf("%s: %s", c.Name, c.Detail)
				}
			}
			if left := listLeftovers(t, state, os.Getenv("HOME")); len(left) > 0 {
				t.Errorf("left over are %s", strings.Join(left, ", "))
			}
			if strings.Contains(log.String(), standinSecret) {
				t.Error("a program printed a secret")
			}
			if t.Failed() {
				t.Logf("log:\n%s", log.String())
			}
			results[name] = describeSuite(name, lines, checks)
		})
	}
	checkSuiteTable(t, results)
}

// TestRealRecipes checks the recipes without stand-ins as text.
func TestRealRecipes(t *testing.T) {
	for _, name := range realRecipes {
		t.Logf("recipe %s: %d lines", name, checkPrograms(t, loadRecipe(t, name)))
	}
}

// checkPrograms checks the programs, and the files that they share, as text, and returns the number of
// their lines.
func checkPrograms(t *testing.T, r *recipe.Recipe) (lines int) {
	t.Helper()
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), ".") { // recipe.yaml, and data
			continue
		}
		raw, err := os.ReadFile(filepath.Join(r.Dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(raw), "\n")
		if r.Has(recipe.Verb(e.Name())) {
			checkProgram(t, r.Dir, e.Name(), string(raw))
		}
	}
	return lines
}

func checkProgram(t *testing.T, dir, name, content string) {
	t.Helper()
	if !strings.HasPrefix(content, "#!/bin/sh -eu\n") {
		t.Errorf("%s does not begin with #!/bin/sh -eu", name)
	}
	checks := [][]string{{"sh", "-n", name}}
	if _, err := exec.LookPath("shellcheck"); err == nil {
		checks = append(checks, []string{"shellcheck", "--severity=warning", "--shell=sh", "--external-sources", name})
	}
	for _, check := range checks {
		cmd := exec.CommandContext(t.Context(), check[0], check[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s of %s: %v: %s", check[0], name, err, out)
		}
	}
}
