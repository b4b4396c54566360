package cloudtest

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/platforms/README.md anew")

const platformsPage = "../../../docs/platforms/README.md"

func TestThePageOfPlatformsIsThatOfTheirTests(t *testing.T) {
	got := page(platforms(t))
	if *update {
		if err := os.WriteFile(platformsPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(platformsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/platforms/README.md is stale: run make generate\n%s", diff)
	}
}

func TestWhatCasesNeedMayBeMissing(t *testing.T) {
	for _, c := range cases {
		if missing := (Cloud{}).missingFeature(c.needs) != ""; missing != (c.needs != "") {
			t.Errorf("%q needs %q, which lacks does not know", c.name, c.needs)
		}
	}
}

// platform is what the tests of one platform say about it.
type platform struct {
	name, against string
	// has contains the names of the Cloud fields that are set.
	has []string
	// depths are the depths other than stop in the field Depths.
	depths []string
}

// platforms parses the tests of all sibling packages that create a Cloud.
func platforms(t *testing.T) []platform {
	t.Helper()
	files, err := filepath.Glob("../*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var all []platform
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		if name == "cloudtest" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p := platform{name: name}
		ast.Inspect(parsed, p.note)
		if len(p.has) == 0 {
			continue
		}
		if n := len(all); n > 0 && all[n-1].name == name {
			all[n-1].has = append(all[n-1].has, p.has...)
			all[n-1].against = cmp.Or(all[n-1].against, p.against)
			if len(all[n-1].depths) == 0 {
				all[n-1].depths = p.depths
			}
			continue
		}
		all = append(all, p)
	}
	for _, p := range all {
		if p.against == "" {
			t.Errorf("the Cloud of %s does not say in Against, by a literal, what the suite runs against", p.name)
		}
	}
	return all
}

// note records the fields of Cloud and Faults literals.
func (p *platform) note(n ast.Node) bool {
	literal, ok := n.(*ast.CompositeLit)
	if !ok {
		return true
	}
	kind, ok := literal.Type.(*ast.SelectorExpr)
	if !ok || kind.Sel.Name != "Cloud" && kind.Sel.Name != "Faults" {
		return true
	}
	if from, ok := kind.X.(*ast.Ident); !ok || from.Name != "cloudtest" {
		return true
	}
	for _, e := range literal.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name := field.Key.(*ast.Ident).Name
		p.has = append(p.has, name)
		if text, ok := field.Value.(*ast.BasicLit); ok && name == "Against" {
			p.against, _ = strconv.Unquote(text.Value) // the parser has already validated the quotes
		}
		if list, ok := field.Value.(*ast.CompositeLit); ok && name == "Depths" {
			p.noteDepths(list)
		}
	}
	return true
}

// noteDepths records the depths in a list of the constants of package cloud: cloud.DepthSuspend.
func (p *platform) noteDepths(list *ast.CompositeLit) {
	p.depths = nil
	for _, e := range list.Elts {
		if constant, ok := e.(*ast.SelectorExpr); ok {
			p.depths = append(p.depths, strings.ToLower(strings.TrimPrefix(constant.Sel.Name, "Depth")))
		}
	}
}

const pageHead = `# Platforms

One suite of tests defines what every platform must do: ` + "`internal/cloud/cloudtest`" + `.
Each platform runs it against a simulated cloud. ✓ is a case that passes; – is a case that
is skipped because the platform, or its simulator, does not have it.

The deeper a cluster sleeps, the less it costs and the longer it takes to wake: at depth freeze, machines keep
their memory in memory, at depth suspend on disk, and at depth stop they lose it. If a platform or a machine does not
support a depth, hotspare uses the next deeper one.

For clusters of [Cluster API](../capi.md), hotspare uses the code of aws, azure, gcp, openstack and vsphere; tests of its own cover
the rest. Clusters of ibmcloud, nutanix and none [cannot hibernate](../install.md).

Do not edit this page: ` + "`make generate`" + ` writes it from the tests, and a test fails when the
page differs.

`

func page(all []platform) string {
	var b strings.Builder
	b.WriteString(pageHead)
	b.WriteString("| platform | clusters sleep at depth | tested against |\n|---|---|---|\n")
	for _, p := range all {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", p.name, p.name, strings.Join(append(p.depths, "stop"), ", "), p.against)
	}
	b.WriteString("\n| case |")
	for _, p := range all {
		fmt.Fprintf(&b, " %s |", p.name)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(all)))
	for _, c := range cases {
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, p := range all {
			mark := "✓"
			if c.needs != "" && !slices.Contains(p.has, c.needs) {
				mark = "–"
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}
