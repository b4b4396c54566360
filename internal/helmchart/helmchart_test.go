package helmchart

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/helmchart/helmcharttest"
)

func request(files map[string]string) Request {
	return Request{
		Archive: helmcharttest.Package(files), Release: "shop", Namespace: "shops", KubernetesVersion: "v1.36.3",
		APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment"},
	}
}

const service = `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-{{ .Values.color }}
`

func hook(name, events, weight string) string {
	return `apiVersion: batch/v1
kind: Job
metadata:
  name: ` + name + `
  annotations: {helm.sh/hook: "` + events + `", helm.sh/hook-weight: "` + weight + `"}
`
}

var name = regexp.MustCompile(`name: ([a-z-]+)`)

func TestAChartIsRenderedInPhases(t *testing.T) {
	r := request(map[string]string{
		"values.yaml": "color: red\n", "crds/things.yaml": "kind: CustomResourceDefinition\n", "templates/service.yaml": service,
		"templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n",
		"templates/before.yaml":  hook("late", "pre-install", "5"), "templates/first.yaml": hook("early", "pre-install,pre-upgrade", "-5"),
		"templates/after.yaml": hook("after", "post-install", "0"), "templates/test.yaml": hook("test", "test", "0"),
		"templates/upgrade.yaml": hook("upgrade", "post-upgrade", "0"), "templates/NOTES.txt": "Thank you.", "templates/_helpers.tpl": `{{ define "x" }}x{{ end }}`,
		"templates/nothing.yaml": `{{ if .Capabilities.APIVersions.Has "example.com/v1" }}kind: Thing{{ end }}`,
	})
	r.Values = map[string]any{"color": "blue"}
	phases, err := Render(r)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range phases {
		for _, m := range p.Manifests {
			got = append(got, p.Name+": "+name.FindStringSubmatch(m + " name: none")[1])
		}
	}
	want := []string{
		"CustomResourceDefinitions: none", "pre-install hooks of weight -5: early", "pre-install hooks of weight 5: late",
		"objects: a", "objects: shop-blue", "post-install hooks of weight 0: after",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
	if !phases[1].Hooks || phases[3].Hooks {
		t.Errorf("the marks of hooks are wrong: %+v", phases)
	}
}

func TestAChartThatCannotBeRenderedSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no chart":          {map[string]string{"Chart.yaml": "{}"}, "it is not a packaged chart, as helm package writes it: validation: chart.metadata.name is required"},
		"a library":         {map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\ntype: library\n"}, "only charts of type application can be installed"},
		"another version":   {map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\nkubeVersion: \"<1.30.0\"\n"}, "chart web is for Kubernetes <1.30.0, and the cluster has v1.36.3"},
		"a missing chart":   {map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\ndependencies: [{name: redis, version: 1.0.0, repository: https://example.com}]\n"}, "needs redis, which the archive does not contain"},
		"a missing value":   {map[string]string{"templates/a.yaml": `{{ required "set host" .Values.host }}`}, "set host"},
		"a broken template": {map[string]string{"templates/a.yaml": "{{ if }}"}, "missing value for if"},
		"broken YAML":       {map[string]string{"templates/a.yaml": "a: b: c"}, "renders no valid manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Render(request(tc.files)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	r := request(nil)
	r.Archive = []byte("no archive")
	if _, err := Render(r); err == nil || !strings.Contains(err.Error(), "as helm package writes it") {
		t.Errorf("got %v", err)
	}
	r = request(nil)
	r.KubernetesVersion = "none"
	if _, err := Render(r); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("got %v", err)
	}
}

// A schema may refer to files: it is not read.
func TestTheSchemaOfAChartReadsNoFile(t *testing.T) {
	_, err := Render(request(map[string]string{
		"values.schema.json": `{"$ref": "file:///etc/passwd"}`, "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
	}))
	if err != nil {
		t.Error(err)
	}
}
