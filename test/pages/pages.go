// Package pages reads the Markdown pages of this repository, for tests of their statements and of
// the commands in them.
package pages

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Page is one Markdown file.
type Page struct {
	// Name is its path below the module's folder.
	Name   string
	Prose  []Line
	Blocks []Block
}

// Line is a line of a page, counted from 1.
type Line struct {
	Number int
	Text   string
}

// Block is a fenced code block, with the opening fence as an empty first line.
type Block struct {
	Page, Language string
	// Heading is the heading above the block.
	Heading string
	Lines   []Line
}

// PositionOf returns the position of a line, for people.
func (b Block) PositionOf(l Line) string { return fmt.Sprintf("%s:%d", b.Page, l.Number) }

// ReadAll reads the module's pages in the folder top: those in it, and those below docs.
func ReadAll(top string) ([]Page, error) {
	names, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(top, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []Page
	for _, name := range names {
		p, err := Read(top, name)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("found %d pages: this is the wrong place", len(out))
	}
	return out, nil
}

// Read reads one page of the module in the folder top.
func Read(top, name string) (Page, error) {
	f, err := os.Open(name)
	if err != nil {
		return Page{}, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	below, err := filepath.Rel(top, name)
	if err != nil {
		return Page{}, err
	}
	p := Page{Name: filepath.ToSlash(below)}
	var open *Block
	heading := ""
	scan := bufio.NewScanner(f)
	for n := 1; scan.Scan(); n++ {
		text := scan.Text()
		language, fence := strings.CutPrefix(strings.TrimSpace(text), "```")
		switch {
		case fence && open == nil:
			open = &Block{Page: p.Name, Language: language, Heading: heading, Lines: []Line{{n, ""}}}
		case fence:
			p.Blocks = append(p.Blocks, *open)
			open = nil
		case open != nil:
			open.Lines = append(open.Lines, Line{n, text})
		default:
			p.Prose = append(p.Prose, Line{n, text})
			if words, is := strings.CutPrefix(strings.TrimLeft(text, "#"), " "); is && strings.HasPrefix(text, "#") {
				heading = words
			}
		}
	}
	if open != nil {
		return p, fmt.Errorf("%s: the last fence is not closed", p.Name)
	}
	return p, scan.Err()
}

// ListCommands returns the commands that a block asks the reader to type.
func (b Block) ListCommands() []Line {
	var out []Line
	open := false // the command continues on the next line
	for _, l := range b.Lines {
		text, typed := l.Text, b.Language == "sh"
		if b.Language == "console" {
			text, typed = strings.CutPrefix(l.Text, "$ ")
		}
		text = strings.TrimSpace(text)
		if text == "" || strings.HasPrefix(text, "#") || !typed && !open {
			continue
		}
		part, more := strings.CutSuffix(text, `\`)
		if open {
			out[len(out)-1].Text += " " + part
		} else {
			out = append(out, Line{l.Number, part})
		}
		open = more
	}
	return out
}
