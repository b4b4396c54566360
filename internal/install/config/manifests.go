package config

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// ManifestPatches are the patches of one customization for the manifests that the installer of a
// cluster creates.
type ManifestPatches struct {
	Customization string                          `json:"customization"`
	Patches       []hivev1.InstallerManifestPatch `json:"patches"`
}

// ListManifestPatches returns the patches of customizations, in their order. It skips nil
// customizations and those without patches.
func ListManifestPatches(customizations ...*hivev1.ClusterDeploymentCustomization) []ManifestPatches {
	var out []ManifestPatches
	for _, c := range customizations {
		if c != nil && len(c.Spec.InstallerManifestPatches) > 0 {
			out = append(out, ManifestPatches{Customization: c.Name, Patches: c.Spec.InstallerManifestPatches})
		}
	}
	return out
}

// EncodeManifestPatches encodes patches for a Secret; nil for none.
func EncodeManifestPatches(list []ManifestPatches) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encoding patches of manifests: %w", err)
	}
	return raw, nil
}

// DecodeManifestPatches decodes the output of EncodeManifestPatches. Malformed patches, and globs
// that cannot select a manifest, are fault.Denied.
func DecodeManifestPatches(raw []byte) ([]ManifestPatches, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var list []ManifestPatches
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fault.NewDenied("key %s was changed after hotspare wrote it: delete the cluster, and its pool creates another", hivev1.SecretKeyManifestPatches)
	}
	for _, m := range list {
		if err := ValidateManifestPatches(m.Patches); err != nil {
			return nil, fault.NewDenied("customization %s: %w", m.Customization, err)
		}
	}
	return list, nil
}

// ValidateManifestPatches returns fault.Denied, with the patch and the remedy, if a patch is
// malformed or cannot select a manifest. It quotes no values.
func ValidateManifestPatches(list []hivev1.InstallerManifestPatch) error {
	for i, p := range list {
		if err := checkManifestGlob(p.ManifestSelector.Glob); err != nil {
			return fault.NewDenied("installerManifestPatches[%d].manifestSelector.glob: %w", i, err)
		}
		for j, patch := range p.Patches {
			if _, err := parsePatch(patch); err != nil {
				return fault.NewDenied("installerManifestPatches[%d].patches[%d]: %w", i, j, err)
			}
		}
	}
	return nil
}

// fieldPath returns the path of the patches with that index, for users.
func (m ManifestPatches) fieldPath(i int) string {
	return fmt.Sprintf("customization %s: installerManifestPatches[%d]", m.Customization, i)
}

// foldersWithoutManifests are folders of an installer without manifests: they contain the keys of
// the cluster, and patching them would break it.
var foldersWithoutManifests = []string{"auth", "tls"}

// checkManifestGlob checks that a glob is below the installer's folder and selects files in one of
// its folders.
func checkManifestGlob(glob string) error {
	if _, err := path.Match(glob, ""); err != nil {
		return fmt.Errorf("%q has a [ without ], or ends with a backslash: correct it", glob)
	}
	first, rest, below := strings.Cut(glob, "/")
	switch {
	case !filepath.IsLocal(glob) || path.Clean(glob) != glob || !below || rest == "":
		return fmt.Errorf("%q selects no manifests: start with their folder, as in openshift/99_*.yaml", glob)
	case slices.ContainsFunc(foldersWithoutManifests, func(dir string) bool { found, _ := path.Match(first, dir); return found }): // the pattern is valid
		return fmt.Errorf("%q selects in %s, which has no manifests: name a folder of manifests, such as openshift or manifests", glob, strings.Join(foldersWithoutManifests, " or "))
	}
	return nil
}

// NoManifestError returns the error for a glob that selects nothing.
func (m ManifestPatches) NoManifestError(i int) error {
	return fault.NewDenied("%s.manifestSelector.glob: %q selects none of the manifests that the installer created: correct it, or remove the patch",
		m.fieldPath(i), m.Patches[i].ManifestSelector.Glob)
}

// PatchManifest applies the patches with that index to the manifest with that file name. The error
// is fault.Denied, names customization, patch and manifest, and quotes neither the manifest nor
// values of the patches.
func (m ManifestPatches) PatchManifest(i int, name string, manifest []byte) ([]byte, error) {
	doc, err := parseManifest(manifest)
	if err != nil {
		return nil, fault.NewDenied("%s: manifest %s %w", m.fieldPath(i), name, err)
	}
	p := patcher{field: m.fieldPath(i) + ": manifest " + name + ": patches", doc: doc}
	if err := p.applyPatches(m.Patches[i].Patches); err != nil {
		return nil, err
	}
	out, ok := p.doc.encodeYAML()
	if !ok {
		return nil, newUnwritableError(m.fieldPath(i) + ": manifest " + name)
	}
	return out, nil
}

// parseManifest reads a file with one document, which must be a mapping. The error text is written
// to follow the file's name.
func parseManifest(raw []byte) (document, error) {
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(raw)))
	var found []document
	for {
		part, err := docs.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.New("cannot be read: select other manifests")
		}
		if isBlankDocument(part) {
			continue
		}
		doc, err := parseDocument(part)
		if err != nil {
			return nil, errors.New("cannot be parsed as a YAML mapping: select other manifests")
		}
		found = append(found, doc)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("has %d documents, and only a manifest with one document can be patched: select other manifests", len(found))
	}
	return found[0], nil
}

// isBlankDocument reports whether a document contains nothing but comments.
func isBlankDocument(part []byte) bool {
	for line := range bytes.Lines(part) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
