package docs

import (
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/kubectl/pkg/cmd"
	"sigs.k8s.io/yaml"
)

// ciCommand finds a command of ours, or one of kubectl, in a line of the configuration of a CI
// system: as a step, in quotes, or after exec.
var ciCommand = regexp.MustCompile(`(?:^|^- |run: |exec |sh ')((?:hotspare|kubectl) [^']*)`)

// ciScript finds a call of docs/ci/cluster.sh.
var ciScript = regexp.MustCompile(`cluster\.sh[ ,]+([a-z]+)`)

func TestTheYAMLOfOtherProgramsParses(t *testing.T) {
	for _, b := range blocksOf(t, "yml") {
		var text strings.Builder
		for _, l := range b.Lines[1:] {
			text.WriteString(l.Text + "\n")
		}
		for doc := range strings.SplitSeq(text.String(), "---\n") {
			var out any
			if err := yaml.UnmarshalStrict([]byte(doc), &out); err != nil {
				t.Errorf("%s: %v", b.PositionOf(b.Lines[0]), err)
			}
		}
	}
}

func TestCommandsOfCIConfigurationsExist(t *testing.T) {
	commands, scripts := 0, 0
	for _, b := range blocksOf(t, "yml", "groovy") {
		for _, l := range b.Lines {
			text := strings.TrimSpace(l.Text)
			if m := ciCommand.FindStringSubmatch(text); m != nil {
				commands++
				if err := checkCICommand(t, m[1]); err != nil {
					t.Errorf("%s: %s: %v", b.PositionOf(l), m[1], err)
				}
			}
			if m := ciScript.FindStringSubmatch(text); m != nil {
				scripts++
				if !slices.Contains([]string{"claim", "release", "run"}, m[1]) {
					t.Errorf("%s: docs/ci/cluster.sh has no command %s", b.PositionOf(l), m[1])
				}
			}
		}
	}
	if commands < 3 || scripts < 8 {
		t.Errorf("only %d commands and %d calls of the script were found: this test looks in the wrong place", commands, scripts)
	}
}

func checkCICommand(t *testing.T, text string) error {
	t.Helper()
	var errs []error
	for _, words := range programs(text) {
		if words[0] == "hotspare" {
			errs = append(errs, hotspare(t, words[1:]))
		} else {
			errs = append(errs, parses(cmd.NewDefaultKubectlCommand(), words[1:]))
		}
	}
	return errors.Join(errs...)
}

// A page that is in no index is found by nobody.
func TestTheIndexListsEveryPage(t *testing.T) {
	listed := map[string]bool{"docs/README.md": true}
	for _, index := range []string{"docs/README.md", "docs/adr/README.md"} {
		for _, l := range read(t, filepath.Join(top, index)).Prose {
			for _, m := range link.FindAllStringSubmatch(l.Text, -1) {
				file, _, _ := strings.Cut(m[1], "#")
				listed[filepath.ToSlash(filepath.Join(filepath.Dir(index), file))] = true
			}
		}
	}
	for _, p := range allPages(t) {
		if strings.HasPrefix(p.Name, "docs/") && !listed[p.Name] {
			t.Errorf("docs/README.md does not list %s", p.Name)
		}
	}
}
