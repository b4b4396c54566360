package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// scriptMark begins and ends the copy of docs/ci/cluster.sh in a file of a CI system.
const scriptMark = "END_OF_CLUSTER_SH"

// ciFiles are the files that CI systems read, by their paths. They cannot refer to other files of this repository.
var ciFiles = []string{"templates/cluster.yml", "docs/ci/task.yaml"}

func TestTheScriptInFilesOfCISystems(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(top, "docs", "ci", "cluster.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range ciFiles {
		file := filepath.Join(top, name)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := withScript(t, name, string(raw), string(script))
		switch {
		case *update:
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		case want != string(raw):
			t.Errorf("%s has another docs/ci/cluster.sh; make generate copies it anew", name)
		}
	}
}

// withScript returns a file with the script between its marks, indented as they are.
func withScript(t *testing.T, name, text, script string) string {
	t.Helper()
	lines := strings.SplitAfter(text, "\n")
	isMark := func(l string) bool {
		return strings.HasSuffix(strings.TrimSpace(l), scriptMark) || strings.HasSuffix(strings.TrimSpace(l), scriptMark+"'")
	}
	first := slices.IndexFunc(lines, isMark)
	if first < 0 {
		t.Fatalf("%s has no %s", name, scriptMark)
	}
	last := first + 1 + slices.IndexFunc(lines[first+1:], isMark)
	indent, _, _ := strings.Cut(lines[last], scriptMark)
	var out strings.Builder
	for _, l := range lines[:first+1] {
		out.WriteString(l)
	}
	for l := range strings.Lines(script) {
		if strings.TrimSpace(l) != "" {
			out.WriteString(indent)
		}
		out.WriteString(l)
	}
	for _, l := range lines[last:] {
		out.WriteString(l)
	}
	return out.String()
}

// inputOfGitLab and parameterOfTekton refer to an input of the component, and to a parameter of the Task.
var (
	inputOfGitLab     = regexp.MustCompile(`\$\[\[ inputs\.([a-z-]+) \]\]`)
	parameterOfTekton = regexp.MustCompile(`\$\(params\.([a-z-]+)\)`)
)

func TestTheComponentOfGitLabUsesItsInputs(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(top, "templates", "cluster.yml"))
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(raw), "\n---\n")
	var header struct {
		Spec struct {
			Inputs map[string]struct {
				Description string  `json:"description"`
				Default     *string `json:"default"`
			} `json:"inputs"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict([]byte(head), &header); err != nil {
		t.Fatal(err)
	}
	var jobs map[string]any
	if err := yaml.UnmarshalStrict([]byte(body), &jobs); err != nil || jobs[".hotspare-cluster"] == nil {
		t.Errorf("the component has no job: %v", err)
	}
	var declared []string
	for name, in := range header.Spec.Inputs {
		declared = append(declared, name)
		if in.Description == "" {
			t.Errorf("input %s has no description", name)
		}
	}
	compareNames(t, declared, inputOfGitLab.FindAllStringSubmatch(body, -1))
}

func TestTheTaskOfTektonUsesItsParameters(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(top, "docs", "ci", "task.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var task struct {
		APIVersion, Kind string
		Spec             struct {
			Params []struct{ Name, Description string } `json:"params"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &task); err != nil || task.APIVersion != "tekton.dev/v1" || task.Kind != "Task" {
		t.Fatalf("%s %s, %v", task.APIVersion, task.Kind, err)
	}
	var declared []string
	for _, p := range task.Spec.Params {
		declared = append(declared, p.Name)
		if p.Description == "" {
			t.Errorf("parameter %s has no description", p.Name)
		}
	}
	compareNames(t, declared, parameterOfTekton.FindAllStringSubmatch(string(raw), -1))
}

// compareNames fails unless each declared name is used, and each used one declared.
func compareNames(t *testing.T, declared []string, uses [][]string) {
	t.Helper()
	var used []string
	for _, m := range uses {
		used = append(used, m[1])
	}
	slices.Sort(declared)
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(declared, used) {
		t.Errorf("declared: %q, used: %q", declared, used)
	}
}
