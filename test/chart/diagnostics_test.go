package chart

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"hotspare.io/hotspare/internal/helmchart"
	"hotspare.io/hotspare/internal/helmchart/helmcharttest"
)

var folder = filepath.Join("..", "..", "charts", "hotspare")

// readChart returns the files of the chart that matter here: the kinds and policies are large.
func readChart(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil || strings.HasPrefix(name, "files"+string(filepath.Separator)) {
			return err
		}
		raw, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// parseValues parses values as JSON.
func parseValues(t *testing.T, text string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// rendered is what concerns the diagnostics.
type rendered struct {
	manager *appsv1.Deployment
	claim   *corev1.PersistentVolumeClaim
	account *corev1.ServiceAccount
}

// render renders the chart for values, without the kinds and policies.
func render(t *testing.T, values string) (rendered, error) {
	t.Helper()
	all := parseValues(t, values)
	all["crds"], all["admission"] = map[string]any{"enabled": false}, map[string]any{"enabled": false}
	phases, err := helmchart.Render(helmchart.Request{
		Archive: helmcharttest.Package(readChart(t)), Release: "hotspare", Namespace: "hotspare-system", Values: all, KubernetesVersion: "v1.36.0",
	})
	var out rendered
	for _, p := range phases {
		for _, m := range p.Manifests {
			out.add(t, m)
		}
	}
	return out, err
}

func (r *rendered) add(t *testing.T, manifest string) {
	t.Helper()
	var into any
	switch {
	case strings.Contains(manifest, "kind: Deployment"):
		r.manager = &appsv1.Deployment{}
		into = r.manager
	case strings.Contains(manifest, "kind: PersistentVolumeClaim"):
		r.claim = &corev1.PersistentVolumeClaim{}
		into = r.claim
	case strings.Contains(manifest, "\nkind: ServiceAccount\n"):
		r.account = &corev1.ServiceAccount{}
		into = r.account
	default:
		return
	}
	if err := yaml.UnmarshalStrict([]byte(manifest), into); err != nil {
		t.Errorf("%v in\n%s", err, manifest)
	}
}

// describe says in a line what the manager has for diagnostics.
func (r *rendered) describe() string {
	var parts []string
	spec := r.manager.Spec.Template.Spec
	for _, a := range spec.Containers[0].Args {
		if strings.HasPrefix(a, "--diagnostics") {
			parts = append(parts, a)
		}
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		parts = append(parts, "mount "+m.Name+" "+m.MountPath)
	}
	for _, v := range spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			parts = append(parts, "claim "+v.PersistentVolumeClaim.ClaimName)
		case v.EmptyDir != nil:
			parts = append(parts, "empty "+v.EmptyDir.SizeLimit.String())
		}
	}
	for _, e := range spec.Containers[0].EnvFrom {
		parts = append(parts, "env "+e.SecretRef.Name)
	}
	if r.manager.Spec.Strategy.Type != "" {
		parts = append(parts, string(r.manager.Spec.Strategy.Type))
	}
	if c := r.claim; c != nil {
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		parts = append(parts, "new "+c.Name+" "+size.String()+" "+string(c.Spec.AccessModes[0])+" "+c.Annotations["helm.sh/resource-policy"])
	}
	return strings.Join(parts, ", ")
}

func TestWhereBundlesAreStored(t *testing.T) {
	const mounted = "--diagnostics=/var/lib/hotspare/diagnostics, mount diagnostics /var/lib/hotspare/diagnostics, "
	for name, c := range map[string]struct{ values, want string }{
		"nowhere by default":                   {`{}`, ""},
		"in a bucket, with a role":             {`{"diagnostics":{"bucket":"s3://bundles/p?region=eu-west-1"}}`, "--diagnostics=s3://bundles/p?region=eu-west-1"},
		"in a bucket, with a Secret":           {`{"diagnostics":{"bucket":"s3://bundles/p?a=1&b=2","credentials":"keys"}}`, "--diagnostics=s3://bundles/p?a=1&b=2, env keys"},
		"in a volume of the pod":               {`{"diagnostics":{"volume":{"enabled":true}}}`, mounted + "empty 2Gi"},
		"in an existing claim":                 {`{"diagnostics":{"volume":{"enabled":true,"existingClaim":"mine"}}}`, mounted + "claim mine"},
		"in a new claim":                       {`{"diagnostics":{"volume":{"enabled":true,"size":"3Gi"}}}`, mounted + "claim hotspare-diagnostics, new hotspare-diagnostics 3Gi ReadWriteMany keep"},
		"an existing claim is not made":        {`{"diagnostics":{"volume":{"enabled":true,"size":"3Gi","existingClaim":"mine"}}}`, mounted + "claim mine"},
		"a claim of one pod, which is stopped": {`{"replicas":1,"diagnostics":{"volume":{"enabled":true,"size":"3Gi","accessMode":"ReadWriteOnce"}}}`, mounted + "claim hotspare-diagnostics, Recreate, new hotspare-diagnostics 3Gi ReadWriteOnce keep"},
		"a volume that is not enabled":         {`{"diagnostics":{"volume":{"existingClaim":"mine"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := render(t, c.values)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.describe(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			checkSchema(t, c.values, true)
		})
	}
}

func TestTheGroupOfTheVolumeAndTheRoleOfTheAccount(t *testing.T) {
	r, err := render(t, `{"diagnostics":{"volume":{"enabled":true,"fsGroup":65532}},"serviceAccount":{"annotations":{"eks.amazonaws.com/role-arn":"arn:aws:iam::1:role/x"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.manager.Spec.Template.Spec.SecurityContext.FSGroup; g == nil || *g != 65532 {
		t.Errorf("fsGroup is %v", g)
	}
	if got := r.account.Annotations["eks.amazonaws.com/role-arn"]; got != "arn:aws:iam::1:role/x" {
		t.Errorf("the role is %q", got)
	}
	if r, err = render(t, `{}`); err != nil || r.manager.Spec.Template.Spec.SecurityContext.FSGroup != nil || len(r.account.Annotations) > 0 {
		t.Errorf("by default: %v, %+v", err, r)
	}
}

func TestValuesThatDoNotFitAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		`{"diagnostics":{"bucket":"s3://bundles","volume":{"enabled":true}}}`:                                "exclude each other",
		`{"diagnostics":{"credentials":"keys"}}`:                                                             "without diagnostics.bucket",
		`{"diagnostics":{"volume":{"enabled":true,"size":"3Gi","accessMode":"ReadWriteOnce"}}}`:              "set replicas to 1",
		`{"diagnostics":{"volume":{"enabled":true,"existingClaim":"mine","accessMode":"ReadWriteOncePod"}}}`: "set replicas to 1",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
	for _, values := range []string{
		`{"diagnostics":{"bucket":"/folder"}}`, `{"diagnostics":{"bucket":"https://b"}}`, `{"diagnostics":{"volume":{"size":"big"}}}`,
		`{"diagnostics":{"volume":{"accessMode":"ReadOnlyMany"}}}`, `{"diagnostics":{"volumes":{}}}`, `{"serviceAccount":{"name":"x"}}`,
	} {
		checkSchema(t, values, false)
	}
}

// checkSchema checks whether the schema of the chart accepts values.
func checkSchema(t *testing.T, values string, accepts bool) {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join(folder, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := chartutil.ValidateAgainstSingleSchema(parseValues(t, values), schema); (err == nil) != accepts {
		t.Errorf("the schema says about %s: %v", values, err)
	}
}
