package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// defects is how many of Hive's faults are known. They are called B1, B2 and so on.
const defects = 35

var (
	parityRow = regexp.MustCompile(`^\| (B\d+) \|`)
	namedTest = regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)`")
)

// The tables of docs/hive-parity.md name tests: each of them exists, and each of
// Hive's faults has one that says so.
func TestEveryFaultOfHiveHasATest(t *testing.T) {
	tests := map[string]string{} // the text of a folder's tests
	named, next := 0, 1
	for _, l := range read(t, filepath.Join(top, "docs", "hive-parity.md")).prose {
		found := namedTest.FindAllStringSubmatch(l.text, -1)
		marked := ""
		for _, m := range found {
			folder, name := m[1], m[2]
			if _, ok := tests[folder]; !ok {
				tests[folder] = textOfTests(t, folder)
			}
			if !strings.Contains(tests[folder], "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("docs/hive-parity.md:%d: %s has no test %s", l.number, folder, name)
			}
			marked += tests[folder]
			named++
		}
		m := parityRow.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		if want := fmt.Sprintf("B%d", next); m[1] != want {
			t.Errorf("docs/hive-parity.md:%d: after B%d comes %s", l.number, next-1, m[1])
		}
		next++
		if !regexp.MustCompile(`\b(Test)?` + m[1] + `(\b|[A-Z])`).MatchString(marked) {
			t.Errorf("docs/hive-parity.md:%d: no test that is named for %s says that it is for it: write // %s there", l.number, m[1], m[1])
		}
	}
	if next != defects+1 || named < 2*defects {
		t.Errorf("found %d faults and %d tests, want %d faults", next-1, named, defects)
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
