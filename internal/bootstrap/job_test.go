package bootstrap

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// jobBootstrap returns a bootstrap with a Job whose environment is that of ConfigMap c and Secret s.
func jobBootstrap(change func(*v1alpha1.BootstrapJob)) *v1alpha1.ClusterBootstrap {
	b := bootstrapOf(object)
	j := &v1alpha1.BootstrapJob{Image: "i", Command: []string{"helm", "install"}, EnvFrom: b.Spec.Steps[0].Manifests.From}
	change(j)
	b.Spec.Steps = []v1alpha1.BootstrapStep{{Name: "charts", Job: j}}
	return b
}

func TestAJobHasTheRightsThatItIsGiven(t *testing.T) {
	for _, admin := range []bool{false, true} {
		b := jobBootstrap(func(j *v1alpha1.BootstrapJob) { j.ClusterAdmin = admin })
		r := NewRequirement(b, sources("one", "hunter22"))
		if r.Problem != "" || r.Steps[0].Job == nil || !r.Unwatched {
			t.Fatalf("got %+v", r)
		}
		j := r.Steps[0].Job
		var kinds, temporary []string
		for _, m := range j.Manifests {
			kinds = append(kinds, fmt.Sprintf("%s %s", m.Object.GetKind(), m.Object.GetNamespace()))
		}
		for _, m := range j.Manifests[1:] {
			if v := m.Object.GetLabels()["hotspare.io/bootstrap-version"]; v != r.Version {
				t.Errorf("%s has version %q, want %q", m.Object.GetKind(), v, r.Version)
			}
		}
		ofPod, _, err := unstructured.NestedStringMap(j.Manifests[len(j.Manifests)-1].Object.Object, "spec", "template", "metadata", "labels")
		if err != nil || ofPod["hotspare.io/bootstrap-version"] != r.Version {
			t.Errorf("the pod has labels %v, %v", ofPod, err)
		}
		for _, u := range j.Temporary {
			temporary = append(temporary, u.GetKind())
		}
		want, gone := "Namespace |ServiceAccount hotspare-bootstrap|Secret hotspare-bootstrap|Job hotspare-bootstrap", "ServiceAccount Secret"
		if admin {
			want, gone = "Namespace |ClusterRoleBinding |"+strings.TrimPrefix(want, "Namespace |"), "ClusterRoleBinding "+gone
		}
		if got := strings.Join(kinds, "|"); got != want {
			t.Errorf("admin %t: got %s", admin, got)
		}
		if got := strings.Join(temporary, " "); got != gone {
			t.Errorf("admin %t: %s are deleted", admin, got)
		}
		raw, err := json.Marshal(j.Manifests[len(j.Manifests)-1].Object)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`"command":["helm","install"]`, `"image":"i"`, fmt.Sprintf(`"automountServiceAccountToken":%t`, admin), `"name":"` + j.Name + `"`} {
			if !strings.Contains(string(raw), part) {
				t.Errorf("the Job lacks %s: %s", part, raw)
			}
		}
		if strings.Contains(string(raw), "hunter22") || !strings.Contains(strings.Join(r.SecretTexts(), " "), "hunter22") {
			t.Errorf("the environment is not secret: %s", raw)
		}
	}
}

func TestTheEnvironmentOfAJobIsPartOfTheVersion(t *testing.T) {
	none := func(*v1alpha1.BootstrapJob) {}
	one, two := NewRequirement(jobBootstrap(none), sources("one", "x")), NewRequirement(jobBootstrap(none), sources("one", "y"))
	if one.Version == two.Version || one.Steps[0].Job.Name == two.Steps[0].Job.Name {
		t.Errorf("another environment has the same version %s, and the same Job %s", one.Version, one.Steps[0].Job.Name)
	}
	if r := NewRequirement(jobBootstrap(none), nil); r.Problem != "ConfigMap c of ClusterBootstrap b does not exist: create it" {
		t.Errorf("got %q", r.Problem)
	}
}
