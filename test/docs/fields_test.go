package docs

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/config"
)

var update = flag.Bool("update", false, "write the generated parts of pages anew")

// allFields is the heading of the part of a kind's page that is made from the API.
const allFields = "## All fields"

// The last part of a kind's page lists its fields, as the API has them.
func TestTheFieldsOfKindPagesAreThoseOfTheAPI(t *testing.T) {
	for name, c := range definitions(t) {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(top, "docs", "kinds", name+".md")
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("kind %s has no page: %v", c.Spec.Names.Kind, err)
			}
			own, is, _ := strings.Cut(string(raw), "\n"+allFields+"\n")
			want := fields(c)
			if *update {
				if err := os.WriteFile(file, []byte(strings.TrimRight(own, "\n")+"\n\n"+allFields+"\n"+want), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("docs/kinds/%s.md is not up to date; make generate writes it anew (-want +got):\n%s", name, diff)
			}
		})
	}
}

// definitions are those of all our kinds, by the names of their pages.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := fs.Glob(config.Manifests, "crd/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d definitions, %v", len(files), err)
	}
	out := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, name := range files {
		raw, err := fs.ReadFile(config.Manifests, path.Clean(name))
		if err != nil {
			t.Fatal(err)
		}
		var c apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[c.Spec.Names.Singular] = c
	}
	return out
}

// fields is the list of a kind's fields as its page has it.
func fields(c apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	b.WriteString("\n`make generate` writes this table from the API. `[]` stands for each item of a list, `*` for each key of a map.\n" +
		"\n| field | type | what the API says |\n|---|---|---|\n")
	schema := c.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, section := range []string{"spec", "status"} {
		if s, ok := schema.Properties[section]; ok {
			rows(&b, section, s)
		}
	}
	return b.String()
}

// rows has a line for each field below one.
func rows(b *strings.Builder, at string, s apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		below := at + "." + name
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", below, typeOf(p), says(p, slices.Contains(s.Required, name)))
		within(b, below, p)
	}
}

// within goes on with what a field holds.
func within(b *strings.Builder, at string, p apiextensionsv1.JSONSchemaProps) {
	switch {
	case p.Items != nil && p.Items.Schema != nil:
		within(b, at+"[]", *p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		within(b, at+".*", *p.AdditionalProperties.Schema)
	default:
		rows(b, at, p)
	}
}

func typeOf(p apiextensionsv1.JSONSchemaProps) string {
	switch {
	case p.XIntOrString:
		return "integer or string"
	case p.Items != nil && p.Items.Schema != nil:
		return "list of " + typeOf(*p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(*p.AdditionalProperties.Schema)
	case p.Format == "date-time":
		return "time"
	case p.Type == "" && len(p.Properties) > 0:
		return "object"
	case p.Type == "":
		return "anything"
	default:
		return p.Type
	}
}

// says is a field's description, with what the schema demands of it.
func says(p apiextensionsv1.JSONSchemaProps, required bool) string {
	var parts []string
	if text := strings.Join(strings.Fields(p.Description), " "); text != "" {
		parts = append(parts, text)
	}
	if len(p.Enum) > 0 {
		var words []string
		for _, v := range p.Enum {
			words = append(words, string(v.Raw))
		}
		parts = append(parts, "One of "+strings.Join(words, ", ")+".")
	}
	if p.Minimum != nil {
		parts = append(parts, fmt.Sprintf("At least %v.", *p.Minimum))
	}
	if p.Maximum != nil {
		parts = append(parts, fmt.Sprintf("At most %v.", *p.Maximum))
	}
	if p.Default != nil {
		parts = append(parts, "Default: "+string(p.Default.Raw)+".")
	}
	if required {
		parts = append(parts, "Required.")
	}
	// A pipe would end the cell, and a word in angle brackets would be taken for HTML.
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(parts, " "))
}

// skeleton are the headings that the pages of all kinds have, in this order, among others.
var skeleton = []string{"Fields that matter", "Status and conditions", "Common mistakes", "All fields"}

// made are the kinds whose objects hotspare makes: a page tells where they come from, and
// has no example to apply.
var made = []string{"clusterprovision", "clusterdeprovision", "dataplaneagent"}

func TestKindPagesHaveTheSameSkeleton(t *testing.T) {
	for name := range definitions(t) {
		want := append([]string{"Smallest example"}, skeleton...)
		if slices.Contains(made, name) {
			want[0] = "Where it comes from"
		}
		var is []string
		for _, l := range read(t, filepath.Join(top, "docs", "kinds", name+".md")).Prose {
			if h, ok := strings.CutPrefix(l.Text, "## "); ok && slices.Contains(want, h) {
				is = append(is, h)
			}
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("docs/kinds/%s.md lacks headings, or has them in another order (-want +got):\n%s", name, diff)
		}
	}
}
