package runtimesupervisor

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"unicode"
)

// maxLine is the maximum length in bytes of the last line.
const maxLine = 300

// lastLine passes on what is written to it, and keeps the end.
type lastLine struct {
	to  io.Writer
	end []byte
}

// Write implements io.Writer.
func (l *lastLine) Write(p []byte) (int, error) {
	l.end = append(l.end, p[max(0, len(p)-2*maxLine):]...)
	l.end = bytes.Clone(l.end[max(0, len(l.end)-2*maxLine):])
	return l.to.Write(p)
}

// logTime is the time with which a line of containerd's log begins.
var logTime = regexp.MustCompile(`^time="[^"]*" `)

// String returns the last line that is not empty, without its time and without control characters.
func (l *lastLine) String() string {
	text := bytes.TrimSpace(l.end)
	line := string(text[bytes.LastIndexByte(text, '\n')+1:])
	line = logTime.ReplaceAllString(line, "")
	line = strings.ToValidUTF8(line[max(0, len(line)-maxLine):], "")
	if line == "" {
		return "it printed nothing"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, line)
}
