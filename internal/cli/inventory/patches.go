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

// patchOperation is one operation and what it is done to.
type patchOperation struct {
	target string
	hivev1.PatchEntity
}

// listPatches are all patches of a customization, in the order in which they are applied.
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

// parseAppliedPatches reads status.lastAppliedConfiguration: the lists of patches as the
// spec has them, or, as Hive writes it, the list of those to the install-config.
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

// equalPatches reports whether two lists do the same.
func equalPatches(a, b []patchOperation) bool {
	return slices.EqualFunc(a, b, func(a, b patchOperation) bool {
		return a.target == b.target && a.Op == b.Op && addLeadingSlash(a.Path) == addLeadingSlash(b.Path) && addLeadingSlash(a.From) == addLeadingSlash(b.From) &&
			a.canonicalValue() == b.canonicalValue()
	})
}

// addLeadingSlash gives a pointer its leading slash; an empty one stays: it is the whole document.
func addLeadingSlash(pointer string) string {
	if pointer == "" || strings.HasPrefix(pointer, "/") {
		return pointer
	}
	return "/" + pointer
}

// canonicalValue is the operation's value as JSON in one line, with the keys of objects sorted;
// empty when it has none.
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
	encoder.SetEscapeHTML(false) // for people
	if encoder.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// redactedValue is the value for people, without secrets.
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

// secretWords make a key of an install-config that of a secret. A key that refers to
// a Secret of the API ends in Ref, and names it only.
var secretWords = []string{"password", "passwd", "secret", "token", "credential", "privatekey", "accesskey", "auth"}

// isSecretPath reports whether a pointer leads to, or into, what its name calls a secret.
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

// keepLowerLetter is a lower-case letter; anything else goes.
func keepLowerLetter(r rune) rune {
	if !unicode.IsLetter(r) {
		return -1
	}
	return unicode.ToLower(r)
}

// buildPatchTable has a line for each operation.
func (a commands) buildPatchTable(title string, patches []patchOperation) *base.Table {
	t := base.NewTable(title, "OP", "PATH", "VALUE")
	for _, p := range patches {
		t.AddRow(p.target, p.Op, p.Path, p.redactedValue())
	}
	t.FitWidth(a.Width(a.Stdout))
	return t
}
