package crd

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validatePatchValues returns the patches of a customization's spec whose value is missing or is
// evidently not JSON. It quotes no value: a value may be a password.
func validatePatchValues(spec map[string]any) field.ErrorList {
	at := field.NewPath("spec")
	lists := []patchList{
		{at.Child("installConfigPatches"), spec["installConfigPatches"]},
		{at.Child("clusterDeploymentSpecPatches"), spec["clusterDeploymentSpecPatches"]},
	}
	manifests, _ := spec["installerManifestPatches"].([]any)
	for i, m := range manifests {
		m, _ := m.(map[string]any)
		lists = append(lists, patchList{at.Child("installerManifestPatches").Index(i).Child("patches"), m["patches"]})
	}
	var out field.ErrorList
	for _, wrong := range []func(*field.Path, map[string]any) field.ErrorList{checkValuePresent, checkValueJSON} {
		for _, l := range lists {
			patches, _ := l.patches.([]any)
			for i, p := range patches {
				p, _ := p.(map[string]any)
				out = append(out, wrong(l.at.Index(i), p)...)
			}
		}
	}
	return out
}

type patchList struct {
	at      *field.Path
	patches any
}

func checkValuePresent(at *field.Path, p map[string]any) field.ErrorList {
	op, _ := p["op"].(string)
	text, _ := p["valueJSON"].(string)
	if slices.Contains([]string{"add", "replace", "test"}, op) && p["value"] == nil && text == "" {
		return invalidFieldList(at, `%s needs a value: set value, or valueJSON, which can also be "null"`, op)
	}
	return nil
}

var jsonScalarPattern = regexp.MustCompile(`^(true|false|null|-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][-+]?[0-9]+)?)$`)

// checkValueJSON checks only the two ends of a long value: an admission policy cannot check more.
func checkValueJSON(at *field.Path, p map[string]any) field.ErrorList {
	text, _ := p["valueJSON"].(string)
	if text == "" {
		return nil
	}
	v := strings.TrimSpace(text)
	between := func(first, last string) bool {
		return len(v) > 1 && strings.HasPrefix(v, first) && strings.HasSuffix(v, last)
	}
	if between("{", "}") || between("[", "]") || between(`"`, `"`) || utf8.RuneCountInString(v) < 100 && jsonScalarPattern.MatchString(v) {
		return nil
	}
	return invalidFieldList(at.Child("valueJSON"), "it is not JSON: put a string in double quotes, or write it as value, which takes a string without quotes")
}
