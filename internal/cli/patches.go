package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/scrub"
)

// patched is one operation and what it is done to.
type patched struct {
	of string
	hivev1.PatchEntity
}

// patchesOf are all patches of a customization, in the order in which they are applied.
func patchesOf(spec hivev1.ClusterDeploymentCustomizationSpec) []patched {
	var out []patched
	for _, p := range spec.InstallConfigPatches {
		out = append(out, patched{"install-config", p})
	}
	for _, p := range spec.ClusterDeploymentSpecPatches {
		out = append(out, patched{"ClusterDeployment", p})
	}
	for _, m := range spec.InstallerManifestPatches {
		for _, p := range m.Patches {
			out = append(out, patched{m.ManifestSelector.Glob, p})
		}
	}
	return out
}

var errNeverApplied = errors.New("never applied")

// appliedPatches reads status.lastAppliedConfiguration: the lists of patches as the
// spec has them, or, as Hive writes it, the list of those to the install-config.
func appliedPatches(raw string) ([]patched, error) {
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
	return patchesOf(spec), err
}

// samePatches reports whether two lists do the same.
func samePatches(a, b []patched) bool {
	return slices.EqualFunc(a, b, func(a, b patched) bool {
		return a.of == b.of && a.Op == b.Op && slash(a.Path) == slash(b.Path) && slash(a.From) == slash(b.From) && a.value() == b.value()
	})
}

// slash gives a pointer its leading slash; an empty one stays: it is the whole document.
func slash(pointer string) string {
	if pointer == "" || strings.HasPrefix(pointer, "/") {
		return pointer
	}
	return "/" + pointer
}

// value is the operation's value as JSON in one line, with the keys of objects sorted;
// empty when it has none.
func (p patched) value() string {
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

// shown is the value for people, without secrets.
func (p patched) shown() string {
	switch {
	case p.From != "":
		return "from " + p.From
	case p.value() == "":
		return ""
	case secretive(p.Path):
		return scrub.Redacted
	}
	return scrub.Text(p.value())
}

// secretWords make a key of an install-config that of a secret. A key that refers to
// a Secret of the API ends in Ref, and names it only.
var secretWords = []string{"password", "passwd", "secret", "token", "credential", "privatekey", "accesskey", "auth"}

// secretive reports whether a pointer leads to, or into, what its name calls a secret.
func secretive(pointer string) bool {
	for segment := range strings.SplitSeq(pointer, "/") {
		key := strings.Map(letter, segment)
		if strings.HasSuffix(key, "ref") {
			continue
		}
		if slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(key, word) }) {
			return true
		}
	}
	return false
}

// letter is a lower-case letter; anything else goes.
func letter(r rune) rune {
	if !unicode.IsLetter(r) {
		return -1
	}
	return unicode.ToLower(r)
}

// patchTable has a line for each operation.
func (a *app) patchTable(title string, patches []patched) *table {
	t := newTable(title, "OP", "PATH", "VALUE")
	for _, p := range patches {
		t.add(p.of, p.Op, p.Path, p.shown())
	}
	t.fit(a.Width(a.Stdout))
	return t
}
