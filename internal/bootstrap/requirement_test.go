package bootstrap

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// bootstrapOf returns a bootstrap with one step: an object, a ConfigMap c and a Secret s.
func bootstrapOf(object string) *v1alpha1.ClusterBootstrap {
	b := &v1alpha1.ClusterBootstrap{}
	b.Name = "b"
	b.Spec.Steps = []v1alpha1.BootstrapStep{{Name: "base", Manifests: &v1alpha1.BootstrapManifests{
		Objects: []runtime.RawExtension{{Raw: []byte(object)}},
		From: []v1alpha1.ManifestSource{
			{ConfigMapRef: &v1alpha1.ManifestReference{Name: "c"}}, {SecretRef: &v1alpha1.ManifestReference{Name: "s"}},
		},
	}}}
	return b
}

const (
	object = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"o","uid":"u"},"status":{}}`
	config = "# first\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c1}\n--- \nkind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: c2, namespace: ns}}\n- {apiVersion: v1, kind: Secret, metadata: {name: c3}, stringData: {a: opensesame}}\n"
	secret = "{apiVersion: x.io/v1, kind: X, metadata: {name: s1}, spec: {password: hunter22, n: 123456}}"
)

func sources(config, secret string) map[Reference]Source {
	return map[Reference]Source{
		{Name: "c"}:               {UID: "u1", Data: map[string]string{"a.yaml": config}},
		{Name: "s", Secret: true}: {UID: "u2", Data: map[string]string{"z": "", "a": secret}},
	}
}

func TestManifestsAreReadInOrder(t *testing.T) {
	r := NewRequirement(bootstrapOf(object), sources(config, secret))
	if r.Problem != "" || len(r.Steps) != 1 || !r.Unwatched {
		t.Fatalf("got %+v", r)
	}
	var got []string
	for _, m := range r.Steps[0].Manifests {
		got = append(got, fmt.Sprintf("%s %s %t", m.Object.GetKind(), m.Object.GetName(), m.Secret))
	}
	if text := strings.Join(got, ", "); text != "Namespace o false, ConfigMap c1 false, Pod c2 false, Secret c3 true, X s1 true" {
		t.Errorf("got %s", text)
	}
	if u := r.Steps[0].Manifests[0].Object.Object; u["status"] != nil || u["metadata"].(map[string]any)["uid"] != nil {
		t.Errorf("the cluster's own fields are applied: %v", u)
	}
	if texts := strings.Join(r.SecretTexts(), " "); !strings.Contains(texts, "hunter22") || !strings.Contains(texts, "123456") || !strings.Contains(texts, "opensesame") {
		t.Errorf("the secrets are %q", texts)
	}
}

// The version must not change by an upgrade of hotspare: every spare would be replaced.
func TestTheVersionOfSteps(t *testing.T) {
	version := func(change func(*v1alpha1.ClusterBootstrap, map[Reference]Source)) string {
		b, s := bootstrapOf(object), sources(config, secret)
		change(b, s)
		return NewRequirement(b, s).Version
	}
	same := version(func(*v1alpha1.ClusterBootstrap, map[Reference]Source) {})
	if same != "50386dcaaf348916" {
		t.Errorf("the version is %s", same)
	}
	for name, change := range map[string]func(*v1alpha1.ClusterBootstrap, map[Reference]Source){
		"another timeout": func(b *v1alpha1.ClusterBootstrap, _ map[Reference]Source) { b.Spec.Steps[0].Timeout = "1h" },
		"gates": func(b *v1alpha1.ClusterBootstrap, _ map[Reference]Source) {
			b.Spec.Gates = []v1alpha1.Gate{{Name: "a"}}
		},
		"another order of the keys": func(b *v1alpha1.ClusterBootstrap, _ map[Reference]Source) {
			b.Spec.Steps[0].Manifests.Objects[0].Raw = []byte(`{"kind":"Namespace","status":{},"apiVersion":"v1","metadata":{"uid":"u","name":"o"}}`)
		},
		"the same ConfigMap again": func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "c"}] = Source{UID: "u9", Data: map[string]string{"a.yaml": config}}
		},
	} {
		if got := version(change); got != same {
			t.Errorf("%s changes the version", name)
		}
	}
	for name, change := range map[string]func(*v1alpha1.ClusterBootstrap, map[Reference]Source){
		"another name":   func(b *v1alpha1.ClusterBootstrap, _ map[Reference]Source) { b.Spec.Steps[0].Name = "x" },
		"another object": func(b *v1alpha1.ClusterBootstrap, _ map[Reference]Source) { b.Spec.Steps[0].Manifests.Objects = nil },
		"another ConfigMap": func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "c"}].Data["a.yaml"] += "#"
		},
		"another key": func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "c"}].Data["b.yaml"] = ""
		},
		"another Secret": func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			s[Reference{Name: "s", Secret: true}].Data["a"] += "#"
		},
		"the Secret's UID": func(_ *v1alpha1.ClusterBootstrap, s map[Reference]Source) {
			r := Reference{Name: "s", Secret: true}
			s[r] = Source{UID: "u9", Data: s[r].Data}
		},
	} {
		if got := version(change); got == same || got == Unresolved {
			t.Errorf("%s does not change the version: %s", name, got)
		}
	}
}

func TestWhatCannotBeApplied(t *testing.T) {
	for name, tc := range map[string]struct {
		config, secret, want string
	}{
		"no ConfigMap":          {"", secret, "ConfigMap c of ClusterBootstrap b does not exist: create it"},
		"no Secret":             {config, "", "Secret s of ClusterBootstrap b does not exist: create it"},
		"not YAML":              {config, "hunter22: {", "step base of ClusterBootstrap b cannot be used: key a of Secret s: document 1 is not valid YAML, line 1"},
		"a key twice":           {"a: 1\na: 2", secret, "step base of ClusterBootstrap b cannot be used: key a.yaml of ConfigMap c: document 1 is not valid YAML, line 2"},
		"not an object":         {config, "hunter22", "step base of ClusterBootstrap b cannot be used: key a of Secret s: document 1: it is not an object"},
		"no name":               {"{apiVersion: v1, kind: Pod}", secret, "step base of ClusterBootstrap b cannot be used: key a.yaml of ConfigMap c: document 1: metadata.name is missing"},
		"a name that is a path": {config, "{apiVersion: v1, kind: Pod, metadata: {name: ../hunter22}}", "step base of ClusterBootstrap b cannot be used: key a of Secret s: document 1: metadata.name is not valid"},
		"a kind that is a list": {config, "{apiVersion: v1, kind: [hunter22], metadata: {name: x}}", "step base of ClusterBootstrap b cannot be used: key a of Secret s: document 1: kind is not a string"},
		"an item of a list":     {"{apiVersion: v1, kind: List, items: [{kind: Pod}]}", secret, "step base of ClusterBootstrap b cannot be used: key a.yaml of ConfigMap c: document 1: items[0]: apiVersion is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sources(tc.config, tc.secret)
			if tc.config == "" {
				delete(s, Reference{Name: "c"})
			}
			if tc.secret == "" {
				delete(s, Reference{Name: "s", Secret: true})
			}
			r := NewRequirement(bootstrapOf(object), s)
			if r.Problem != tc.want || r.Version != Unresolved || !r.Unwatched {
				t.Errorf("got %q of version %s", r.Problem, r.Version)
			}
		})
	}
	b := bootstrapOf(`{"apiVersion":"v1","kind":"Pod","metadata":{}}`)
	want := "spec.steps[0].manifests.objects[0] of step base is not valid: metadata.name is missing"
	if err := CheckSteps(b.Spec.Steps); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if r := NewRequirement(&v1alpha1.ClusterBootstrap{}, nil); r.Version != "" || r.Problem != "" {
		t.Errorf("a bootstrap without steps requires %+v", r)
	}
}
