package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/install/job/installertest"
)

// release is the namespace that a test installs the chart in. The kustomization has
// another: nothing may rest on its name.
const release = "spare-parts"

func TestTheChartRunsHotspareWithTheRightsThatItGives(t *testing.T) {
	exe, err := installertest.BuildInstaller()
	if err != nil {
		t.Fatal(err)
	}
	cloud := installertest.Cloud(t.TempDir())
	h := own(t, "--hub-only", "--installer", exe)
	h.bare(t)

	t.Log("the hub takes everything that the chart renders, and complains of nothing")
	h.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: release, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	private := cabundletest.NewServer(t, http.NotFoundHandler())
	manifests := h.charted(t, "--set", "dashboards.enabled=true,installers.image=quay.io/openshift-install",
		"--set", "additionalCertificateAuthorities={"+release+"/private-ca}")
	r := h.run(t, manifests, "kubectl", "apply", "--server-side", "-f", "-")
	if n := strings.Count(r.out, "serverside-applied"); r.code != 0 || r.err != "" || n != len(objectsIn(t, manifests)) {
		t.Fatalf("%d of %d objects were applied, exit code %d\n%s", n, len(objectsIn(t, manifests)), r.code, r.all())
	}

	t.Log("the manager runs as its Deployment says, with a token of its ServiceAccount and nothing else")
	m := h.deployed(t)
	m.answers(t, m.probes(t)+"/readyz", "", http.StatusOK, "ok")
	h.servesWell(t)
	h.installsWell(t, cloud, private)
	lease := get(t, h, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: "hotspare-manager"}})
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" {
		t.Error("nobody holds the Lease in the chart's namespace")
	}

	t.Log("the hub has refused it nothing")
	m.mayAll(t)
	m.wasRefusedNothing(t, h.scraper(t, release))
}

// bare takes away the rights and policies that hotspare up brings to its hub, so that
// those of the chart are the only ones. Kinds stay: they let nobody do anything.
func (h *hub) bare(t *testing.T) {
	t.Helper()
	h.kubectl(t, "delete", "-f", filepath.Join(manifests, "admission"), "-f", filepath.Join(manifests, "rbac"))
	h.kubectl(t, "delete", "clusterrolebinding", "hotspare-hub-only-manager", "--ignore-not-found") // of up --hub-only
	left := h.kubectl(t, "get", "clusterrole,clusterrolebinding,validatingadmissionpolicy,mutatingadmissionpolicy", "-o", "name")
	for name := range strings.Lines(left) {
		ours := strings.Contains(name, "hotspare") || strings.Contains(name, "hive")
		if ours && !strings.Contains(name, "/hotspare:admins") {
			t.Errorf("the hub knows of hotspare still: %s", name)
		}
	}
}

// charted is what helm renders for this hub.
func (h *hub) charted(t *testing.T, flags ...string) string {
	t.Helper()
	version := regexp.MustCompile(`(?m)^Server Version: (\S+)$`).FindStringSubmatch(h.kubectl(t, "version"))
	if version == nil {
		t.Fatal("the hub does not tell its version")
	}
	return rendered(t, release, version[1], flags...)
}

// rendered is what helm renders for a hub of that version.
func rendered(t *testing.T, namespace, version string, flags ...string) string {
	t.Helper()
	helm := filepath.Join("..", "..", "bin", "helm")
	args := append([]string{
		"template", "hotspare", filepath.Join("..", "..", "charts", "hotspare"),
		"--namespace", namespace, "--kube-version", version,
	}, flags...)
	cmd := exec.CommandContext(patient(t), helm, args...)
	cmd.Env = environment("HOME="+t.TempDir(), "HELM_NAMESPACE=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("helm %s: %v: build it with make bin/helm\n%s", strings.Join(args, " "), err, &errs)
	}
	return out.String()
}

// objectsIn are the objects of a stream of manifests, by kind, namespace and name.
func objectsIn(t *testing.T, manifests string) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for dec := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096); ; {
		var o unstructured.Unstructured
		if err := dec.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			out[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
		}
	}
}

