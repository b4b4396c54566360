package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General
Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any
later version. This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even
the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for
more details. You should have received a copy of the GNU General Public License along with this program. If not, see
<https://www.gnu.org/licenses/>.
`
)

// linked is a module with these files, of which folder sub is linked.
func linked(t *testing.T, files map[string]string) *module {
	t.Helper()
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text)
	}
	return &module{Path: "example.com/m", Version: "v1.2.3", Dir: dir, folders: map[string]bool{sub: true}}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLicencesAreThoseOfTheList(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		read  string
		want  string // in what is wrong; "" for nothing
	}{
		"one that is allowed":               {files: map[string]string{"LICENSE": mit}},
		"under another name":                {files: map[string]string{"COPYING.md": mit}},
		"one that is not":                   {files: map[string]string{"LICENSE": gpl}, want: "is under GPL-3.0"},
		"one more, of what is linked":       {files: map[string]string{"LICENSE": mit, "sub/LICENSE.txt": gpl}, want: "is under GPL-3.0"},
		"one more, of what is not":          {files: map[string]string{"LICENSE": mit, "other/LICENSE": gpl}},
		"none":                              {files: map[string]string{"README.md": mit}, want: "has no licence"},
		"a program of that name":            {files: map[string]string{"license.go": mit}, want: "has no licence"},
		"a text that is none":               {files: map[string]string{"LICENSE": "All rights reserved, and whatever else there is to be said."}, want: "not a known license"},
		"one that a person has read":        {files: map[string]string{"LICENSE": "Do as you like."}, read: "MIT"},
		"one that a person should not have": {files: map[string]string{"LICENSE": "Do as we like."}, read: "GPL-3.0", want: "is under GPL-3.0"},
	} {
		t.Run(name, func(t *testing.T) {
			l := licences{allowed: map[string]bool{"MIT": true}, read: map[string]string{}}
			if c.read != "" {
				l.read["example.com/m"] = c.read
			}
			_, wrong := l.judge(linked(t, c.files))
			expect(t, wrong, c.want)
		})
	}
}

func expect(t *testing.T, wrong []string, want string) {
	t.Helper()
	got := strings.Join(wrong, "\n")
	if (want == "") != (got == "") || !strings.Contains(got, want) {
		t.Errorf("it complains %q, want %q", got, want)
	}
}

func TestAReaderOfWhatIsNotLinkedIsToldSo(t *testing.T) {
	l := licences{read: map[string]string{"example.com/m": "MIT", "example.com/gone": "MIT"}}
	expect(t, l.idle([]*module{{Path: "example.com/m"}}), "example.com/gone, which is not linked")
}

func TestVersionsAreNotOlderThanWhatFixedThem(t *testing.T) {
	known := advisories{{id: "CVE-1", module: "example.com/m", fixed: "v1.2.3", source: "https://example.com"}}
	for version, want := range map[string]string{
		"v1.2.2":                               "has CVE-1: take v1.2.3 or newer",
		"v1.2.3-0.20260101000000-abcdefabcdef": "has CVE-1",
		"v1.2.3":                               "",
		"v1.10.0":                              "",
	} {
		expect(t, known.judge(&module{Path: "example.com/m", Version: version}), want)
		expect(t, known.judge(&module{Path: "example.com/m", Version: "v9.0.0", Replace: &module{Path: "example.com/m", Version: version}}), want)
		expect(t, known.judge(&module{Path: "example.com/other", Version: version}), "")
	}
}

func TestNothingTakesThePlaceOfAModule(t *testing.T) {
	for name, c := range map[string]struct {
		by   *module
		want string
	}{
		"nothing":         {},
		"its own version": {by: &module{Path: "example.com/m", Version: "v1.0.0"}},
		"a fork":          {by: &module{Path: "example.com/fork", Version: "v1.0.0"}, want: "the fork example.com/fork"},
		"a folder":        {by: &module{Path: "../m"}, want: "the folder ../m"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, disguised(&module{Path: "example.com/m", Replace: c.by}), c.want)
		})
	}
}

func TestListsThatAreWrongAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.txt")
	for text, want := range map[string]string{
		"allow":              "write allow LICENCE",
		"read example.com/m": "or read MODULE LICENCE WHY",
		"forbid GPL":         "write allow LICENCE",
	} {
		write(t, path, "# a comment\n"+text+"\n")
		if _, err := readLicences(path); err == nil || !strings.Contains(err.Error(), ":2: "+want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"m v1.0.0 CVE-1 https://x":                  "write MODULE FIXED",
		"m 1.0 CVE-1 https://x 2026-01-01":          `"1.0" is not a version`,
		"m v1.0.0 CVE-1 somebody 2026-01-01":        "not the address",
		"m v1.0.0 CVE-1 https://x yesterday":        "not a date",
		"m v1.0.0 CVE-1 https://x 2026-01-01 # why": "",
	} {
		write(t, path, text+"\n")
		_, err := readAdvisories(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The lists that count can be read, and Go's list of linked packages, too.
func TestWhatHotspareLinksIsGathered(t *testing.T) {
	if _, err := readLicences("licences.txt"); err != nil {
		t.Error(err)
	}
	if known, err := readAdvisories("advisories.txt"); err != nil || len(known) < 10 {
		t.Errorf("%d advisories, %v", len(known), err)
	}
	found := map[string]*module{}
	said := `{"Dir":"/std"} {"Dir":"/m/a","Module":{"Path":"m","Version":"v1.0.0","Dir":"/m"}} {"Dir":"/m/b","Module":{"Path":"m","Version":"v1.0.0","Dir":"/m"}} {"Dir":"/us","Module":{"Path":"us","Main":true}}`
	if err := gather(strings.NewReader(said), found); err != nil || len(found) != 1 || len(found["m"].folders) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
}
