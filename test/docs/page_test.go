package docs

import (
	"strings"
	"testing"

	"hotspare.io/hotspare/test/pages"
)

// top is the module's folder, from here.
const top = "../.."

func allPages(t *testing.T) []pages.Page {
	t.Helper()
	all, err := pages.ReadAll(top)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, name string) pages.Page {
	t.Helper()
	p, err := pages.Read(top, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func blocksOf(t *testing.T, languages ...string) []pages.Block {
	t.Helper()
	var out []pages.Block
	for _, p := range allPages(t) {
		for _, b := range p.Blocks {
			for _, l := range languages {
				if b.Language == l {
					out = append(out, b)
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no block of %s: this test looks after nothing", strings.Join(languages, ", "))
	}
	return out
}

// Every block says what it is, so that none is left unchecked by a slip.
func TestBlocksSayWhatTheyAre(t *testing.T) {
	known := map[string]string{
		"console": "commands after $, and what they print", "sh": "commands", "yaml": "manifests",
		"yml": "YAML of other programs", "groovy": "pipelines of Jenkins",
		"go": "code", "mermaid": "diagrams", "text": "anything else",
	}
	for _, p := range allPages(t) {
		for _, b := range p.Blocks {
			if _, ok := known[b.Language]; !ok {
				t.Errorf("%s: a block of %q is none of console, sh, yaml, yml, groovy, go, mermaid and text", b.PositionOf(b.Lines[0]), b.Language)
			}
		}
	}
}
