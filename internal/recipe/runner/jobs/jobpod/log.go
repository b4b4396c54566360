package jobpod

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

// logTail writes a log to out, and keeps its end.
type logTail struct {
	out io.Writer

	mu   sync.Mutex
	tail []byte
}

// Write never fails: a program does not depend on its log.
func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(p) // see above
	l.tail = append(l.tail, p...)
	if len(l.tail) > 2*jobstate.MaxLog {
		l.tail = append([]byte(nil), l.tail[len(l.tail)-jobstate.MaxLog:]...)
	}
	return len(p), nil
}

// text returns the end of the log, in whole lines.
func (l *logTail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	tail := l.tail
	if len(tail) > jobstate.MaxLog {
		tail = tail[len(tail)-jobstate.MaxLog:]
		if next := bytes.IndexByte(tail, '\n'); next >= 0 {
			tail = tail[next+1:]
		}
	}
	return strings.ToValidUTF8(string(tail), "")
}
