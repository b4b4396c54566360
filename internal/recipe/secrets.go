package recipe

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/redact"
)

const (
	// minSecret is the minimum size of a value that is searched for, in bytes: a shorter one would also
	// match parts of ordinary words.
	minSecret = 6
	// maxSecretPart is the maximum size of one value that is searched for. A longer value is searched
	// for in parts.
	maxSecretPart = 8 << 10
	// maxSecrets is the maximum size of all files of a Secrets folder, in bytes: that of a Secret.
	maxSecrets = 1 << 20
)

// Scrubber removes the values of credentials, and everything that looks like a secret, from texts. The
// zero value cannot be used: see NewScrubber.
type Scrubber struct {
	replacer *strings.Replacer
	// longest is the size of the longest value, in bytes.
	longest int
}

// readSecrets returns a Scrubber for the files below dir, an empty dir having none. Kubernetes mounts
// a Secret as symbolic links, which readSecrets follows to files, but not to folders.
func readSecrets(dir string) (*Scrubber, error) {
	if dir == "" {
		return NewScrubber(nil), nil
	}
	contents := map[string][]byte{}
	size := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if size += int(info.Size()); size > maxSecrets {
			return fmt.Errorf("the files are larger than %d bytes: keep only credentials in this folder", maxSecrets)
		}
		raw, err := os.ReadFile(path)
		contents[path] = raw
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the secrets in %s: %w", dir, err)
	}
	return NewScrubber(contents), nil
}

// NewScrubber returns a Scrubber for the contents of files with credentials. It removes each file as a
// whole, also in base64, its lines, and the values in YAML, JSON and lines such as NAME=VALUE.
func NewScrubber(files map[string][]byte) *Scrubber {
	values := map[string]bool{}
	for _, raw := range files {
		addLines(values, string(raw))
		values[base64.StdEncoding.EncodeToString(raw)] = true
		values[base64.StdEncoding.EncodeToString(bytes.TrimSpace(raw))] = true
		var document any
		if yaml.Unmarshal(raw, &document) == nil {
			addLeaves(values, document)
		}
	}
	s := &Scrubber{}
	// The longest value first: the replacer prefers earlier pairs.
	var pairs []string
	for _, v := range slices.SortedFunc(maps.Keys(values), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }) {
		for part := range slices.Chunk([]byte(v), maxSecretPart) {
			if len(part) >= minSecret {
				pairs = append(pairs, string(part), redact.Redacted)
				s.longest = max(s.longest, len(part))
			}
		}
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// addLines adds each line, and what follows the first "=" or ":" in it.
func addLines(values map[string]bool, content string) {
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		values[line] = true
		if at := strings.IndexAny(line, "=:"); at >= 0 {
			values[strings.Trim(line[at+1:], " \t\"',")] = true
		}
	}
}

// addLeaves adds the strings in a document.
func addLeaves(values map[string]bool, document any) {
	switch d := document.(type) {
	case string:
		addLines(values, d)
	case []any:
		for _, item := range d {
			addLeaves(values, item)
		}
	case map[string]any:
		for _, item := range d {
			addLeaves(values, item)
		}
	}
}

// Scrub returns text without the values and without everything that looks like a secret.
func (s *Scrubber) Scrub(text string) string { return redact.Text(s.replacer.Replace(text)) }

// FindsSecret reports whether text contains one of the values.
func (s *Scrubber) FindsSecret(text string) bool { return s.replacer.Replace(text) != text }

// WriteSecrets writes credentials, by name, into a new folder below parent with mode 0700, as files with
// mode 0600, and returns the folder. Without credentials it creates no folder, and returns "". The
// caller deletes the folder when the program has ended.
func WriteSecrets(parent string, files map[string][]byte) (dir string, err error) {
	if len(files) == 0 {
		return "", nil
	}
	for name := range files {
		if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." {
			return "", fmt.Errorf("key %q of the Secret cannot be the name of a file: rename it", name)
		}
	}
	if dir, err = os.MkdirTemp(parent, ""); err != nil {
		return "", err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	return dir, nil
}
