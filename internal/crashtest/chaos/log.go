package chaos

import (
	"fmt"
	"strings"
)

// A Log keeps the last things that have happened in a history, for the message if something is wrong. Its zero value
// keeps nothing: set Keep.
type Log struct {
	// Keep is the number of things that String returns; twice as many are stored.
	Keep     int
	happened []fmt.Stringer
}

// Add adds something that has happened. Its text is computed only if it is needed.
func (l *Log) Add(s fmt.Stringer) {
	l.happened = append(l.happened, s)
	if len(l.happened) >= 2*l.Keep {
		l.happened = append(l.happened[:0], l.happened[len(l.happened)-l.Keep:]...)
	}
}

// Addf adds a text.
func (l *Log) Addf(format string, args ...any) { l.Add(formatted{format, args}) }

// String returns the last things that have happened, a line each.
func (l *Log) String() string {
	var b strings.Builder
	for _, s := range l.happened[max(0, len(l.happened)-l.Keep):] {
		b.WriteString(s.String() + "\n")
	}
	return b.String()
}

type formatted struct {
	format string
	args   []any
}

func (f formatted) String() string { return fmt.Sprintf(f.format, f.args...) }