// deployed runs a manager as the Deployment says: with its flags, but on ports that are
// free, and with the environment of a pod of it.
func (h *hub) deployed(t *testing.T) *replica {
	t.Helper()
	d := get(t, h, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: account}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: release, Name: account + "-0", Labels: d.Spec.Template.Labels},
		Spec:       d.Spec.Template.Spec,
	}
	h.create(t, pod)
	env := []string{"KUBECONFIG=" + h.accessOf(t, release, pod.Spec.ServiceAccountName)}
	own := pod.Spec.Containers[0]
	for _, v := range own.Env {
		switch v.ValueFrom.FieldRef.FieldPath {
		case "metadata.namespace":
			env = append(env, v.Name+"="+pod.Namespace)
		case "metadata.name":
			env = append(env, v.Name+"="+pod.Name)
		default:
			t.Fatalf("nobody has told this test of variable %s", v.Name)
		}
	}
	return runManager(t, env, append(own.Args, "--log-format=text")...)
}

// servesWell has a pool fill up, and its claim served and released.
func (h *hub) servesWell(t *testing.T) {
	t.Helper()
	ns := h.namespace(t)
	p := fakePool(ns, "spares", 2, 1)
	p.Spec.PullSecretRef = &corev1.LocalObjectReference{Name: "pull"}
	h.create(t, secretOf(ns, "pull", hivev1.SecretKeyPullSecret, `{"auths":{}}`), p)
	h.allow(t, "hive-cluster-pool-admin", ns, "admin-of-"+ns)
	h.settled(t, p)
	c := claimOn(p, "mine")
	c.Spec.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "alice"}}
	h.create(t, c)
	cd := h.served(t, c)
	person{h, "alice"}.may(t, "get", "clusterdeployments", "-n", cd.Namespace)
	person{h, "admin-of-" + ns}.may(t, "get", "secrets", "-n", cd.Namespace)
	h.delete(t, c)
	h.gone(t, c)
	h.gone(t, cd)
	h.delete(t, p)
	h.gone(t, p)
}

// installsWell has a cluster made by a Job, and destroyed.
//
// The installer calls an endpoint with a private CA, whose Secret comes when it is missed.
func (h *hub) installsWell(t *testing.T, cloud installertest.Cloud, endpoint *httptest.Server) {
	t.Helper()
	cd := h.ordered(t, h.namespace(t), "ordered", cloud, corev1.EnvVar{Name: installertest.EnvEndpoints, Value: endpoint.URL})
	c := h.conditioned(t, cd, hivev1.ClusterRequirementsMet, corev1.ConditionFalse)
	if want := "Secret private-ca in namespace " + release + " does not exist: create it"; !strings.Contains(c.Message, want) {
		t.Errorf("without the Secret RequirementsMet says %q, want %q", c.Message, want)
	}
	h.create(t, secret(release, "private-ca", map[string][]byte{"ca.crt": cabundletest.CertificatePEM(endpoint)}))
	h.made(t, cd)
	h.delete(t, cd)
	h.gone(t, cd)
	if left := cloud.ListClusters(); len(left) > 0 {
		t.Errorf("in the cloud there is still %v", left)
	}
}

// wasRefusedNothing checks that a manager counts requests to the hub, and none that was
// forbidden.
func (r *replica) wasRefusedNothing(t *testing.T, token string) {
	t.Helper()
	r.answers(t, r.metrics(t)+"/metrics", token, http.StatusOK, `rest_client_requests_total{code="201"`)
	_, text := r.ask(t, r.metrics(t)+"/metrics", token)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "rest_client_requests_total") && strings.Contains(line, `code="403"`) {
			t.Errorf("it lacks a right: %s", line)
		}
	}
}

// The kustomization is made of the chart's sources and of what it renders.
func TestTheChartAndTheKustomizationInstallTheSame(t *testing.T) {
	inParallel(t, 0)
	h := &hub{dir: t.TempDir()}
	plain := objectsIn(t, h.kubectl(t, "kustomize", manifests))
	delete(plain, "Namespace /"+system) // helm makes it, if it is told to
	chart := objectsIn(t, rendered(t, system, "v1.36.0"))
	for _, o := range chart {
		// It makes helm leave them alone when it removes the rest.
		unstructured.RemoveNestedField(o, "metadata", "annotations", "helm.sh/resource-policy")
	}
	if len(chart) < 20 {
		t.Fatalf("the chart renders %d objects: this test looks in the wrong place", len(chart))
	}
	if diff := cmp.Diff(plain, chart); diff != "" {
		t.Errorf("the chart (+) installs something else than the kustomization (-): run make chart, or list what is new in config/kustomization.yaml\n%s", diff)
	}
}
