// Package manifest reads manifests in YAML or JSON from files, folders and standard input, and
// decodes the objects that pools depend on.
//
// Nothing is dropped silently. If an object cannot be read, the package returns an error that names
// the file, the document, the object and the field; it returns a warning for what the API server
// would reject, and a note for what it skipped.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Document is one object as it is written in a file.
type Document struct {
	// Place is the position of the object: "pools.yaml, document 2, item 3".
	Place string
	// raw is the object as JSON: a map of it takes ten times the memory, and there may be many.
	raw []byte
}

func newDocument(place string, object map[string]any) (Document, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", place, err)
	}
	return Document{place, raw}, nil
}

// DecodeObject decodes the object.
func (d Document) DecodeObject() (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(d.raw, &object); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Place, err)
	}
	return object, nil
}

// Reader reads documents.
type Reader struct {
	// Stdin is read for the name "-".
	Stdin io.Reader
	// Recursive also reads the subfolders of folders.
	Recursive bool
}

// Read reads files, and all *.yaml, *.yml and *.json files of folders, in the given order; the
// files of a folder in the order of their names. The items of a List are separate documents; empty
// documents are skipped. The error reports everything that cannot be read.
func (r Reader) Read(names []string) ([]Document, error) {
	var out []Document
	var errs []error
	read := map[string]bool{}
	for _, name := range names {
		files, err := r.listManifestFiles(name)
		if err != nil {
			errs = append(errs, err)
		}
		for _, file := range files {
			if read[file] {
				continue
			}
			read[file] = true
			docs, err := r.readFileDocuments(file)
			out, errs = append(out, docs...), append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

const stdin = "-"

// extensions are the extensions of manifests in a folder; a file that is named explicitly is read
// whatever its extension.
var extensions = []string{".yaml", ".yml", ".json"}

// listManifestFiles returns the files to which a name refers.
func (r Reader) listManifestFiles(name string) ([]string, error) {
	if name == stdin {
		return []string{stdin}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, trimErrorPath(err))
	}
	if !info.IsDir() {
		return []string{filepath.Clean(name)}, nil
	}
	var out []string
	err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != name && !r.Recursive:
			return filepath.SkipDir
		case !e.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
			out = append(out, filepath.Clean(path))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, trimErrorPath(err))
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("folder %s has no *.yaml, *.yml or *.json: name its files, or look into its folders with -R", name)
	}
	return out, nil
}

// trimErrorPath returns an error without the path, which the caller's message already contains.
func trimErrorPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

func (r Reader) readFileDocuments(name string) ([]Document, error) {
	raw, err := r.readAllBytes(name)
	if name == stdin {
		name = "standard input"
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, trimErrorPath(err))
	}
	parts := splitDocuments(strings.TrimPrefix(string(raw), "\uFEFF"))
	var out []Document
	var errs []error
	number := 0
	for _, p := range parts {
		value, err := p.decodeValue()
		if err == nil && value == nil {
			continue
		}
		number++
		place := fmt.Sprintf("%s, document %d", name, number)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
			continue
		}
		docs, err := extractDocuments(place, value)
		out, errs = append(out, docs...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func (r Reader) readAllBytes(name string) ([]byte, error) {
	if name == stdin {
		return io.ReadAll(r.Stdin)
	}
	return os.ReadFile(name)
}

// part is the text of one document.
type part struct {
	text string
	// linesBefore is the number of lines of the file before the part.
	linesBefore int
	json        bool
}

// splitDocuments splits a file into JSON values that follow each other, or YAML documents. The YAML
// decoder reads only the first of several documents and silently ignores the others, so a comment
// after --- must not hide the start of a document.
func splitDocuments(text string) []part {
	if parts := splitJSON(text); parts != nil {
		return parts
	}
	parts := []part{{}}
	var lines []string
	flush := func() { parts[len(parts)-1].text, lines = strings.Join(lines, ""), nil }
	for i, line := range strings.SplitAfter(text, "\n") {
		rest, marked := cutDocumentMarker(line)
		if marked {
			flush()
			parts = append(parts, part{linesBefore: i})
		}
		lines = append(lines, rest)
	}
	flush()
	return parts
}

// cutDocumentMarker reports whether a line ends one document and begins the next, and returns the
// part of the line that belongs to the next.
func cutDocumentMarker(line string) (rest string, marked bool) {
	if strings.TrimRight(line, " \t\r\n") == "..." {
		return "\n", true
	}
	rest, marked = strings.CutPrefix(line, "---")
	if marked && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) {
		return rest, true
	}
	return line, false
}

// splitJSON returns nil if the text is not JSON throughout.
func splitJSON(text string) []part {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return nil
	}
	var parts []part
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var raw json.RawMessage
		switch err := dec.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return parts
		case err != nil:
			return nil // as YAML it is either valid, or rejected with a line number
		}
		parts = append(parts, part{text: string(raw), json: true})
	}
}

// decodeValue decodes a part; it returns nil for an empty part. A duplicate key is an error,
// because one of the two values would be lost.
func (p part) decodeValue() (any, error) {
	if !p.json {
		if list := p.decodeBlockList(); list != nil {
			return list, nil
		}
	}
	return p.decodeWholePart()
}

