package inventory

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/redact"
)

// patchOperation is one operation and the document that it changes.
type patchOperation struct {
	target string
	hivev1.PatchEntity
}

// listPatches returns all patches of a customization, in the order in which they are applied.
func listPatches(spec hivev1.ClusterDeploymentCustomizationSpec) []patchOperation {
	var out []patchOperation
	for _, p := range spec.InstallConfigPatches {
		out = append(out, patchOperation{"install-config", p})
	}
	for _, p := range spec.ClusterDeploymentSpecPatches {
		out = append(out, patchOperation{"ClusterDeployment", p})
	}
	for _, m := range spec.InstallerManifestPatches {
		for _, p := range m.Patches {
			out = append(out, patchOperation{m.ManifestSelector.Glob, p})
		}
	}
	return out
}

var errNeverApplied = errors.New("never applied")

// parseAppliedPatches parses status.lastAppliedConfiguration. It contains the lists of patches in
// the form of the spec or, if Hive wrote it, only the list of install-config patches.
func parseAppliedPatches(raw string) ([]patchOperation, error) {
	if strings.TrimSpace(raw) == "" {
		return nil, errNeverApplied
	}
	var spec hivev1.ClusterDeploymentCustomizationSpec
	var err error
	if strings.HasPrefix(strings.TrimSpace(raw), "[") {
		err = json.Unmarshal([]byte(raw), &spec.InstallConfigPatches)
	} else {
		err = json.Unmarshal([]byte(raw), &spec)
	}
	return listPatches(spec), err
}

// equalPatches reports whether two lists of patches have the same effect.
func equalPatches(a, b []patchOperation) bool {
	return slices.EqualFunc(a, b, func(a, b patchOperation) bool {
		return a.target == b.target && a.Op == b.Op && addLeadingSlash(a.Path) == addLeadingSlash(b.Path) && addLeadingSlash(a.From) == addLeadingSlash(b.From) &&
			a.canonicalValue() == b.canonicalValue()
	})
}

// addLeadingSlash adds a missing leading slash to a JSON pointer. It keeps an empty pointer, which
// stands for the whole document.
func addLeadingSlash(pointer string) string {
	if pointer == "" || strings.HasPrefix(pointer, "/") {
		return pointer
	}
	return "/" + pointer
}

// canonicalValue returns the operation's value as JSON on one line, with sorted keys; empty if the
// operation has no value.
func (p patchOperation) canonicalValue() string {
	raw := []byte(p.ValueJSON)
	if p.ValueJSON == "" && p.Value != nil {
		raw = p.Value.Raw
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil || decoder.More() {
		return string(raw)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // the output is read by people
	if encoder.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// redactedValue returns the value for display, without secrets.
func (p patchOperation) redactedValue() string {
	switch {
	case p.From != "":
		return "from " + p.From
	case p.canonicalValue() == "":
		return ""
	case isSecretPath(p.Path):
		return redact.Redacted
	}
	return redact.Text(p.canonicalValue())
}

// secretWords identify the keys of an install-config whose values are secrets. A key that ends in
// Ref contains only the name of a Secret.
var secretWords = []string{"password", "passwd", "secret", "token", "credential", "privatekey", "accesskey", "auth"}

// isSecretPath reports whether a pointer refers to a value whose name, or whose parent's name,
// identifies it as a secret.
func isSecretPath(pointer string) bool {
	for segment := range strings.SplitSeq(pointer, "/") {
		key := strings.Map(keepLowerLetter, segment)
		if strings.HasSuffix(key, "ref") {
			continue
		}
		if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) }) {
			return true
		}
	}
	return false
}

// keepLowerLetter converts letters to lower case and drops other characters.
func keepLowerLetter(r rune) rune {
	if !unicode.IsLetter(r) {
		return -1
	}
	return unicode.ToLower(r)
}

// buildPatchTable has a row for each operation.
func (a commands) buildPatchTable(title string, patches []patchOperation) *base.Table {
	t := base.NewTable(title, "OP", "PATH", "VALUE")
	for _, p := range patches {
		t.AddRow(p.target, p.Op, p.Path, p.redactedValue())
	}
	t.FitWidth(a.Width(a.Stdout))
	return t
}
