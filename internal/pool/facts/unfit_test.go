package facts

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAPoolThatCanMakeNoClusterSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hivev1.ClusterPool)
		want   string
	}{
		"a good one":                     {func(*hivev1.ClusterPool) {}, ""},
		"a name with a dot":              {func(p *hivev1.ClusterPool) { p.Name = "a.b" }, `metadata.name: "a.b" has a dot`},
		"a domain that is none":          {func(p *hivev1.ClusterPool) { p.Spec.BaseDomain = "local_hotspare.io" }, `spec.baseDomain: "local_hotspare.io" is not a DNS domain`},
		"a domain that is too long":      {func(p *hivev1.ClusterPool) { p.Spec.BaseDomain = strings.Repeat("a", 300) }, "is not a DNS domain"},
		"a domain with a dot at its end": {func(p *hivev1.ClusterPool) { p.Spec.BaseDomain = "example.com." }, ""},
		"a key of a label":               {func(p *hivev1.ClusterPool) { p.Spec.Labels = map[string]string{"a b": "c"} }, `spec.labels: "a b" cannot be the key`},
		"a value of a label":             {func(p *hivev1.ClusterPool) { p.Spec.Labels = map[string]string{"a": "b c"} }, `spec.labels["a"]: "b c" cannot be the value`},
		"a key of an annotation":         {func(p *hivev1.ClusterPool) { p.Spec.Annotations = map[string]string{"a b": "c"} }, `spec.annotations: "a b" cannot be the key`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: hivev1.ClusterPoolSpec{BaseDomain: "ci.example.com"}}
			c.change(p)
			if words := strings.Join(InvalidFields(p, nil), "; "); words != c.want && (c.want == "" || !strings.Contains(words, c.want)) {
				t.Errorf("it says %q, want %q", words, c.want)
			}
		})
	}
}
