package simulate

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Claim is one arrival of a trace.
type Claim struct {
	// Arrived is in seconds since 1970.
	Arrived int64
	// Held is how long the claim keeps its cluster; 0 if unknown.
	Held int64
}

// A Trace is the arrivals that a simulation replays, oldest first.
type Trace struct {
	Claims []Claim
	// Notes say what was done with lines that are unusual.
	Notes []string
}

// Begin and End return the times of the first and the last claim.
func (t Trace) Begin() time.Time { return time.Unix(t.Claims[0].Arrived, 0).UTC() }

// End returns the time of the last claim.
func (t Trace) End() time.Time { return time.Unix(t.Claims[len(t.Claims)-1].Arrived, 0).UTC() }

// A LineError is a value of a trace that cannot be read.
type LineError struct {
	File         string
	Line         int
	Field, Value string
	// Problem says what is wrong, and Remedy what to do.
	Problem, Remedy string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d: %s %q %s: %s", e.File, e.Line, e.Field, e.Value, e.Problem, e.Remedy)
}

const (
	createdField = "created"
	heldField    = "held_seconds"
	timeRemedy   = "write times as 2026-03-01T12:00:00Z, with a time zone"
	columnRemedy = "begin the file with the line: created,held_seconds"
	maxLine      = 64 << 10
	// maxClaims limits the memory, at 16 bytes for each claim, and maxYears the time of a simulation, which
	// passes every minute.
	maxClaims = 50_000_000
	maxYears  = 20
	// oddGap is a gap between two claims that is reported.
	oddGap = 28 * 24 * 60 * 60
)

// traceReader reads a trace and counts what is unusual.
type traceReader struct {
	file                       string
	line                       int
	created, held              int
	header                     bool
	claims                     []Claim
	mostClaims                 int
	outOfOrder, offsets, heldN int
}

// ReadTrace reads a CSV file with a header: column created has the time of each claim, and the
// optional column held_seconds how long it kept its cluster. Lines that begin with # are comments.
// Claims that are out of order are sorted; claims at the same second stay.
func ReadTrace(file string, r io.Reader) (Trace, error) {
	return (&traceReader{file: file, mostClaims: maxClaims}).readAll(r)
}

func (t *traceReader) readAll(r io.Reader) (Trace, error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, maxLine), maxLine)
	for in.Scan() {
		t.line++
		if c, held, ok := t.readPlain(in.Bytes()); ok {
			if err := t.addClaim(c, held); err != nil {
				return Trace{}, err
			}
			continue
		}
		if err := t.readLine(strings.TrimSuffix(in.Text(), "\r")); err != nil {
			return Trace{}, err
		}
	}
	err := in.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return Trace{}, fmt.Errorf("%s:%d: the line has more than %d characters: write a CSV file with one claim a line", t.file, t.line+1, maxLine)
	}
	if err != nil {
		return Trace{}, fmt.Errorf("reading %s after line %d: %w", t.file, t.line, err)
	}
	return t.finishTrace()
}

func (t *traceReader) readLine(line string) error {
	if t.line == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if line == "" || line[0] == '#' {
		return nil
	}
	if !t.header {
		return t.readHeader(line)
	}
	created, held, err := t.splitLine(line)
	if err != nil {
		return err
	}
	at, ok := parseUTC(created)
	if !ok {
		parsed, err := time.Parse(time.RFC3339, created)
		if err != nil {
			return t.newLineError(createdField, created, "is not a time", timeRemedy)
		}
		if at = parsed.Unix(); parsed.UTC().Hour() != parsed.Hour() {
			t.offsets++
		}
	}
	c, known := Claim{Arrived: at}, held != ""
	if held != "" {
		seconds, err := strconv.ParseFloat(held, 64)
		if err != nil || !(seconds >= 0 && seconds <= math.MaxInt32) { // NaN is neither
			return t.newLineError(heldField, held, "is not a number of seconds", "write a number from 0 to 2147483647, or nothing if it is unknown")
		}
		c.Held = int64(math.Ceil(seconds))
	}
	return t.addClaim(c, known)
}

// readPlain reads a line in the usual form, such as 2026-03-01T12:00:00Z,60, without a copy: traces may
// have ten million lines. Ok is false if the line has any other form.
func (t *traceReader) readPlain(line []byte) (c Claim, held, ok bool) {
	const length = len("2006-01-02T15:04:05Z")
	if !t.header || t.created != 0 || len(line) < length {
		return c, false, false
	}
	if c.Arrived, ok = parseUTC(line[:length]); !ok {
		return c, false, false
	}
	switch rest := line[length:]; {
	case len(rest) == 0:
		return c, false, true
	case t.held != 1 || rest[0] != ',' || len(rest) > len(",999999999"):
		return c, false, false
	default:
		for _, digit := range rest[1:] {
			if digit < '0' || digit > '9' {
				return c, false, false
			}
			c.Held = 10*c.Held + int64(digit-'0')
		}
		return c, len(rest) > 1, true
	}
}

