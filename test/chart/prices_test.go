package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/helmchart"
	"hotspare.io/hotspare/internal/helmchart/helmcharttest"
	"hotspare.io/hotspare/internal/sizing/pricetable"
)

// renderPrices returns the ConfigMap of prices that the chart renders for values; nil if it renders none.
func renderPrices(t *testing.T, values string) *corev1.ConfigMap {
	t.Helper()
	all := parseValues(t, values)
	all["crds"], all["admission"] = map[string]any{"enabled": false}, map[string]any{"enabled": false}
	phases, err := helmchart.Render(helmchart.Request{
		Archive: helmcharttest.Package(readChart(t)), Release: "hotspare", Namespace: "hotspare-system", Values: all, KubernetesVersion: "v1.36.0",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range phases {
		for _, m := range p.Manifests {
			if !strings.Contains(m, "name: "+pricetable.ConfigMapName) {
				continue
			}
			var out corev1.ConfigMap
			if err := yaml.UnmarshalStrict([]byte(m), &out); err != nil {
				t.Fatalf("%v in\n%s", err, m)
			}
			return &out
		}
	}
	return nil
}

func TestPricesBecomeTheTableThatHotspareReads(t *testing.T) {
	if cm := renderPrices(t, `{}`); cm != nil {
		t.Errorf("by default it has %s", cm.Name)
	}
	const values = `{"prices":{"currency":"EUR","platforms":{"aws":{"compute":{"type":"m7g.xlarge","disk":0},"machines":{"m7g.xlarge":0.15,"x.tiny":0.00001}}}}}`
	checkSchema(t, values, true)
	cm := renderPrices(t, values)
	if cm == nil || cm.Namespace != "hotspare-system" {
		t.Fatalf("it is %+v", cm)
	}
	got, err := pricetable.Parse([]byte(cm.Data[pricetable.ConfigMapKey]))
	if err != nil {
		t.Fatalf("%v in\n%s", err, cm.Data[pricetable.ConfigMapKey])
	}
	aws := got.Platforms["aws"]
	if diff := cmp.Diff(map[string]float64{"m7g.xlarge": 0.15, "x.tiny": 0.00001}, aws.Machines); diff != "" {
		t.Error(diff)
	}
	if got.Currency != "EUR" || aws.Compute.Type != "m7g.xlarge" || aws.Compute.Disk == nil || *aws.Compute.Disk != 0 {
		t.Errorf("%+v", got)
	}
}

func TestPricesThatDoNotFitAreRefused(t *testing.T) {
	for _, values := range []string{
		`{"prices":{"aws":{}}}`, `{"prices":{"currency":"euro"}}`, `{"prices":{"platforms":{"vsphere":{}}}}`, `{"prices":{"date":"January"}}`,
		`{"prices":{"platforms":{"aws":{"machines":{"m5.xlarge":-1}}}}}`, `{"prices":{"platforms":{"aws":{"machines":{"m5.xlarge":"cheap"}}}}}`,
		`{"prices":{"platforms":{"gcp":{"disk":0.1}}}}`, `{"prices":{"platforms":{"gcp":{"compute":{"disk":-1}}}}}`,
	} {
		checkSchema(t, values, false)
	}
}
