package recipe

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"

	"hotspare.io/hotspare/internal/redact"
)

// boundedBuffer keeps the first limit bytes and discards the rest, so that the output of a program
// cannot exhaust the memory of this process.
type boundedBuffer struct {
	limit    int
	mu       sync.Mutex
	buffer   bytes.Buffer
	overflow bool
}

// Write never fails, because a program whose output cannot be written receives SIGPIPE.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.limit - b.buffer.Len()
	if len(p) > room {
		b.overflow = true
		b.buffer.Write(p[:room])
	} else {
		b.buffer.Write(p)
	}
	return len(p), nil
}

// copyBytes returns the kept bytes.
func (b *boundedBuffer) copyBytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buffer.Bytes())
}

const (
	// maxLogHead and maxLogTail are the maximum sizes of the two parts of a run's log, in bytes.
	maxLogHead = 512 << 10
	maxLogTail = 512 << 10
	// maxLogLine is the maximum size of one line of the log, in bytes.
	maxLogLine = 16 << 10
)

// logWriter writes the standard error of a run to a log, line by line and without secrets: the first
// maxLogHead bytes immediately, and the last maxLogTail bytes upon flush.
type logWriter struct {
	mu      sync.Mutex
	out     io.Writer
	secrets *Scrubber
	// heading is written before the first line; empty afterward.
	heading string
	// line is the current line. It is longer than maxLogLine by the longest secret, so that a secret at
	// the end of what is written is found.
	line []byte
	// inKey is true between the first and the last line of a private key.
	inKey bool
	head  int
	tail  []byte
	// omitted is the number of bytes between head and tail.
	omitted int64
	// last is the last line that is not blank.
	last []byte
	// pending are lines that Write and flush write to out together: a program may print a million lines.
	pending bytes.Buffer
}

// newLogWriter returns a logWriter that writes heading before the first line; a nil out discards all.
func newLogWriter(out io.Writer, heading string, s *Scrubber) *logWriter {
	if out == nil {
		out = io.Discard
	}
	return &logWriter{out: out, secrets: s, heading: heading}
}

// Write never fails: an incomplete log must not end the program.
func (w *logWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		end := findLineEnd(rest)
		if end < 0 {
			w.extendLine(rest)
			break
		}
		w.extendLine(rest[:end])
		w.endLine()
		rest = rest[end+1:]
	}
	w.writePending()
	return len(p), nil
}

// findLineEnd returns the index of the first newline or carriage return, which progress bars print; -1 if
// there is none. It is faster than bytes.IndexAny on long lines.
func findLineEnd(text []byte) int {
	newline := bytes.IndexByte(text, '\n')
	if newline >= 0 {
		text = text[:newline]
	}
	if carriageReturn := bytes.IndexByte(text, '\r'); carriageReturn >= 0 {
		return carriageReturn
	}
	return newline
}

func (w *logWriter) extendLine(part []byte) {
	room := maxLogLine + 1 + w.secrets.longest - len(w.line)
	w.line = append(w.line, part[:min(len(part), room)]...)
}

// endLine adds the current line to the head or to the tail.
func (w *logWriter) endLine() {
	line, show := w.omitPrivateKey(w.line)
	if show && len(bytes.TrimSpace(line)) > 0 {
		w.last = append(w.last[:0], line...)
	}
	switch {
	case !show:
	case w.head+len(line) < maxLogHead && len(w.tail) == 0:
		w.head += len(line) + 1
		w.writeLine(line)
	default:
		w.tail = append(append(w.tail, line...), '\n')
		if len(w.tail) > 2*maxLogTail {
			w.shortenTail()
		}
	}
	w.line = w.line[:0]
}

// shortenTail removes the first lines of the tail.
func (w *logWriter) shortenTail() {
	from := len(w.tail) - maxLogTail
	if from <= 0 {
		return
	}
	if next := bytes.IndexByte(w.tail[from:], '\n'); next >= 0 {
		from += next + 1
	}
	w.omitted += int64(from)
	w.tail = append([]byte(nil), w.tail[from:]...)
}

// flush writes the last line and the tail.
func (w *logWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.line) > 0 {
		w.endLine()
	}
	w.shortenTail()
	if w.omitted > 0 {
		fmt.Fprintf(&w.pending, "[hotspare omitted %d bytes of the log]\n", w.omitted)
	}
	for line := range bytes.Lines(w.tail) {
		w.writeLine(bytes.TrimSuffix(line, []byte("\n")))
	}
	w.writePending()
	w.tail, w.omitted = nil, 0
}

// writePending writes the pending lines.
func (w *logWriter) writePending() {
	_, _ = w.pending.WriteTo(w.out) // a program does not depend on its log
	w.pending.Reset()
}

// writeLine adds a line without secrets to the pending ones.
func (w *logWriter) writeLine(line []byte) {
	text := w.secrets.Scrub(string(line))
	if len(line) > maxLogLine {
		text = shortenText(text, maxLogLine)
	}
	if w.heading != "" {
		text, w.heading = w.heading+"\n"+text, ""
	}
	w.pending.WriteString(text + "\n")
}

// maxLastLine is the maximum size of the last line of a log in an error, in bytes.
const maxLastLine = 300

// lastLine returns the last line that is not blank, for an error: without secrets and shortened.
func (w *logWriter) lastLine() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return shortenText(strings.TrimSpace(w.secrets.Scrub(string(w.last))), maxLastLine)
}

var (
	keyBegin = []byte("-----BEGIN")
	keyEnd   = []byte("-----END")
	keyLabel = []byte("PRIVATE KEY-----")
)

// omitPrivateKey omits the lines of a private key. Package redact cannot do that here, because it
// receives one line at a time.
func (w *logWriter) omitPrivateKey(line []byte) ([]byte, bool) {
	label := bytes.Contains(line, keyLabel)
	begins, ends := label && bytes.Contains(line, keyBegin), label && bytes.Contains(line, keyEnd)
	switch {
	case begins && !ends:
		w.inKey = true
		return []byte(redact.Redacted), true
	case w.inKey:
		w.inKey = !ends
		return nil, false
	}
	return line, true
}
