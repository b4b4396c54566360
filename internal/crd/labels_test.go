package crd

import (
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestWhatNoClusterOfAPoolCanHave(t *testing.T) {
	const use = `: use at most 63 letters, digits, "-", "_" and "."`
	const key = " is not a valid label key" + use + `, optionally after a DNS name and "/"`
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct{ pool, spec, want string }{
		"labels":                     {"dev", `{"labels":{"a":"b","example.com/c":"","1.2_3-x":"1.2_3-x"},"annotations":{"Example.com/C":"any thing"}}`, ""},
		"none":                       {"dev", `{"labels":null,"annotations":null}`, ""},
		"a key with a space":         {"dev", `{"labels":{"a b":"c","z z":"d"}}`, `spec.labels: "a b"` + key},
		"an empty key":               {"dev", `{"labels":{"":"c"}}`, `spec.labels: ""` + key},
		"a key that is too long":     {"dev", `{"labels":{"` + long + `":"c"}}`, `spec.labels: "` + long + `"` + key},
		"two slashes":                {"dev", `{"labels":{"a/b/c":"x"}}`, `spec.labels: "a/b/c"` + key},
		"a value with a space":       {"dev", `{"labels":{"a":"b c"}}`, `spec.labels["a"]: "b c" is not a valid label value` + use},
		"a value that is too long":   {"dev", `{"labels":{"a":"` + long + `"}}`, `spec.labels["a"]: "` + long + `" is not a valid label value` + use},
		"an annotation with a space": {"dev", `{"annotations":{"a b":"c"}}`, `spec.annotations: "a b" is not a valid annotation key` + use + `, optionally after a DNS name and "/"`},
		"a name with a dot":          {"dev.4", `{}`, `metadata.name: "dev.4" contains a dot, but becomes part of the names of namespaces, which cannot contain dots: write "-" instead`},
	} {
		t.Run(name, func(t *testing.T) {
			var spec map[string]any
			if err := utiljson.Unmarshal([]byte(c.spec), &spec); err != nil {
				t.Fatal(err)
			}
			here, byPolicy := wrongNamed(t, "ClusterPool", c.pool, spec)
			if here != c.want || byPolicy != c.want {
				t.Errorf("\n   here: %s\n policy: %s\n   want: %s", here, byPolicy, c.want)
			}
		})
	}
}

// A finalizer of a pool that was stored with such a label can be removed.
func TestStoredLabelsStayWritable(t *testing.T) {
	stored := map[string]any{"metadata": map[string]any{"name": "dev"}, "spec": map[string]any{"labels": map[string]any{"a b": "c"}}}
	for _, p := range policiesOf(t, "ClusterPool") {
		if p.Name == "clusterpool-labels.hotspare.io" {
			if said := p.judge(t, stored, stored); len(said) > 0 {
				t.Errorf("it is refused: %v", said)
			}
			return
		}
	}
	t.Error("there is no such policy")
}
