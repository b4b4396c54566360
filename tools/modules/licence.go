package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// licences are those that are allowed, and what people have found out about texts that
// no program recognises.
type licences struct {
	allowed map[string]bool
	// read are the licences of modules, as a person has read them.
	read map[string]string
}

// readLicences reads lines "allow LICENCE" and "read MODULE LICENCE why".
func readLicences(path string) (licences, error) {
	l := licences{allowed: map[string]bool{}, read: map[string]string{}}
	err := lines(path, func(words []string) error {
		switch {
		case words[0] == "allow" && len(words) == 2:
			l.allowed[words[1]] = true
		case words[0] == "read" && len(words) > 3:
			l.read[words[1]] = words[2]
		default:
			return errors.New("write allow LICENCE, or read MODULE LICENCE WHY")
		}
		return nil
	})
	return l, err
}

// file is what files with licences are called.
var file = regexp.MustCompile(`(?i)^(licen[sc]e|copying|unlicense)([-._].*)?$`)

// enough is how much of a text must be a licence that is known, in percent. The rest are
// names and years.
const enough = 75

// judge says under which licences the linked packages of a module are, by their SPDX
// names, and what is wrong with that.
func (l licences) judge(m *module) (under, wrong []string) {
	if m.Path == "std" { // Go's licence is known, and not in a module
		return []string{"BSD-3-Clause"}, nil
	}
	if one, ok := l.read[m.Path]; ok {
		return []string{one}, l.refuse(m, "", one)
	}
	found := map[string]bool{}
	for _, path := range m.texts() {
		raw, err := os.ReadFile(path)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", m.Path, err))
			continue
		}
		cover := licensecheck.Scan(raw)
		if cover.Percent < enough {
			wrong = append(wrong, fmt.Sprintf("%s %s: %s is not a known license (%.0f%%): read it, and add a line to licences.txt", m.Path, m.Version, path, cover.Percent))
		}
		for _, match := range cover.Match {
			found[match.ID] = true
			wrong = append(wrong, l.refuse(m, path, match.ID)...)
		}
	}
	if len(found) == 0 && len(wrong) == 0 {
		wrong = append(wrong, fmt.Sprintf("%s %s has no licence in %s", m.Path, m.Version, m.Dir))
	}
	return slices.Sorted(maps.Keys(found)), wrong
}

func (l licences) refuse(m *module, path, id string) []string {
	if l.allowed[id] {
		return nil
	}
	return []string{fmt.Sprintf("%s %s is under %s, which is not allowed %s: do without it", m.Path, m.Version, id, path)}
}

// texts are the files with licences of the folders of linked packages, and of those above
// them up to the module's own.
func (m *module) texts() []string {
	seen, out := map[string]bool{}, []string{}
	for folder := range m.folders {
		for ; strings.HasPrefix(folder, m.Dir) && !seen[folder]; folder = filepath.Dir(folder) {
			seen[folder] = true
			entries, err := os.ReadDir(folder)
			if err != nil {
				continue // without a licence it is complained of
			}
			for _, e := range entries {
				if !e.IsDir() && file.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
					out = append(out, filepath.Join(folder, e.Name()))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// idle complains of modules that were read, and are not linked any more.
func (l licences) idle(linked []*module) (wrong []string) {
	for _, path := range slices.Sorted(maps.Keys(l.read)) {
		if !slices.ContainsFunc(linked, func(m *module) bool { return m.Path == path }) {
			wrong = append(wrong, fmt.Sprintf("licences.txt names %s, which is not linked: remove it", path))
		}
	}
	return wrong
}
