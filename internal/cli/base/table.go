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
	// Colours are the colours of words on a terminal; nil stands for the default palette.
	Colours Palette
}

// NewTable returns a table without rows; without a header for a list of facts.
func NewTable(header ...string) *Table { return &Table{Header: header} }

// AddRow adds a row.
func (t *Table) AddRow(cells ...string) { t.Rows = append(t.Rows, cells) }

// columnGap separates columns.
const columnGap = "   "

// WriteTo prints the table and colours its words by p.
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

// writeTableLine writes a line without trailing spaces.
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

// minTextWidth is the smallest width for which a shortened text is worth showing.
const minTextWidth = 24

// unlimitedWidth is larger than the width of any text.
const unlimitedWidth = math.MaxInt

// FitWidth fits a table whose last column is text into the width of a terminal. It drops
// expendable columns, one after the other, until the text has room, and shortens the text to
// that room. The text's own column may be expendable. A width of 0 means that the output is not
// a terminal.
func (t *Table) FitWidth(width int, expendable ...string) {
	text := t.Header[len(t.Header)-1]
	for {
		room, wanted := t.lastColumnRoom(width)
		last := len(t.Header) - 1
		switch {
		case width == 0:
			t.shortenColumn(last, unlimitedWidth) // programs and files get the full text
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

// readableTextWidth is the smallest width for which wrapped text is easy to read.
const readableTextWidth = 40

// WrapLastColumn wraps the texts of the last column, so that the table fits into the width of a
// terminal. It drops expendable columns, one after the other, until the texts are easy to read. A
// width of 0 means that the output is not a terminal.
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

// lastColumnRoom returns the width that is left for the last column, and the width of its longest
// text.
func (t *Table) lastColumnRoom(width int) (room, wanted int) {
	widths := columnWidths(append([][]string{t.Header}, t.Rows...))
	last := len(widths) - 1
	for _, w := range widths[:last] {
		width -= w + len(columnGap)
	}
	return width, widths[last]
}

// wrapText breaks a text into lines of at most room characters. A longer word has its own line.
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

// dropColumn removes a column.
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

// shortenText puts a text on one line and cuts it to room characters, the last of which is an
// ellipsis.
func shortenText(text string, room int) string {
	runes := []rune(strings.ReplaceAll(text, "\n", " "))
	if len(runes) <= room {
		return string(runes)
	}
	return strings.TrimRight(string(runes[:room-1]), " ") + "…"
}

// AddNamespaceHeader adds a first column for namespaces, if namespaces is set.
func (t *Table) AddNamespaceHeader(namespaces bool) {
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
}

// AddNamespacedRow adds a row, with the namespace first if namespaces is set.
func (t *Table) AddNamespacedRow(namespaces bool, namespace string, row []string) {
	if namespaces {
		row = append([]string{namespace}, row...)
	}
	t.AddRow(row...)
}
