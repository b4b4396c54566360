package recipes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The stand-ins for the tools of clouds share this file: strict arguments, credentials in files, and
// resources whose operations take several calls.

// recipeVariable is the environment variable with the recipe that is tested.
const recipeVariable = "STANDIN_RECIPE"

// registerRecipeTool registers the stand-in of a tool for one recipe alone. It takes precedence.
func registerRecipeTool(recipe, name string, run func(t toolCall) int) { tools[recipe+"/"+name] = run }

// findTool returns the stand-in of a tool for a recipe.
func findTool(recipe, name string) (func(t toolCall) int, bool) {
	if run, ok := tools[recipe+"/"+name]; ok {
		return run, true
	}
	run, ok := tools[name]
	return run, ok
}

// toolsOf returns the tools with stand-ins that a recipe needs, those on its hosts included.
func toolsOf(recipe string, programs []string) []string {
	var out []string
	for name := range tools {
		if own, ok := strings.CutPrefix(name, recipe+"/"); ok {
			out = append(out, own)
		}
	}
	for _, p := range programs {
		if _, ok := tools[p]; ok && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// standinSecret is part of each secret of the stand-ins. It must appear in no argument, environment
// variable or log.
const standinSecret = "stand-in-secret"

var secretFiles = map[string]map[string]string{}

// registerSecrets registers the files that the suite puts into $HOTSPARE_SECRETS of a recipe.
func registerSecrets(recipe string, files map[string]string) { secretFiles[recipe] = files }

// writeSecrets writes the registered files of a recipe and returns their folder, or an empty string
// if there are none. The modes are those of a Secret volume on a hub.
func writeSecrets(t *testing.T, recipe string) string {
	t.Helper()
	if len(secretFiles[recipe]) == 0 {
		return ""
	}
	dir := t.TempDir()
	for name, content := range secretFiles[recipe] {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil { //nolint:gosec // as on a hub
			t.Fatal(err)
		}
	}
	return dir
}

// rejectSecrets fails if a secret is among the arguments or in the environment, where other users of
// the machine can read it.
func (t toolCall) rejectSecrets() error {
	if slices.ContainsFunc(append(os.Environ(), t.Args...), func(s string) bool { return strings.Contains(s, standinSecret) }) {
		return fmt.Errorf("a secret is in the arguments or in the environment of %s", filepath.Base(os.Args[0]))
	}
	return nil
}

// arguments are the parsed arguments of a call.
type arguments struct {
	flags map[string]string
	// rest are the arguments that are not flags.
	rest []string
}

// has reports whether a flag was given.
func (a arguments) has(flag string) bool {
	_, ok := a.flags[flag]
	return ok
}

// parseArguments reads flags. spec lists the flags of the command: "--name" takes a value, "--name!" is
// also required, and "--yes?" takes none. A flag that spec does not list, one that is given twice, and a
// value that begins with "--" are errors.
func parseArguments(args []string, spec ...string) (arguments, error) {
	out := arguments{flags: map[string]string{}}
	kinds := map[string]byte{}
	for _, s := range spec {
		name := strings.TrimRight(s, "!?")
		kinds[name] = (s + "=")[len(name)]
	}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") || name == "-" {
			out.rest = append(out.rest, args[i])
			continue
		}
		kind, ok := kinds[name]
		switch {
		case !ok:
			return out, fmt.Errorf("unrecognized arguments: %s", args[i])
		case out.has(name):
			return out, fmt.Errorf("argument %s: given twice", name)
		case kind == '?' && joined:
			return out, fmt.Errorf("argument %s: ignored explicit argument %q", name, value)
		case kind != '?' && !joined:
			if i++; i == len(args) || strings.HasPrefix(args[i], "--") {
				return out, fmt.Errorf("argument %s: expected one argument", name)
			}
			value = args[i]
		}
		out.flags[name] = value
	}
	for _, s := range spec {
		if name, required := strings.CutSuffix(s, "!"); required && !out.has(name) {
			return out, fmt.Errorf("the following arguments are required: %s", name)
		}
	}
	return out, nil
}

// resource is something in a cloud: a cluster, a stack, a disk. An operation that is under way ends
// after some calls.
type resource struct {
	Kind, Name string
	// State is the state now; the operation ends in Next, or removes the resource if Next is empty.
	State, Next string
	Remaining   int
	// Fields are what else the tool stores about the resource.
	Fields map[string]string
}

// operationCalls is how many calls an operation takes.
const operationCalls = 2

// operate begins an operation. The resource is in state until it ends in next.
func (r *resource) operate(state, next string) {
	r.State, r.Next, r.Remaining = state, next, operationCalls
}

// isShort reports whether the first creation of a cluster fails later, because its machines are out of
// stock. The second one does not.
func (t toolCall) isShort(name string, outOfStock bool) bool {
	if !outOfStock {
		return false
	}
	if _, failed := t.read("stock", name); failed {
		t.remove("stock", name)
		return false
	}
	t.write("", "stock", name)
	return true
}

func (t toolCall) saveResource(r resource) {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic(err)
	}
	t.write(string(raw), r.Kind, r.Name)
}

// resource returns one resource, and whether it exists.
func (t toolCall) resource(kind, name string) (resource, bool) {
	var r resource
	raw, ok := t.read(kind, name)
	if ok {
		if err := json.Unmarshal([]byte(raw), &r); err != nil {
			panic(err)
		}
	}
	return r, ok
}

func (t toolCall) resources(kind string) []resource {
	var out []resource
	for _, name := range t.list(kind) {
		if r, ok := t.resource(kind, name); ok {
			out = append(out, r)
		}
	}
	return out
}

// advanceOperations brings the operations of a kind one call further. ended is called for each that
// ends, before the resource changes; it may be nil.
func (t toolCall) advanceOperations(kind string, ended func(resource)) {
	for _, r := range t.resources(kind) {
		if r.Remaining == 0 {
			continue
		}
		if r.Remaining--; r.Remaining > 0 {
			t.saveResource(r)
			continue
		}
		if ended != nil {
			ended(r)
		}
		if r.Next == "" {
			t.remove(kind, r.Name)
			continue
		}
		r.State, r.Next = r.Next, ""
		t.saveResource(r)
	}
}

// kubeconfigText is a kubeconfig with a credential for the reader.
func kubeconfigText(name, server, credential string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: %[1]s\n  cluster:\n    server: %[2]s\ncontexts: [{name: %[1]s, "+
		"context: {cluster: %[1]s, user: %[1]s}}]\ncurrent-context: %[1]s\nusers: [{name: %[1]s, user: %[3]s}]\n", name, server, credential)
}
