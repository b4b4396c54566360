package bootstrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func fromConfigMap(name string) v1alpha1.ManifestSource {
	return v1alpha1.ManifestSource{ConfigMapRef: &v1alpha1.ManifestReference{Name: name}}
}

func fromSecret(name string) v1alpha1.ManifestSource {
	return v1alpha1.ManifestSource{SecretRef: &v1alpha1.ManifestReference{Name: name}}
}

// chartBootstrap returns a bootstrap with a chart, and its sources: the archive in ConfigMap web, values in ConfigMap c
// and Secret s.
func chartBootstrap() (*v1alpha1.ClusterBootstrap, map[Reference]Source) {
	b := &v1alpha1.ClusterBootstrap{}
	b.Name = "b"
	b.Spec.Steps = []v1alpha1.BootstrapStep{{Name: "shop", Chart: &v1alpha1.BootstrapChart{
		ArchiveFrom: fromConfigMap("web"),
		Values:      &runtime.RawExtension{Raw: []byte(`{"color":"red","ingress":{"host":"a","tls":true},"list":[1,2]}`)},
		ValuesFrom:  []v1alpha1.ManifestSource{fromConfigMap("c")},
	}}}
	return b, map[Reference]Source{
		{Name: "web"}:             {UID: "1", Binary: map[string]string{"web.tgz": "\x1f\x8b\xff\xfe"}},
		{Name: "c"}:               {UID: "2", Data: map[string]string{"a.yaml": "color: blue\nlist: [3]\n", "b.yaml": "ingress: {host: b}\n"}},
		{Name: "s", Secret: true}: {UID: "3", Data: map[string]string{"values.yaml": "password: hunter22\n"}},
	}
}

func TestTheValuesOfAChartAreMergedInOrder(t *testing.T) {
	b, sources := chartBootstrap()
	r := NewRequirement(b, sources)
	if r.Problem != "" || !r.Unwatched {
		t.Fatalf("got %+v", r)
	}
	c := r.Steps[0].Chart
	want := map[string]any{"color": "blue", "list": []any{float64(3)}, "ingress": map[string]any{"host": "b", "tls": true}}
	if diff := cmp.Diff(want, c.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if c.Release != "shop" || c.Namespace != "default" || c.Secret || !strings.HasPrefix(c.Record, "chart-shop-") || string(c.Archive) != "\x1f\x8b\xff\xfe" {
		t.Errorf("got %+v", c)
	}
	if c.Version != r.Version {
		t.Errorf("its version is %q, want %q", c.Version, r.Version)
	}
	if texts := r.SecretTexts(); len(texts) > 0 {
		t.Errorf("secret texts %q", texts)
	}
}

func TestAChartWithASecretIsSecret(t *testing.T) {
	b, sources := chartBootstrap()
	b.Spec.Steps[0].Chart.ValuesFrom = append(b.Spec.Steps[0].Chart.ValuesFrom, fromSecret("s"))
	r := NewRequirement(b, sources)
	if r.Problem != "" || !r.Steps[0].Chart.Secret || !strings.Contains(strings.Join(r.SecretTexts(), " "), "hunter22") {
		t.Errorf("got %+v, secret texts %q", r, r.SecretTexts())
	}
}

func TestAnotherArchiveIsAnotherVersion(t *testing.T) {
	b, sources := chartBootstrap()
	versions := map[string]string{}
	for name, change := range map[string]func(){
		"as it is":     func() {},
		"other bytes":  func() { sources[Reference{Name: "web"}].Binary["web.tgz"] = "\x1f\x8b\xff\xfd" },
		"other values": func() { b.Spec.Steps[0].Chart.Values.Raw = []byte(`{"color":"green"}`) },
		"a namespace":  func() { b.Spec.Steps[0].Chart.Namespace = "web" },
	} {
		b, sources = chartBootstrap()
		change()
		v := NewRequirement(b, sources).Version
		if other, found := versions[v]; found {
			t.Errorf("%s and %s have version %s", name, other, v)
		}
		versions[v] = name
	}
}

func TestAChartThatCannotBeUsedIsAProblem(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.ClusterBootstrap, map[Reference]Source)
		want   string
	}{
		"no archive": {func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) { delete(s, Reference{Name: "web"}) }, "ConfigMap web of ClusterBootstrap b does not exist: create it"},
		"two keys": {func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "web"}] = Source{Data: map[string]string{"a": "1", "b": "2"}}
		}, "ConfigMap web has 2 keys, and must have one: the packaged chart"},
		"a text": {func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "web"}] = Source{Data: map[string]string{"Chart.yaml": "name: web"}}
		}, "ConfigMap web has no packaged chart in its key Chart.yaml"},
		"values that are a list": {func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "c"}] = Source{Data: map[string]string{"v": "- hunter22"}}
		}, "key v of ConfigMap c: it is not an object"},
		"values that are no YAML": {func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "c"}] = Source{Data: map[string]string{"v": "a: b: hunter22"}}
		}, "key v of ConfigMap c: it is not valid YAML"},
		"values of another type": {func(b *v1alpha1.ClusterBootstrap, _ map[Reference]Source) {
			b.Spec.Steps[0].Chart.Values.Raw = []byte(`"hunter22"`)
		}, "chart.values: it is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			b, sources := chartBootstrap()
			tc.change(b, sources)
			r := NewRequirement(b, sources)
			if !strings.Contains(r.Problem, tc.want) || strings.Contains(r.Problem, "hunter22") || r.Version != Unresolved {
				t.Errorf("got %+v, want %q", r, tc.want)
			}
		})
	}
	b, _ := chartBootstrap()
	b.Spec.Steps[0].Chart.Values.Raw = []byte(`[]`)
	if err := CheckSteps(b.Spec.Steps); err == nil || !strings.Contains(err.Error(), "spec.steps[0].chart.values of step shop is not valid: it is not an object") {
		t.Errorf("got %v", err)
	}
}
