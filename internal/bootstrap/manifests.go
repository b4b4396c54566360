package bootstrap

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// CheckSteps returns why the objects in the steps themselves cannot be applied, or the values of a chart not be used,
// with the field; nil if they can.
func CheckSteps(steps []v1alpha1.BootstrapStep) error {
	for i, s := range steps {
		if s.Chart != nil {
			if _, err := decodeValues(s.Chart.Values); err != nil {
				return fmt.Errorf("spec.steps[%d].chart.values of step %s is not valid: %w", i, s.Name, err)
			}
		}
		if s.Manifests == nil {
			continue
		}
		for j, raw := range s.Manifests.Objects {
			if _, err := decodeObject(raw.Raw); err != nil {
				return fmt.Errorf("spec.steps[%d].manifests.objects[%d] of step %s is not valid: %w", i, j, s.Name, err)
			}
		}
	}
	return nil
}

// readManifests returns the objects of a step, in the order in which they are applied.
func readManifests(m *v1alpha1.BootstrapManifests, sources map[Reference]Source) ([]Manifest, error) {
	if m == nil {
		return nil, nil
	}
	var out []Manifest
	for i, raw := range m.Objects {
		u, err := decodeObject(raw.Raw)
		if err != nil {
			return nil, fmt.Errorf("manifests.objects[%d]: %w", i, err)
		}
		out = append(out, newManifest(u, false))
	}
	for _, f := range m.From {
		r, _ := referenceOf(f)
		data := sources[r].Data
		for _, key := range slices.Sorted(maps.Keys(data)) {
			objects, err := parseDocuments(data[key])
			if err != nil {
				return nil, fmt.Errorf("key %s of %s: %w", key, r, err)
			}
			for _, u := range objects {
				out = append(out, newManifest(u, r.Secret))
			}
		}
	}
	return out, nil
}

func newManifest(u *unstructured.Unstructured, secret bool) Manifest {
	return Manifest{Object: u, Secret: secret || u.GetKind() == "Secret" && u.GetAPIVersion() == "v1"}
}

// ParseManifests returns the manifests in YAML documents. An error does not contain any of the text.
func ParseManifests(text string, secret bool) ([]Manifest, error) {
	objects, err := parseDocuments(text)
	var out []Manifest
	for _, u := range objects {
		out = append(out, newManifest(u, secret))
	}
	return out, err
}

// parseDocuments returns the objects in YAML documents. An error does not contain any of the text.
func parseDocuments(text string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for i, document := range documentMark.Split(text, -1) {
		raw, err := yaml.YAMLToJSONStrict([]byte(document))
		if err != nil {
			return nil, fmt.Errorf("document %d is not valid YAML%s", i+1, lineOf(err))
		}
		if string(bytes.TrimSpace(raw)) == "null" {
			continue // nothing but comments
		}
		objects, err := decodeObjects(raw)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

// documentMark matches the line between two YAML documents.
var documentMark = regexp.MustCompile(`(?m)^---(?:[ \t].*)?\r?$`)

var line = regexp.MustCompile(`\bline [0-9]+`)

// lineOf returns the line that an error names: the rest of it may quote the text.
func lineOf(err error) string {
	if where := line.FindString(err.Error()); where != "" {
		return ", " + where
	}
	return ""
}

// decodeObjects decodes an object, or a list of objects.
func decodeObjects(raw []byte) ([]*unstructured.Unstructured, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil || !strings.HasSuffix(list.Kind, "List") || list.Items == nil {
		u, err := decodeObject(raw)
		if err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{u}, nil
	}
	var out []*unstructured.Unstructured
	for i, item := range list.Items {
		u, err := decodeObject(item)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		out = append(out, u)
	}
	return out, nil
}

// decodeObject decodes an object that can be applied. An error does not contain any of its values.
func decodeObject(raw []byte) (*unstructured.Unstructured, error) {
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil || fields == nil {
		return nil, errors.New("it is not an object")
	}
	u := &unstructured.Unstructured{Object: fields}
	for _, f := range []struct {
		path     []string
		required bool
		valid    func(string) bool
	}{
		{[]string{"apiVersion"}, true, apiVersion.MatchString},
		{[]string{"kind"}, true, kind.MatchString},
		{[]string{"metadata", "name"}, true, isPathSegment},
		{[]string{"metadata", "namespace"}, false, isPathSegment},
	} {
		name := strings.Join(f.path, ".")
		value, found, err := unstructured.NestedString(fields, f.path...)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s is not a string", name)
		case !found || value == "":
			if f.required {
				return nil, fmt.Errorf("%s is missing", name)
			}
		case !f.valid(value):
			return nil, fmt.Errorf("%s is not valid", name)
		}
	}
	// These are the cluster's own; the API server refuses to apply the first.
	unstructured.RemoveNestedField(fields, "metadata", "managedFields")
	unstructured.RemoveNestedField(fields, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(fields, "metadata", "uid")
	delete(fields, "status")
	return u, nil
}

var (
	apiVersion = regexp.MustCompile(`^([a-z0-9.-]+/)?v[a-z0-9]+$`)
	kind       = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// isPathSegment reports whether a name is one segment of a path of the API.
func isPathSegment(name string) bool {
	return name != "." && name != ".." && !strings.ContainsAny(name, "/%")
}

// hashSteps returns the version of steps: 16 hexadecimal digits. It depends on the fields that are set only, so
// that a new field of the API changes no version, and not on timeouts.
//
// The version is public. The content of a Secret enters it together with the UID of the Secret, which only those
// know who may read it: otherwise, a short secret could be guessed from the version.
func hashSteps(steps []v1alpha1.BootstrapStep, references []Reference, sources map[Reference]Source) (string, error) {
	steps = slices.Clone(steps)
	for i := range steps {
		steps[i].Timeout = ""
	}
	type content struct {
		Reference
		Source
		Archive string `json:",omitempty"`
	}
	contents := make([]content, 0, len(references))
	for _, r := range references {
		c := content{Reference: r, Source: sources[r]}
		if isArchive(steps, r) {
			c.Archive, c.Data = hashArchive(sources[r]), nil // bytes are no text of JSON
		}
		if !r.Secret {
			c.UID = ""
		}
		contents = append(contents, c)
	}
	slices.SortFunc(contents, func(a, b content) int { return cmp.Compare(a.String(), b.String()) })
	raw, err := json.Marshal(map[string]any{"steps": steps, "contents": contents})
	if err != nil {
		return "", fmt.Errorf("encoding the steps: %w", err)
	}
	var tree any // the keys of an object may have any order
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return "", fmt.Errorf("encoding the steps: %w", err)
	}
	if raw, err = json.Marshal(tree); err != nil {
		return "", fmt.Errorf("encoding the steps: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// appendTexts appends the values in a decoded object, also as they are without base64.
func appendTexts(to []string, value any) []string {
	switch v := value.(type) {
	case string:
		to = append(to, v)
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
			to = append(to, string(plain))
		}
	case json.Number:
		to = append(to, v.String())
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "apiVersion" && key != "kind" {
				to = appendTexts(to, v[key])
			}
		}
	case []any:
		for _, item := range v {
			to = appendTexts(to, item)
		}
	}
	return to
}
