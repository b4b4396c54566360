package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// table is text in columns. A row may be shorter than the header.
type table struct {
	header []string
	rows   [][]string
	// colours are those of its words on a terminal; nil stands for the usual ones.
	colours palette
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// gutter is what stands between columns.
const gutter = "   "

// write prints the table, with words painted by p.
func (t *table) write(w io.Writer, p palette) error {
	if p != nil && t.colours != nil {
		p = t.colours
	}
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

// least is what a shortened text must have room for to be worth showing, longest how
// much of one is shown where there is room for any.
const (
	least   = 24
	longest = 80
)

// fit makes a table whose last column is text as narrow as a terminal: expendable
// columns go, one after the other, until the text has room, and it is shortened to that
// room. The text's own column may be among them. A width of 0 is no terminal.
func (t *table) fit(width int, expendable ...string) {
	text := t.header[len(t.header)-1]
	for {
		widths := widthsOf(append([][]string{t.header}, t.rows...))
		last := len(widths) - 1
		room := width
		for _, w := range widths[:last] {
			room -= w + len(gutter)
		}
		switch {
		case width == 0:
			t.shorten(last, longest)
			return
		case t.header[last] != text && room >= widths[last]:
			return
		case t.header[last] == text && room >= min(least, widths[last]), len(expendable) == 0:
			t.shorten(last, max(room, least))
			return
		}
		t.drop(expendable[0])
		expendable = expendable[1:]
	}
}

// drop takes a column away.
func (t *table) drop(name string) {
	i := slices.Index(t.header, name)
	t.header = slices.Delete(t.header, i, i+1)
	for n, row := range t.rows {
		t.rows[n] = slices.Delete(row, i, i+1)
	}
}

func (t *table) shorten(column, room int) {
	for _, row := range t.rows {
		row[column] = shorten(row[column], room)
	}
}

// shorten cuts a text to so many characters, the last of which then is an ellipsis,
// and puts it in one line.
func shorten(text string, room int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(runes) <= room {
		return string(runes)
	}
	return strings.TrimRight(string(runes[:room-1]), " ") + "…"
}
