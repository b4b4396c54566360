package cli

import (
	"io"
	"math"
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

// least is what a shortened text must have room for to be worth showing.
const least = 24

// everything is more than any text has.
const everything = math.MaxInt

// fit makes a table whose last column is text as narrow as a terminal: expendable
// columns go, one after the other, until the text has room, and it is shortened to that
// room. The text's own column may be among them. A width of 0 is no terminal.
func (t *table) fit(width int, expendable ...string) {
	text := t.header[len(t.header)-1]
	for {
		room, wanted := t.room(width)
		last := len(t.header) - 1
		switch {
		case width == 0:
			t.shorten(last, everything) // a program, or a file, has room for all
			return
		case t.header[last] != text && room >= wanted:
			return
		case t.header[last] == text && room >= min(least, wanted), len(expendable) == 0:
			t.shorten(last, max(room, least))
			return
		}
		t.drop(expendable[0])
		expendable = expendable[1:]
	}
}

// legible is how much room a text has that is read easily.
const legible = 40

// wrap breaks the texts of the last column into lines, so that a table is as narrow as a
// terminal. Expendable columns go, one after the other, until they are easily read. A
// width of 0 is no terminal.
func (t *table) wrap(width int, expendable ...string) {
	if width == 0 || len(t.rows) == 0 {
		return
	}
	room, wanted := t.room(width)
	for len(expendable) > 0 && room < min(legible, wanted) {
		t.drop(expendable[0])
		expendable = expendable[1:]
		room, wanted = t.room(width)
	}
	last := len(widthsOf(t.rows)) - 1
	var rows [][]string
	for _, row := range t.rows {
		if len(row) <= last {
			rows = append(rows, row)
			continue
		}
		for n, line := range broken(row[last], max(room, least)) {
			if n == 0 {
				rows = append(rows, append(slices.Clone(row[:last]), line))
				continue
			}
			rows = append(rows, append(make([]string, last), line))
		}
	}
	t.rows = rows
}

// room is how much of a line the last column may take, and how much its longest text wants.
func (t *table) room(width int) (room, wanted int) {
	widths := widthsOf(append([][]string{t.header}, t.rows...))
	last := len(widths) - 1
	for _, w := range widths[:last] {
		width -= w + len(gutter)
	}
	return width, widths[last]
}

// broken is a text in lines of so many characters; a word that is longer has its own.
func broken(text string, room int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= room:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// drop takes a column away.
func (t *table) drop(name string) {
	i := slices.Index(t.header, name)
	if i < 0 {
		return
	}
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
