package docs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// faults is how many of Hive's faults are known, by the letter of their codes: B1
// and so on in its pools, D1 and so on in its power controller.
var faults = map[string]int{"B": 35, "D": 20}

var (
	parityRow = regexp.MustCompile(`^\| ([A-Z])(\d+) \|`)
	namedTest = regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)`")
)

// The tables of docs/hive-parity.md name tests: each of them exists, and each of
// Hive's faults has one that says so.
func TestEveryFaultOfHiveHasATest(t *testing.T) {
	tests := map[string]string{} // the text of a folder's tests
	named, last := 0, map[string]int{}
	for _, l := range read(t, filepath.Join(top, "docs", "hive-parity.md")).Prose {
		marked := ""
		for _, m := range namedTest.FindAllStringSubmatch(l.Text, -1) {
			folder, name := m[1], m[2]
			if _, ok := tests[folder]; !ok {
				tests[folder] = textOfTests(t, folder)
			}
			if !strings.Contains(tests[folder], "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("docs/hive-parity.md:%d: %s has no test %s", l.Number, folder, name)
			}
			marked += tests[folder]
			named++
		}
		m := parityRow.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		letter, code := m[1], m[1]+m[2]
		last[letter]++
		if want := fmt.Sprint(letter, last[letter]); code != want {
			t.Errorf("docs/hive-parity.md:%d: %s where %s is due", l.Number, code, want)
		}
		if !regexp.MustCompile(`\b(Test)?` + code + `(\b|[A-Z])`).MatchString(marked) {
			t.Errorf("docs/hive-parity.md:%d: no test that is named for %s says that it is for it: write // %s there", l.Number, code, code)
		}
	}
	if !maps.Equal(last, faults) || named < 2*(faults["B"]+faults["D"]) {
		t.Errorf("found %v faults and %d tests, want %v faults", last, named, faults)
	}
}

// textOfTests is all that stands in the tests of a folder.
func textOfTests(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top, filepath.FromSlash(folder), "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Errorf("there are no tests in %s: %v", folder, err)
	}
	var out strings.Builder
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("\n" + string(raw))
	}
	return out.String()
}
