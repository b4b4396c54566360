package docs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// top is the module's folder, from here.
const top = "../.."

// page is one Markdown file.
type page struct {
	// name is its path below the module's folder.
	name   string
	prose  []line
	blocks []block
}

type line struct {
	number int
	text   string
}

// block is what stands between fences.
type block struct {
	page, language string
	lines          []line
}

// at tells people where a line is.
func (b block) at(l line) string { return fmt.Sprintf("%s:%d", b.page, l.number) }

// pages reads README.md, CONTRIBUTING.md, CHANGELOG.md and all below docs/.
func pages(t *testing.T) []page {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(top, "docs"), func(name string, _ os.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []page
	for _, name := range names {
		out = append(out, read(t, name))
	}
	if len(out) < 2 {
		t.Fatalf("found %d pages: this test looks in the wrong place", len(out))
	}
	return out
}

func read(t *testing.T, name string) page {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	below, err := filepath.Rel(top, name)
	if err != nil {
		t.Fatal(err)
	}
	p := page{name: filepath.ToSlash(below)}
	var open *block
	scan := bufio.NewScanner(f)
	for n := 1; scan.Scan(); n++ {
		text := scan.Text()
		language, fence := strings.CutPrefix(strings.TrimSpace(text), "```")
		switch {
		case fence && open == nil:
			open = &block{page: p.name, language: language, lines: []line{{n, ""}}}
		case fence:
			p.blocks = append(p.blocks, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line{n, text})
		default:
			p.prose = append(p.prose, line{n, text})
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	if open != nil {
		t.Errorf("%s: the last fence is not closed", p.name)
	}
	return p
}

func blocksOf(t *testing.T, languages ...string) []block {
	t.Helper()
	var out []block
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			for _, l := range languages {
				if b.language == l {
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
		"go": "code", "mermaid": "diagrams", "text": "anything else",
	}
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if _, ok := known[b.language]; !ok {
				t.Errorf("%s: a block of %q is none of console, sh, yaml, go, mermaid and text", b.at(b.lines[0]), b.language)
			}
		}
	}
}
