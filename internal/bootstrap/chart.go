package bootstrap

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// A Chart is a Helm chart to install in a spare cluster.
type Chart struct {
	// Record is the name of the Secret in JobNamespace of the cluster that has what was rendered for it. It contains
	// the version of the steps, so that it is never one of another version.
	Record string
	// Version is the version of the steps.
	Version string
	// Archive is the packaged chart.
	Archive            []byte
	Release, Namespace string
	Values             map[string]any
	// Secret is set if the archive or values come from a Secret: nothing of what the chart renders may be shown but
	// the kinds, namespaces and names of objects.
	Secret bool
}

// newChart returns the chart of a step. An error does not contain any content of the sources.
func newChart(step string, c v1alpha1.BootstrapChart, version string, sources map[Reference]Source) (*Chart, error) {
	from, _ := referenceOf(c.ArchiveFrom)
	archive, err := readArchive(sources[from])
	if err != nil {
		return nil, fmt.Errorf("%s %w", from, err)
	}
	out := &Chart{
		Record: "chart-" + step + "-" + version[:8], Version: version, Archive: archive, Secret: from.Secret,
		Release: cmp.Or(c.ReleaseName, step), Namespace: cmp.Or(c.Namespace, metav1.NamespaceDefault),
	}
	if out.Values, err = decodeValues(c.Values); err != nil {
		return nil, fmt.Errorf("chart.values: %w", err)
	}
	for _, f := range c.ValuesFrom {
		r, _ := referenceOf(f)
		out.Secret = out.Secret || r.Secret
		data := sources[r].Data
		for _, key := range slices.Sorted(maps.Keys(data)) {
			values, err := parseValues(data[key])
			if err != nil {
				return nil, fmt.Errorf("key %s of %s: %w", key, r, err)
			}
			mergeValues(out.Values, values)
		}
	}
	return out, nil
}

// readArchive returns the packaged chart in a source: the value of its only key.
func readArchive(s Source) ([]byte, error) {
	content := maps.Clone(s.Data)
	if content == nil {
		content = map[string]string{}
	}
	maps.Copy(content, s.Binary)
	if len(content) != 1 {
		return nil, fmt.Errorf("has %d keys, and must have one: the packaged chart", len(content))
	}
	for key, value := range content {
		if !strings.HasPrefix(value, "\x1f\x8b") {
			return nil, fmt.Errorf("has no packaged chart in its key %s: create it with kubectl create configmap NAME --from-file CHART.tgz", key)
		}
		return []byte(value), nil
	}
	panic("unreachable: it has one key")
}

// isArchive reports whether a step installs the chart in r.
func isArchive(steps []v1alpha1.BootstrapStep, r Reference) bool {
	return slices.ContainsFunc(steps, func(s v1alpha1.BootstrapStep) bool {
		if s.Chart == nil {
			return false
		}
		from, _ := referenceOf(s.Chart.ArchiveFrom)
		return from == r
	})
}

// hashArchive identifies the content of a source that has bytes.
func hashArchive(s Source) string {
	sum := sha256.New()
	for _, content := range []map[string]string{s.Data, s.Binary} {
		for _, key := range slices.Sorted(maps.Keys(content)) {
			fmt.Fprintf(sum, "%d %s %d ", len(key), key, len(content[key]))
			sum.Write([]byte(content[key]))
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// decodeValues returns the values in a field of the spec. They are never nil without an error.
func decodeValues(raw *runtime.RawExtension) (map[string]any, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return map[string]any{}, nil
	}
	var out map[string]any
	if err := json.Unmarshal(raw.Raw, &out); err != nil || out == nil {
		return nil, errors.New("it is not an object")
	}
	return out, nil
}

// parseValues returns the values in a YAML document. An error does not contain any of the text.
func parseValues(text string) (map[string]any, error) {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it is not valid YAML%s", lineOf(err))
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, errors.New("it is not an object")
	}
	return out, nil
}

// mergeValues sets the values of from in to: an object is merged with an object, any other value replaces what is there.
func mergeValues(to, from map[string]any) {
	for key, value := range from {
		inner, isObject := value.(map[string]any)
		existing, wasObject := to[key].(map[string]any)
		if isObject && wasObject {
			mergeValues(existing, inner)
			continue
		}
		to[key] = value
	}
}