// decodeBlockList decodes a List whose items are written in block style, one item at a time: while
// the YAML decoder reads a text, it takes 20 times the memory of that text. The returned items are
// JSON. It returns nil for any other part, and for a part with an item that cannot be decoded on
// its own.
func (p part) decodeBlockList() map[string]any {
	around, items := splitItems(p.text)
	if len(items) == 0 {
		return nil
	}
	value, err := part{text: around}.decodeWholePart()
	object, ok := value.(map[string]any)
	if kind, _ := object["kind"].(string); err != nil || !ok || !strings.HasSuffix(kind, "List") || object["items"] != nil {
		return nil
	}
	list := make([]any, len(items))
	for i, item := range items {
		raw, err := part{text: item}.convertToJSON()
		var one []json.RawMessage
		if err != nil || json.Unmarshal(raw, &one) != nil || len(one) != 1 {
			return nil
		}
		list[i] = one[0]
	}
	object["items"] = list
	return object
}

// splitItems splits the text of a YAML document with a line "items:" into its items, which begin
// with a dash at the same indentation, and the text around them.
func splitItems(text string) (around string, items []string) {
	head, rest, found := strings.Cut("\n"+text, "\nitems:\n")
	if !found {
		return "", nil
	}
	indent := rest[:len(rest)-len(strings.TrimLeft(rest, " "))]
	begins := func(line string) bool {
		after, ok := strings.CutPrefix(line, indent+"-")
		return ok && (after == "\n" || strings.HasPrefix(after, " "))
	}
	if !begins(rest) {
		return "", nil
	}
	start, end := 0, 0
	for line := range strings.Lines(rest) {
		switch {
		case begins(line):
			if end > start {
				items = append(items, rest[start:end])
			}
			start = end
		case line[0] != ' ' && line[0] != '\n' && line[0] != '#': // the next field of the list
			return head + "\nitems:\n" + rest[end:], append(items, rest[start:end])
		}
		end += len(line)
	}
	return head + "\nitems:\n", append(items, rest[start:end])
}

// decodeWholePart decodes a part in one step.
func (p part) decodeWholePart() (any, error) {
	raw := []byte(p.text)
	if !p.json {
		var err error
		if raw, err = p.convertToJSON(); err != nil {
			return nil, err
		}
	}
	var v any
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return v, nil
}

// convertToJSON converts YAML. If that fails, it converts again with the lines before the part, so
// that the error contains the line number in the file: including them every time would take longer
// than everything else.
func (p part) convertToJSON() ([]byte, error) {
	if raw, err := yaml.YAMLToJSONStrict([]byte(p.text)); err == nil {
		return raw, nil
	}
	text := []byte(strings.Repeat("\n", p.linesBefore) + p.text)
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil && strings.Contains(p.text, "<<:") {
		// The strict decoder mistakes a key that a merge also sets for a duplicate key.
		return yaml.YAMLToJSON(text)
	}
	return raw, err
}

// extractDocuments returns the objects in a value: the value itself, or its items.
func extractDocuments(place string, value any) ([]Document, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: it is %s, want an object with apiVersion and kind", place, describeShape(value))
	}
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if kind == "" || version == "" {
		return nil, fmt.Errorf("%s: it has no %s: every object needs apiVersion and kind, such as hive.openshift.io/v1 and ClusterPool",
			place, missingFields(kind, version))
	}
	items, has := object["items"]
	of, isList := strings.CutSuffix(kind, "List")
	if !isList || !has {
		doc, err := newDocument(place, object)
		if err != nil {
			return nil, err
		}
		return []Document{doc}, nil
	}
	list, ok := items.([]any)
	if !ok && items != nil {
		return nil, fmt.Errorf("%s: items is %s, want a list of objects", place, describeShape(items))
	}
	var out []Document
	var errs []error
	for i, item := range list {
		at := fmt.Sprintf("%s, item %d", place, i+1)
		if raw, isRaw := item.(json.RawMessage); isRaw {
			if isTypedObject(raw) {
				out = append(out, Document{at, raw})
				continue
			}
			if err := utiljson.Unmarshal(raw, &item); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", at, err))
				continue
			}
		}
		docs, err := extractDocuments(at, inheritKind(item, of, version))
		out, errs = append(out, docs...), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// isTypedObject reports whether the JSON of an item is an object with apiVersion and kind, and not
// a list.
func isTypedObject(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return false
	}
	text := func(name string) bool { return len(fields[name]) > len(`""`) && fields[name][0] == '"' }
	return text("apiVersion") && text("kind") && fields["items"] == nil
}

func missingFields(kind, version string) string {
	switch {
	case kind == "" && version == "":
		return "apiVersion and no kind"
	case kind == "":
		return "kind"
	default:
		return "apiVersion"
	}
}

// inheritKind sets the kind of an item of a typed list, because the API omits it there.
func inheritKind(item any, kind, version string) any {
	object, ok := item.(map[string]any)
	if !ok || kind == "" || object["kind"] != nil {
		return item
	}
	object["kind"] = kind
	if object["apiVersion"] == nil {
		object["apiVersion"] = version
	}
	return object
}

func describeShape(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case []any:
		return "a list"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}
