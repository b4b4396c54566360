package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/recipes"
)

// recipeRig returns a rig in a new working folder, in which the recipe "mine" is a skeleton and the folder
// "world" is where its clusters are.
func recipeRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, interceptor.Funcs{})
	t.Chdir(t.TempDir())
	world, err := filepath.Abs("world")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", world)
	if _, err := recipe.WriteSkeleton("mine"); err != nil {
		t.Fatal(err)
	}
	return r
}

// change replaces a text in a file of the recipe "mine", or its whole content if old is empty.
func change(t *testing.T, file, old, replacement string) {
	t.Helper()
	path := filepath.Join("mine", file)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content := replacement
	if old != "" {
		if !strings.Contains(string(raw), old) {
			t.Fatalf("%s does not contain %q", file, old)
		}
		content = strings.Replace(string(raw), old, replacement, 1)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
}

var varying = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`killed \w+ after \d+m?s|killed \w+ after \d+\.\d+s|\w+ ended before it was killed`), "<killed>"},
	{regexp.MustCompile(`\d+\.\ds`), "0.1s"},
	{regexp.MustCompile(`== [-0-9]{10}T[0-9:]{8}Z `), "== 2026-11-21T12:00:00Z "},
	{regexp.MustCompile(`"seconds": [0-9.e-]+`), `"seconds": 0.1`},
}

// recipeTranscript is a transcript without times and without the path of the working folder.
func recipeTranscript(t *testing.T, r *rig, lines ...string) string {
	t.Helper()
	text := transcript(r, lines)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(text, here, "/home/you")
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.replacement)
	}
	return text
}

func TestRecipeTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"recipe-new":      {"recipe new tool", "recipe new tool", "recipe new other --dir deep/er", "recipe new third -o json", "recipe new fourth -o name", "recipe new My_Tool", "recipe new a/b", "recipe new", "recipe new fifth --dir mine/create"},
		"recipe-list":     {"recipe list --recipes .", "recipe ls --recipes . -o json", "recipe list --recipes . -o name", "recipe list --recipes nope", "recipe list --recipes mine", "recipe list mine"},
		"recipe-describe": {"recipe describe mine", "recipe describe mine --recipes . -o name", "recipe describe ./mine -o json", "recipe describe ./mine --pool", "recipe describe nope --recipes .", "recipe describe ./nope", "recipe describe"},
		"recipe-test":     {"recipe test mine --seed 1 --with workers=2 --skip-api", "recipe test ./mine --seed 1 --skip-api -o json"},
		"recipe-test-bad": {"recipe test nope --recipes .", "recipe test /no/such/folder", "recipe test .", "recipe test mine --with worker=3 --with workers=many", "recipe test mine --with workers", "recipe test mine --with workers=1 --with workers=2", "recipe test mine --patience 0s", "recipe test mine -o name", "recipe test mine --secrets nope --seed 1", "recipe test mine --keep-log no/such/file", "recipe test mine --seed -1", "recipe test"},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, name, recipeTranscript(t, recipeRig(t), lines...))
		})
	}
}

func TestFaultsOfARecipeTranscript(t *testing.T) {
	r := recipeRig(t)
	if _, err := recipe.WriteSkeleton("valid"); err != nil {
		t.Fatal(err)
	}
	change(t, "recipe.yaml", "description: Clusters", "describe: Clusters")
	change(t, "recipe.yaml", "create: 20m", "create: soon\n  crate: 1m")
	change(t, "recipe.yaml", `default: "1"`, `default: "one"`)
	if err := os.Chmod("mine/create", 0o600); err != nil {
		t.Fatal(err)
	}
	compare(t, "recipe-faults", recipeTranscript(t, r, "recipe test mine", "recipe describe mine", "recipe list --recipes ."))
}

func TestFailedChecksTranscript(t *testing.T) {
	r := recipeRig(t)
	change(t, "create", "", "#!/bin/sh\necho creating >&2\necho 'export TOKEN=abc' >&2\necho the quota is exceeded >&2\nexit 1\n")
	change(t, "recipe.yaml", "programs: [sh]", "programs: [sh, no-such-program]")
	text := recipeTranscript(t, r, "recipe list --recipes .", "recipe test mine --seed 1 --skip-api")
	change(t, "recipe.yaml", "[sh, no-such-program]", "[sh]")
	compare(t, "recipe-failed", text+recipeTranscript(t, r, "recipe test mine --seed 1 --keep-log log"))
	raw, err := os.ReadFile("log")
	if err != nil || !strings.Contains(string(raw), "Z create test-3-") || strings.Contains(string(raw), "abc") {
		t.Errorf("the log is %s, %v", raw, err)
	}
}

