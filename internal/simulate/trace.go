package simulate

import (
	"bufio"
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

// A Trace is the arrivals that a simulation plays, oldest first.
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
	maxLine      = 64 << 10
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
	outOfOrder, offsets, heldN int
}

// ReadTrace reads a CSV file with a header: column created has the time of each claim, and the
// optional column held_seconds how long it kept its cluster. Lines that begin with # are comments.
// Claims that are out of order are sorted; claims at the same second stay.
func ReadTrace(file string, r io.Reader) (Trace, error) {
	t := traceReader{file: file, held: -1}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, maxLine), maxLine)
	for in.Scan() {
		t.line++
		if err := t.readLine(strings.TrimSuffix(in.Text(), "\r")); err != nil {
			return Trace{}, err
		}
	}
	if err := in.Err(); err != nil {
		return Trace{}, fmt.Errorf("reading %s after line %d: %w", file, t.line, err)
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
	c := Claim{Arrived: at}
	if held != "" {
		seconds, err := strconv.ParseFloat(held, 64)
		if err != nil || !(seconds >= 0 && seconds <= math.MaxInt32) { // NaN is neither
			return t.newLineError(heldField, held, "is not a number of seconds", "write a number from 0 to 2147483647, or nothing if it is unknown")
		}
		c.Held = int64(math.Ceil(seconds))
		t.heldN++
	}
	if n := len(t.claims); n > 0 && at < t.claims[n-1].Arrived {
		t.outOfOrder++
	}
	t.claims = append(t.claims, c)
	return nil
}

func (t *traceReader) readHeader(line string) error {
	names := strings.Split(line, ",")
	t.header, t.created = true, slices.Index(names, createdField)
	t.held = slices.Index(names, heldField)
	if t.created < 0 {
		return t.newLineError("header", line, "has no column created", "begin the file with the line: created,held_seconds")
	}
	return nil
}

// splitLine returns the two columns that matter, without a copy.
func (t *traceReader) splitLine(line string) (created, held string, err error) {
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
		return "", "", t.newLineError(createdField, line, "is missing", "write as many columns as the header has")
	}
	return created, held, nil
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
			if a.Arrived != b.Arrived {
				return int(max(-1, min(1, a.Arrived-b.Arrived)))
			}
			return int(max(-1, min(1, a.Held-b.Held)))
		})
		out.addNote("%d lines were out of order: the claims were sorted", t.outOfOrder)
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

// parseUTC reads the usual form, 2026-03-01T12:00:00Z, without the cost of time.Parse: traces may
// have ten million lines.
func parseUTC(s string) (int64, bool) {
	if len(s) != len("2006-01-02T15:04:05Z") || string([]byte{s[4], s[7], s[10], s[13], s[16], s[19]}) != "--T::Z" {
		return 0, false
	}
	var parts [6]int
	for i, r := range [6]struct{ from, to, least, most int }{{0, 4, 0, 9999}, {5, 7, 1, 12}, {8, 10, 1, 31}, {11, 13, 0, 23}, {14, 16, 0, 59}, {17, 19, 0, 59}} {
		for _, c := range []byte(s[r.from:r.to]) {
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