// addClaim adds a claim, and reports one too many.
func (t *traceReader) addClaim(c Claim, held bool) error {
	n := len(t.claims)
	if n == t.mostClaims {
		return fmt.Errorf("%s has more than %d claims: split it, and simulate each part", t.file, t.mostClaims)
	}
	if n > 0 && c.Arrived < t.claims[n-1].Arrived {
		t.outOfOrder++
	}
	if held {
		t.heldN++
	}
	t.claims = append(t.claims, c)
	return nil
}

func (t *traceReader) readHeader(line string) error {
	names, err := splitColumns(line)
	if err != nil {
		return t.newLineError("header", line, "is not CSV", columnRemedy)
	}
	t.header, t.created, t.held = true, -1, -1
	for i, name := range names {
		switch strings.ToLower(strings.TrimSpace(name)) {
		case createdField:
			t.created = i
		case heldField:
			t.held = i
		}
	}
	if t.created < 0 {
		return t.newLineError("header", line, "has no column created", columnRemedy)
	}
	return nil
}

// splitColumns returns the columns of a line, some of which may be in quotes.
func splitColumns(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.FieldsPerRecord = -1
	return r.Read()
}

// splitLine returns the two columns that matter, without a copy unless some are in quotes.
func (t *traceReader) splitLine(line string) (created, held string, err error) {
	if strings.Contains(line, `"`) {
		return t.splitQuoted(line)
	}
	found := false
	for i := 0; ; i++ {
		cell, rest, more := strings.Cut(line, ",")
		switch i {
		case t.created:
			created, found = strings.TrimSpace(cell), true
		case t.held:
			held = strings.TrimSpace(cell)
		}
		if !more {
			break
		}
		line = rest
	}
	if !found {
		return "", "", t.newLineError(createdField, line, "is missing", missingRemedy)
	}
	return created, held, nil
}

const missingRemedy = "write as many columns as the header has"

func (t *traceReader) splitQuoted(line string) (created, held string, err error) {
	cells, err := splitColumns(line)
	switch {
	case err != nil:
		return "", "", t.newLineError("line", line, "is not CSV", "close each quote in the line in which it begins")
	case t.created >= len(cells):
		return "", "", t.newLineError(createdField, line, "is missing", missingRemedy)
	case t.held >= 0 && t.held < len(cells):
		held = strings.TrimSpace(cells[t.held])
	}
	return strings.TrimSpace(cells[t.created]), held, nil
}

func (t *traceReader) newLineError(field, value, problem, remedy string) error {
	if len(value) > 60 {
		value = value[:60] + "…"
	}
	return &LineError{File: t.file, Line: t.line, Field: field, Value: value, Problem: problem, Remedy: remedy}
}

func (t *traceReader) finishTrace() (Trace, error) {
	if len(t.claims) == 0 {
		return Trace{}, fmt.Errorf("%s has no claims: add at least one line below the header, such as 2026-03-01T12:00:00Z", t.file)
	}
	out := Trace{Claims: t.claims}
	if t.outOfOrder > 0 {
		slices.SortFunc(out.Claims, func(a, b Claim) int {
			return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), cmp.Compare(a.Held, b.Held))
		})
		out.addNote("%d lines were out of order: the claims were sorted", t.outOfOrder)
	}
	if begin, end := out.Begin(), out.End(); begin.AddDate(maxYears, 0, 0).Before(end) {
		return Trace{}, fmt.Errorf("%s has claims from %s to %s, which is more than %d years: correct the times, or split the file",
			t.file, begin.Format(time.RFC3339), end.Format(time.RFC3339), maxYears)
	}
	same, gaps := 0, 0
	for i := 1; i < len(out.Claims); i++ {
		switch d := out.Claims[i].Arrived - out.Claims[i-1].Arrived; {
		case d == 0:
			same++
		case d >= oddGap:
			gaps++
		}
	}
	if same > 0 {
		out.addNote("%d claims arrived in the same second as another: each counts", same)
	}
	if gaps > 0 {
		out.addNote("%d gaps of four weeks or more: they count as times without claims", gaps)
	}
	if t.offsets > 0 {
		out.addNote("%d times have another time zone than UTC: they were converted", t.offsets)
	}
	if n := t.heldN; n > 0 && n < len(out.Claims) {
		out.addNote("%d of %d claims have no held_seconds: they count as released at once", len(out.Claims)-n, len(out.Claims))
	}
	return out, nil
}

func (t *Trace) addNote(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// parseUTC reads the usual form, 2026-03-01T12:00:00Z, without the cost of time.Parse.
func parseUTC[text string | []byte](s text) (int64, bool) {
	if len(s) != len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' || s[19] != 'Z' {
		return 0, false
	}
	var parts [6]int
	for i, r := range [6]struct{ from, to, least, most int }{{0, 4, 0, 9999}, {5, 7, 1, 12}, {8, 10, 1, 31}, {11, 13, 0, 23}, {14, 16, 0, 59}, {17, 19, 0, 59}} {
		for j := r.from; j < r.to; j++ {
			c := s[j]
			if c < '0' || c > '9' {
				return 0, false
			}
			parts[i] = 10*parts[i] + int(c-'0')
		}
		if parts[i] < r.least || parts[i] > r.most {
			return 0, false
		}
	}
	at := time.Date(parts[0], time.Month(parts[1]), parts[2], parts[3], parts[4], parts[5], 0, time.UTC)
	return at.Unix(), at.Day() == parts[2]
}
