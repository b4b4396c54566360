package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/manifest"
)

// folder creates a folder with these files and changes to it.
func folder(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// places returns the places of documents and their "name", one per line.
func places(docs []manifest.Document) string {
	var lines []string
	for _, d := range docs {
		object, err := d.DecodeObject()
		if err != nil {
			panic(err) // Read has written it
		}
		name, _ := object["name"].(string)
		kind, _ := object["kind"].(string)
		lines = append(lines, d.Place+" = "+kind+" "+name)
	}
	return strings.Join(lines, "\n")
}

func thing(name string) string { return "apiVersion: v1\nkind: A\nname: " + name + "\n" }

func TestWhereDocumentsAreFound(t *testing.T) {
	const typed = `{"apiVersion":"v1","kind":"AList","items":[{"name":"x"},{"apiVersion":"v2","kind":"B","name":"y"}]}`
	files := map[string]string{
		"one.txt":      thing("one"),
		"d/b.yaml":     thing("b"),
		"d/a.json":     `{"apiVersion":"v1","kind":"A","name":"a"}`,
		"d/c.yml":      thing("c"),
		"d/notes.md":   "not a manifest",
		"d/sub/d.yaml": thing("d"),
		"multi.yaml":   "# only words\n---\n" + thing("p") + "--- # and a comment\n" + thing("q") + "---\n\n---\n" + thing("r") + "...\n" + thing("s"),
		"crlf.yaml":    strings.ReplaceAll(thing("p")+"---\n"+thing("q"), "\n", "\r\n"),
		"bom.yaml":     "\uFEFF" + thing("p"),
		"stream.json":  `{"apiVersion":"v1","kind":"A","name":"a"}` + "\n" + `{"apiVersion":"v1","kind":"A","name":"b"}`,
		"flow.yaml":    "{apiVersion: v1, kind: A, name: f}\n---\n{apiVersion: v1, kind: A, name: g}",
		"block.yaml":   "apiVersion: v1\nkind: A\ntext: |\n  a\n  ---\n  b\nname: whole\n",
		"list.yaml":    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, name: x}\n- " + typed + "\n",
		"typed.json":   typed,
		"merge.yaml":   "apiVersion: v1\nkind: A\nbase: &b {a: 1, b: 2}\nmore: {<<: *b, b: 3}\nname: m\n",
		"none.yaml":    "apiVersion: v1\nkind: AList\nitems: []\n---\napiVersion: v1\nkind: BList\nitems: null\n",
	}
	for name, tc := range map[string]struct {
		names     []string
		recursive bool
		want      string
	}{
		"a file, whatever it is called":         {[]string{"one.txt"}, false, "one.txt, document 1 = A one"},
		"a folder, by name":                     {[]string{"d"}, false, "d/a.json, document 1 = A a\nd/b.yaml, document 1 = A b\nd/c.yml, document 1 = A c"},
		"a folder and those in it":              {[]string{"d"}, true, "d/a.json, document 1 = A a\nd/b.yaml, document 1 = A b\nd/c.yml, document 1 = A c\nd/sub/d.yaml, document 1 = A d"},
		"a file is read once":                   {[]string{"d/b.yaml", "./d/b.yaml"}, false, "d/b.yaml, document 1 = A b"},
		"files in the order given":              {[]string{"one.txt", "d/b.yaml"}, false, "one.txt, document 1 = A one\nd/b.yaml, document 1 = A b"},
		"standard input":                        {[]string{"-"}, false, "standard input, document 1 = A in"},
		"documents, empty ones left out":        {[]string{"multi.yaml"}, false, "multi.yaml, document 1 = A p\nmulti.yaml, document 2 = A q\nmulti.yaml, document 3 = A r\nmulti.yaml, document 4 = A s"},
		"lines that end as on Windows":          {[]string{"crlf.yaml"}, false, "crlf.yaml, document 1 = A p\ncrlf.yaml, document 2 = A q"},
		"a byte order mark":                     {[]string{"bom.yaml"}, false, "bom.yaml, document 1 = A p"},
		"JSON values that follow each other":    {[]string{"stream.json"}, false, "stream.json, document 1 = A a\nstream.json, document 2 = A b"},
		"YAML that begins like JSON":            {[]string{"flow.yaml"}, false, "flow.yaml, document 1 = A f\nflow.yaml, document 2 = A g"},
		"dashes inside of a text are no marker": {[]string{"block.yaml"}, false, "block.yaml, document 1 = A whole"},
		"lists, in lists":                       {[]string{"list.yaml"}, false, "list.yaml, document 1, item 1 = A x\nlist.yaml, document 1, item 2, item 1 = A x\nlist.yaml, document 1, item 2, item 2 = B y"},
		"a typed list gives its items the kind": {[]string{"typed.json"}, false, "typed.json, document 1, item 1 = A x\ntyped.json, document 1, item 2 = B y"},
		"keys that are merged in":               {[]string{"merge.yaml"}, false, "merge.yaml, document 1 = A m"},
		"lists without items":                   {[]string{"none.yaml"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder(t, files)
			docs, err := manifest.Reader{Stdin: strings.NewReader(thing("in")), Recursive: tc.recursive}.Read(tc.names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, places(docs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsNamed(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no YAML, with the line of the file": {thing("a") + "---\nb: [\n", "f.yaml, document 2: yaml: line 5: did not find expected node content"},
		"a key written twice":                {"a: 1\na: 2\n", `f.yaml, document 1: yaml: unmarshal errors:` + "\n" + `  line 2: key "a" already set in map`},
		"no object":                          {"- a\n", "f.yaml, document 1: it is a list, want an object with apiVersion and kind"},
		"only text":                          {"hello\n", "f.yaml, document 1: it is a text, want an object with apiVersion and kind"},
		"no kind":                            {"apiVersion: v1\n", "f.yaml, document 1: it has no kind: every object needs apiVersion and kind, such as hive.openshift.io/v1 and ClusterPool"},
		"a kind that is a number":            {"apiVersion: v1\nkind: 3\n", "f.yaml, document 1: it has no kind: every object needs apiVersion and kind, such as hive.openshift.io/v1 and ClusterPool"},
		"neither":                            {"size: 3\n", "f.yaml, document 1: it has no apiVersion and no kind: every object needs apiVersion and kind, such as hive.openshift.io/v1 and ClusterPool"},
		"items that are no list":             {"apiVersion: v1\nkind: List\nitems: 3\n", "f.yaml, document 1: items is a number, want a list of objects"},
		"an item that is none":               {"apiVersion: v1\nkind: List\nitems: [null]\n", "f.yaml, document 1, item 1: it is empty, want an object with apiVersion and kind"},
		"an item that is no YAML, with the line of the file": {"apiVersion: v1\nkind: List\nitems:\n- kind: A\n  apiVersion: v1\n- kind: [\n", "f.yaml, document 1: yaml: line 6: did not find expected node content"},
		"an item with a key written twice":                   {thing("a") + "---\napiVersion: v1\nkind: List\nitems:\n- kind: A\n  kind: B\n", "f.yaml, document 2: yaml: unmarshal errors:\n  line 9: key \"kind\" already set in map"},
		"an item with a field that is almost apiVersion":     {"apiVersion: v1\nkind: List\nitems:\n- kind: A\n  apiversion: v1\n", "f.yaml, document 1, item 1: it has no apiVersion: every object needs apiVersion and kind, such as hive.openshift.io/v1 and ClusterPool"},
		"two faults are both told":                           {"- a\n---\n- b\n", "f.yaml, document 1: it is a list, want an object with apiVersion and kind\nf.yaml, document 2: it is a list, want an object with apiVersion and kind"},
	} {
		t.Run(name, func(t *testing.T) {
			folder(t, map[string]string{"f.yaml": tc.text})
			_, err := manifest.Reader{}.Read([]string{"f.yaml"})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	folder(t, map[string]string{"empty/notes.md": ""})
	for name, want := range map[string]string{
		"nope.yaml": "reading nope.yaml: no such file or directory",
		"empty":     "folder empty has no *.yaml, *.yml or *.json: name its files, or look into its folders with -R",
	} {
		_, err := manifest.Reader{}.Read([]string{name})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The items of a List are decoded one by one where the result is the same as decoding all at once.
func TestTheItemsOfAList(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"as kubectl writes them": {
			"apiVersion: v1\nitems:\n- kind: A\n  apiVersion: v1\n  name: a\n- kind: A\n  apiVersion: v1\n  name: b\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
			"f.yaml, document 1, item 1 = A a\nf.yaml, document 1, item 2 = A b",
		},
		"indented, with comments and empty lines": {
			"kind: AList\napiVersion: v1\nitems:\n  - name: a\n\n# one more\n  -\n    name: b\n",
			"f.yaml, document 1, item 1 = A a\nf.yaml, document 1, item 2 = A b",
		},
		"with lists and texts in them": {
			"kind: List\napiVersion: v1\nitems:\n- kind: A\n  apiVersion: v1\n  more:\n  - x\n  - y\n  text: |\n    - not an item\n    items:\n  name: a\n",
			"f.yaml, document 1, item 1 = A a",
		},
		"an item that refers to another": {
			"kind: List\napiVersion: v1\nitems:\n- &a\n  kind: A\n  apiVersion: v1\n  name: a\n- *a\n",
			"f.yaml, document 1, item 1 = A a\nf.yaml, document 1, item 2 = A a",
		},
		"a text whose lines begin like items": {
			"kind: List\napiVersion: v1\nitems:\n- kind: A\n  apiVersion: v1\n  name: \"a\n- b\"\n",
			"f.yaml, document 1, item 1 = A a - b",
		},
		"written on one line": {
			"kind: List\napiVersion: v1\nitems:\n- {kind: A, apiVersion: v1, name: a}\n- {kind: A, apiVersion: v1, name: b}\n",
			"f.yaml, document 1, item 1 = A a\nf.yaml, document 1, item 2 = A b",
		},
		"items of something that is no List": {
			"kind: A\napiVersion: v1\nname: a\nitems:\n- x\n- y\n",
			"f.yaml, document 1 = A a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder(t, map[string]string{"f.yaml": tc.text})
			docs, err := manifest.Reader{}.Read([]string{"f.yaml"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, places(docs)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// BenchmarkRead reads 1,000 objects: as documents, and as the items of a List.
func BenchmarkRead(b *testing.B) {
	const object = "apiVersion: v1\nkind: A\nname: a%d\nspec:\n  more: [1, 2, 3]\n  text: x\n"
	var documents, list strings.Builder
	list.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for n := range 1000 {
		text := fmt.Sprintf(object, n)
		documents.WriteString("---\n" + text)
		list.WriteString("- " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n  "), "  "))
	}
	for name, text := range map[string]string{"documents": documents.String(), "list": list.String()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				docs, err := manifest.Reader{Stdin: strings.NewReader(text)}.Read([]string{"-"})
				if err != nil || len(docs) != 1000 {
					b.Fatalf("%d documents: %v", len(docs), err)
				}
			}
		})
	}
}
