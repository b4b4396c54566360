// Package redact removes secrets from installers' logs.
//
// An excerpt of a log becomes part of an object that many users may read. hotspare does not control
// what an installer prints, so the package removes everything that looks like a secret, even if
// some of it is not one.
package redact

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces a secret.
const Redacted = "REDACTED"

// shape is a pattern of secrets. If the pattern has a group, the group is kept.
type shape struct {
	pattern *regexp.Regexp
	// parts are texts of which every match contains at least one. A text is searched for them first: that
	// takes a fraction of the time of the pattern, and most lines of a log contain none.
	parts []string
}

var shapes = []shape{
	// PEM blocks of keys, also if cut off at either end of an excerpt.
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`), []string{"-----BEGIN "}},
	// name: value, name=value, "name":"value", where the name suggests a secret.
	{regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:password|passwd|secret|token|credential|pull-?secret|access_?key|"auth|key-data)[a-z0-9_.-]*\\?"?\s*[:=]\s*)` +
		`(?:\\?"(?:[^"\\]|\\[^"])*\\?"|[^\s,;}]+)`), []string{":", "="}},
	{regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[a-z0-9+/=._~-]{8,}`), []string{"b", "B"}},
	// The password in a URL.
	{regexp.MustCompile(`(://[^/\s:@]+:)[^/\s@]+`), []string{"://"}},
	// Passwords of kubeadmin, tokens of service accounts, access keys of AWS.
	{regexp.MustCompile(`\b[A-Za-z0-9]{5}-[A-Za-z0-9]{5}-[A-Za-z0-9]{5}-[A-Za-z0-9]{5}\b`), []string{"-"}},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?`), []string{"eyJ"}},
	{regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), []string{"AKIA", "ASIA"}},
}

// mayMatch returns false only if the pattern does not match text.
func (s shape) mayMatch(text string) bool {
	return slices.ContainsFunc(s.parts, func(part string) bool { return strings.Contains(text, part) })
}

// replaceMatches replaces the secrets of the pattern in text.
func (s shape) replaceMatches(text string) string {
	if s.pattern.NumSubexp() > 0 {
		return s.pattern.ReplaceAllString(text, "${1}"+Redacted)
	}
	return s.pattern.ReplaceAllString(text, Redacted)
}

// minSecret is the minimum length of a known secret to search for: a shorter one would also match
// parts of ordinary words.
const minSecret = 6

// Text returns text without the parts that look like secrets, and without the known secrets.
func Text(text string, known ...string) string {
	for _, secret := range known {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, Redacted)
		}
	}
	for _, s := range shapes {
		if s.mayMatch(text) {
			text = s.replaceMatches(text)
		}
	}
	return text
}

// maxTail bounds how many bytes of a log are read for its last lines.
const maxTail = 64 << 10

// ReadUnscrubbedTail returns the last lines of the file at path, unscrubbed: see Text.
func ReadUnscrubbedTail(path string, lines int) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading a log: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was opened for reading only
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("reading a log: %w", err)
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, max(0, end-maxTail), maxTail))
	if err != nil {
		return "", fmt.Errorf("reading a log: %w", err)
	}
	return string(lastLines(raw, lines)), nil
}

// lastLines returns the last n lines of raw.
func lastLines(raw []byte, n int) []byte {
	at := len(bytes.TrimRight(raw, "\n"))
	for range n {
		if at = bytes.LastIndexByte(raw[:max(at, 0)], '\n'); at < 0 {
			return raw
		}
	}
	return raw[at+1:]
}