func TestARecipeWhoseAPIDoesNotAnswerFails(t *testing.T) {
	r := recipeRig(t)
	code := r.run("recipe", "test", "mine", "--seed", "1", "--patience", "1s")
	if text := r.stdout.String(); code != 1 || !strings.Contains(text, "create has succeeded, and no pool could use the cluster 1s later: its API, as the kubeconfig names it: its admin kubeconfig cannot be read") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

func TestCtrlCDestroysTheClustersOfARecipeTest(t *testing.T) {
	r := recipeRig(t)
	change(t, "create", "cat >\"$KUBECONFIG\"", "sleep 1000\ncat >\"$KUBECONFIG\"")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- r.runIn(ctx, "recipe", "test", "mine") }()
	clusters := func() []string {
		found, err := filepath.Glob("world/mine/*")
		if err != nil {
			t.Error(err)
		}
		return found
	}
	for len(clusters()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	cancel(base.InterruptError{Signal: syscall.SIGINT})
	if code := <-ended; code != base.ExitSignal+int(syscall.SIGINT) {
		t.Errorf("exit code %d", code)
	}
	if left := clusters(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	if text := r.stderr.String(); !strings.Contains(text, "Destroying the clusters of the test.") || !strings.HasSuffix(text, "error: interrupted\n") {
		t.Errorf("it prints %s", text)
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "hotspare-*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestShippedRecipesAreListedAndDescribed(t *testing.T) {
	r := recipeRig(t)
	if code := r.run("recipe", "list", "-o", "name"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	if got := strings.Fields(r.stdout.String()); !slices.Equal(got, recipes.Names()) {
		t.Errorf("listed are %v, want %v", got, recipes.Names())
	}
	for _, name := range recipes.Names() {
		if code := r.run("recipe", "describe", name); code != 0 || !strings.Contains(r.stdout.String(), "shipped with hotspare") {
			t.Errorf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
		if code := r.run("recipe", "describe", name, "-o", "json"); code != 0 {
			t.Errorf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
		checkPoolManifest(t, name, r.stdout.Bytes())
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "hotspare-*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// checkPoolManifest checks that the manifest sets each parameter with a default to that default.
func checkPoolManifest(t *testing.T, name string, described []byte) {
	t.Helper()
	var d struct {
		Dir        string
		Pool       string
		Parameters []struct {
			Name    string
			Default *string
		}
	}
	if err := json.Unmarshal(described, &d); err != nil || d.Dir != "" {
		t.Fatalf("%s: %v, dir %q", name, err, d.Dir)
	}
	var pool struct {
		Spec struct {
			Platform struct {
				Exec struct {
					Recipe string
					With   map[string]string
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(d.Pool), &pool); err != nil || pool.Spec.Platform.Exec.Recipe != name {
		t.Errorf("%s: %v in %s", name, err, d.Pool)
	}
	for _, p := range d.Parameters {
		if value, set := pool.Spec.Platform.Exec.With[p.Name]; p.Default != nil && (!set || value != *p.Default) {
			t.Errorf("%s: parameter %s is %q, want %q", name, p.Name, value, *p.Default)
		}
	}
}

func TestMissingProgramsInATable(t *testing.T) {
	r := recipeRig(t)
	change(t, "recipe.yaml", "programs: [sh]", "programs: [sh, no-such-1, no-such-2, no-such-3]")
	for want, programs := range map[string]string{
		"no-such-1, no-such-2, no-such-3   ": "no-such-3]", "no-such-1, no-such-2 and 2 more   ": "no-such-3, no-such-4]",
	} {
		change(t, "recipe.yaml", "no-such-3]", programs)
		if code := r.run("recipe", "list", "--recipes", "."); code != 0 || !strings.Contains(r.stdout.String(), want) {
			t.Errorf("%q is not in %s", want, r.stdout.String())
		}
		change(t, "recipe.yaml", programs, "no-such-3]")
	}
}
