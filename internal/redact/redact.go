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
	"strings"
)

// Redacted replaces a secret.
const Redacted = "REDACTED"

// shapes are patterns of secrets. If a pattern has groups, the first one is kept.
var shapes = []*regexp.Regexp{
	// PEM blocks of keys, also if cut off at either end of an excerpt.
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	// name: value, name=value, "name":"value", where the name suggests a secret.
	regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:password|passwd|secret|token|credential|pull-?secret|access_?key|"auth|key-data)[a-z0-9_.-]*\\?"?\s*[:=]\s*)` +
		`(?:\\?"(?:[^"\\]|\\[^"])*\\?"|[^\s,;}]+)`),
	regexp.MustCompile(`(?i)((?:bearer|basic)\s+)[a-z0-9+/=._~-]{8,}`),
	// The password in a URL.
	regexp.MustCompile(`(://[^/\s:@]+:)[^/\s@]+`),
	// Passwords of kubeadmin, tokens of service accounts, access keys of AWS.
	regexp.MustCompile(`\b[A-Za-z0-9]{5}-[A-Za-z0-9]{5}-[A-Za-z0-9]{5}-[A-Za-z0-9]{5}\b`),
	regexp.MustCompile(`\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)?`),
	regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
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
	for _, shape := range shapes {
		replacement := Redacted
		if shape.NumSubexp() > 0 {
			replacement = "${1}" + Redacted
		}
		text = shape.ReplaceAllString(text, replacement)
	}
	return text
}

// maxTail bounds how many bytes of a log are read for its last lines.
const maxTail = 64 << 10

// ReadTail returns the last lines of the file at path, unscrubbed: see Text.
func ReadTail(path string, lines int) (string, error) {
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
