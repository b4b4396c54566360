package trust

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into docs/operate/trust.md")

const (
	doc   = "../../docs/operate/trust.md"
	begin = "<!-- The tables are written by make generate. -->\n"
)

// Each field that hotspare begins to act on needs a row: who may write it, and why that is safe.
func TestEveryFieldThatIsActedOnHasARow(t *testing.T) {
	reads, err := ListReads("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(reads) < 200 {
		t.Fatalf("only %d fields are read: the search is broken", len(reads))
	}
	for _, name := range reads {
		if findMatchingRow(name) == nil && !strings.HasSuffix(name, "List.Items") {
			t.Errorf("%s is read by what acts with hotspare's rights, and no row of table.go says who may write it", name)
		}
	}
	for _, s := range table {
		for _, r := range s.rows {
			for _, p := range r.reads {
				if !slices.ContainsFunc(reads, func(name string) bool { return matchesPattern(p, name) && findMatchingRow(name) != nil }) {
					t.Errorf("%s: pattern %s of %q matches nothing that is read: remove it", s.title, p, r.what)
				}
			}
		}
	}
}

func TestThePageOfTrustIsCurrent(t *testing.T) {
	raw, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, found := strings.Cut(string(raw), begin)
	if !found {
		t.Fatalf("%s has lost the line %q", doc, strings.TrimSpace(begin))
	}
	want := intro + begin + renderTable()
	if *update {
		if err := os.WriteFile(doc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(raw) != want {
		t.Errorf("%s is stale: run 'make generate'", doc)
	}
}

// Every policy that the table relies on exists.
func TestThePoliciesOfTheTableExist(t *testing.T) {
	var manifests strings.Builder
	entries, err := os.ReadDir("../../config/admission")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile("../../config/admission/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		manifests.Write(raw)
	}
	named := 0
	for _, s := range table {
		for _, r := range s.rows {
			for _, part := range strings.Split(r.why, "olicy `")[1:] {
				name, _, _ := strings.Cut(part, "`")
				named++
				if !strings.Contains(manifests.String(), "\n  name: "+name+".hotspare.io\n") {
					t.Errorf("%s: %q relies on policy %s, which config/admission does not have", s.title, r.what, name)
				}
			}
		}
	}
	if named < 5 {
		t.Errorf("the table names %d policies: the search is broken", named)
	}
}
