package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// advisory is a vulnerability that people know of.
type advisory struct {
	id, module, fixed, source string
}

type advisories []advisory

// readAdvisories reads lines "MODULE FIXED ID SOURCE DATE": the version that fixed it,
// where it is published, and when somebody last looked there.
func readAdvisories(path string) (advisories, error) {
	var out advisories
	err := lines(path, func(words []string) error {
		if len(words) != 5 {
			return errors.New("write MODULE FIXED ID SOURCE DATE")
		}
		if !semver.IsValid(words[1]) {
			return fmt.Errorf("%q is not a version", words[1])
		}
		if !strings.HasPrefix(words[3], "https://") {
			return fmt.Errorf("%q is not the address of a page", words[3])
		}
		if _, err := time.Parse(time.DateOnly, words[4]); err != nil {
			return fmt.Errorf("%q is not a date, such as 2026-01-31", words[4])
		}
		out = append(out, advisory{module: words[0], fixed: words[1], id: words[2], source: words[3]})
		return nil
	})
	return out, err
}

// judge names the vulnerabilities that a module has.
func (known advisories) judge(m *module) (wrong []string) {
	version := m.Version
	if m.Replace != nil {
		version = m.Replace.Version
	}
	for _, a := range known {
		if a.module == m.Path && semver.Compare(version, a.fixed) < 0 {
			wrong = append(wrong, fmt.Sprintf("%s %s has %s: take %s or newer (%s)", m.Path, version, a.id, a.fixed, a.source))
		}
	}
	return wrong
}

// lines hands the words of each line of a file to read. Empty ones, and what follows a #,
// are left out.
func lines(path string, read func(words []string) error) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := read(words); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return nil
}
