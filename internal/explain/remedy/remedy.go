// Package remedy says what a person can do about something, and spells the commands for
// it. The command line and the console give the same advice; each says by a Speller which
// flags its reader needs. It is pure.
package remedy

import (
	"fmt"
	"regexp"
	"strings"
)

// Remedy is what a person can do about something, with the command for it if there is one.
type Remedy struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
	// Wait is set when nothing has to be done; the text says what will happen.
	Wait bool `json:"wait,omitempty"`
}

// New is something that a person can do.
func New(text, command string) *Remedy { return &Remedy{Text: text, Command: command} }

// NewWait is what needs no more than time.
func NewWait(text string) *Remedy { return &Remedy{Text: text, Wait: true} }

// CommandFormatter writes a command to type about things of a namespace, from a format without
// the program's name: "claim release %s". An empty namespace is for things that have none.
type CommandFormatter func(namespace, format string, args ...any) string

// FormatPlainCommand spells commands for somebody of whom no flags are known.
func FormatPlainCommand(namespace, format string, args ...any) string {
	return FormatCommand([]Flag{{"-n", namespace}}, fmt.Sprintf(format, args...))
}

// Flag is a flag of hotspare with its value; one without a value is left out.
type Flag struct{ Name, Value string }

// plainWord matches what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// QuoteForShell returns a word as a POSIX shell reads it: in quotes if it needs them.
func QuoteForShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// FormatCommand puts the program's name and flags to a command. Those for kubectl stand before
// it: what follows it kubectl takes as its own.
func FormatCommand(flags []Flag, command string) string {
	words := []string{"hotspare"}
	for _, f := range flags {
		if f.Value != "" {
			words = append(words, f.Name, QuoteForShell(f.Value))
		}
	}
	at := len(words)
	if !strings.HasPrefix(command, "kubectl ") {
		at = 1
	}
	return strings.Join(append(words[:at:at], append([]string{command}, words[at:]...)...), " ")
}
