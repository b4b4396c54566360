package cli

import (
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns. A row may be shorter than the header.
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// gutter is what stands between columns.
const gutter = "   "

// write prints the table, with words painted by p.
func (t *table) write(w io.Writer, p palette) error {
	lines := t.rows
	if len(t.header) > 0 {
		lines = append([][]string{t.header}, t.rows...)
	}
	widths := widthsOf(lines)
	var b strings.Builder
	for _, line := range lines {
		writeLine(&b, line, widths, p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func widthsOf(lines [][]string) []int {
	var widths []int
	for _, line := range lines {
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// writeLine leaves no blanks at the end of a line.
func writeLine(b *strings.Builder, line []string, widths []int, p palette) {
	last := len(line) - 1
	for last > 0 && line[last] == "" {
		last--
	}
	for i, cell := range line[:last+1] {
		b.WriteString(p.paint(cell))
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + gutter)
		}
	}
	b.WriteByte('\n')
}
