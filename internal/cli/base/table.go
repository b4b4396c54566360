package base

import (
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is text in columns. A row may be shorter than the header.
type Table struct {
	Header []string
	Rows   [][]string
	// Colours are those of its words on a terminal; nil stands for the usual ones.
	Colours Palette
}

func NewTable(header ...string) *Table { return &Table{Header: header} }

func (t *Table) AddRow(cells ...string) { t.Rows = append(t.Rows, cells) }

// columnGap is what stands between columns.
const columnGap = "   "

// WriteTo prints the table, with words painted by p.
func (t *Table) WriteTo(w io.Writer, p Palette) error {
	if p != nil && t.Colours != nil {
		p = t.Colours
	}
	lines := t.Rows
	if len(t.Header) > 0 {
		lines = append([][]string{t.Header}, t.Rows...)
	}
	widths := columnWidths(lines)
	var b strings.Builder
	for _, line := range lines {
		writeTableLine(&b, line, widths, p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func columnWidths(lines [][]string) []int {
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

// writeTableLine leaves no blanks at the end of a line.
func writeTableLine(b *strings.Builder, line []string, widths []int, p Palette) {
	last := len(line) - 1
	for last > 0 && line[last] == "" {
		last--
	}
	for i, cell := range line[:last+1] {
		b.WriteString(p.colourWord(cell))
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + columnGap)
		}
	}
	b.WriteByte('\n')
}

// minTextWidth is what a shortened text must have room for to be worth showing.
const minTextWidth = 24

// unlimitedWidth is more than any text has.
const unlimitedWidth = math.MaxInt

// FitWidth makes a table whose last column is text as narrow as a terminal: expendable
// columns go, one after the other, until the text has room, and it is shortened to that
// room. The text's own column may be among them. A width of 0 is no terminal.
func (t *Table) FitWidth(width int, expendable ...string) {
	text := t.Header[len(t.Header)-1]
	for {
		room, wanted := t.lastColumnRoom(width)
		last := len(t.Header) - 1
		switch {
		case width == 0:
			t.shortenColumn(last, unlimitedWidth) // a program, or a file, has room for all
			return
		case t.Header[last] != text && room >= wanted:
			return
		case t.Header[last] == text && room >= min(minTextWidth, wanted), len(expendable) == 0:
			t.shortenColumn(last, max(room, minTextWidth))
			return
		}
		t.dropColumn(expendable[0])
		expendable = expendable[1:]
	}
}

// readableTextWidth is how much room a text has that is read easily.
const readableTextWidth = 40

// WrapLastColumn breaks the texts of the last column into lines, so that a table is as narrow as a
// terminal. Expendable columns go, one after the other, until they are easily read. A
// width of 0 is no terminal.
func (t *Table) WrapLastColumn(width int, expendable ...string) {
	if width == 0 || len(t.Rows) == 0 {
		return
	}
	room, wanted := t.lastColumnRoom(width)
	for len(expendable) > 0 && room < min(readableTextWidth, wanted) {
		t.dropColumn(expendable[0])
		expendable = expendable[1:]
		room, wanted = t.lastColumnRoom(width)
	}
	last := len(columnWidths(t.Rows)) - 1
	var rows [][]string
	for _, row := range t.Rows {
		if len(row) <= last {
			rows = append(rows, row)
			continue
		}
		for n, line := range wrapText(row[last], max(room, minTextWidth)) {
			if n == 0 {
				rows = append(rows, append(slices.Clone(row[:last]), line))
				continue
			}
			rows = append(rows, append(make([]string, last), line))
		}
	}
	t.Rows = rows
}

// lastColumnRoom is how much of a line the last column may take, and how much its longest text wants.
func (t *Table) lastColumnRoom(width int) (room, wanted int) {
	widths := columnWidths(append([][]string{t.Header}, t.Rows...))
	last := len(widths) - 1
	for _, w := range widths[:last] {
		width -= w + len(columnGap)
	}
	return width, widths[last]
}

// wrapText is a text in lines of so many characters; a word that is longer has its own.
func wrapText(text string, room int) []string {
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

// dropColumn takes a column away.
func (t *Table) dropColumn(name string) {
	i := slices.Index(t.Header, name)
	if i < 0 {
		return
	}
	t.Header = slices.Delete(t.Header, i, i+1)
	for n, row := range t.Rows {
		t.Rows[n] = slices.Delete(row, i, i+1)
	}
}

func (t *Table) shortenColumn(column, room int) {
	for _, row := range t.Rows {
		row[column] = shortenText(row[column], room)
	}
}

// shortenText cuts a text to so many characters, the last of which then is an ellipsis,
// and puts it in one line.
func shortenText(text string, room int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(runes) <= room {
		return string(runes)
	}
	return strings.TrimRight(string(runes[:room-1]), " ") + "…"
}

// AddNamespaceHeader and begun put a column with namespaces before the others, if that is wanted.
func (t *Table) AddNamespaceHeader(namespaces bool) {
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
}

func (t *Table) AddNamespacedRow(namespaces bool, namespace string, row []string) {
	if namespaces {
		row = append([]string{namespace}, row...)
	}
	t.AddRow(row...)
}
