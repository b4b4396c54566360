package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/helmchart/helmcharttest"
)

// webSteps is a bootstrap with a Deployment, whose namespace comes later in the step, a Job, a chart, and then a Service
// of Secret exposed.
func webSteps(namespace string) *v1alpha1.ClusterBootstrap {
	object := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	return &v1alpha1.ClusterBootstrap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: v1alpha1.ClusterBootstrapSpec{Steps: []v1alpha1.BootstrapStep{
			{Name: "web", Manifests: &v1alpha1.BootstrapManifests{Objects: []runtime.RawExtension{
				object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"web"},"data":{"color":"blue"}}`),
				object(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"registry.example/web"}]}}}}`),
				object(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"web"}}`),
			}}},
			{Name: "migrate", Job: &v1alpha1.BootstrapJob{
				Image: "registry.example/migrate", ClusterAdmin: true, EnvFrom: []v1alpha1.ManifestSource{{SecretRef: &v1alpha1.ManifestReference{Name: "exposed"}}},
			}},
			{Name: "shop", Chart: &v1alpha1.BootstrapChart{
				ArchiveFrom: v1alpha1.ManifestSource{ConfigMapRef: &v1alpha1.ManifestReference{Name: "shop-chart"}}, Namespace: "shop",
				Values: ptr.To(object(`{"color":"red"}`)),
			}},
			{Name: "service", Manifests: &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{{SecretRef: &v1alpha1.ManifestReference{Name: "exposed"}}}}},
		}},
	}
}

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
`

// shopChart is a chart with a hook, and a value that the chart makes up.
var shopChart = map[string]string{
	"templates/hook.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: before, image: registry.example/before}]
`,
	"templates/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data:
  color: {{ .Values.color }}
  password: {{ randAlphaNum 16 }}
  version: {{ .Capabilities.KubeVersion.Version }}
`,
}

// checkShop checks what shopChart has installed.
func checkShop(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	settings, err := admin.CoreV1().ConfigMaps("shop").Get(t.Context(), "shop-settings", metav1.GetOptions{})
	if err != nil || settings.Data["color"] != "red" || len(settings.Data["password"]) != 16 || !strings.HasPrefix(settings.Data["version"], "v1.") ||
		settings.Annotations["meta.helm.sh/release-name"] != "shop" {
		t.Errorf("the ConfigMap of the chart is %+v, %v", settings, err)
	}
	if before, err := admin.BatchV1().Jobs("shop").Get(t.Context(), "before", metav1.GetOptions{}); err != nil || before.Status.Succeeded != 1 {
		t.Errorf("the hook is %+v, %v", before, err)
	}
	records, err := admin.CoreV1().Secrets(bootstrap.JobNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(records.Items) != 1 || string(records.Items[0].Data["installed"]) != "all" || len(records.Items[0].Data) != 1 {
		t.Errorf("the record of the chart is %+v, %v", records, err)
	}
}

// bootstrapIs waits until the only spare of a pool has a condition with these words, and returns the spare.
func (h *hub) bootstrapIs(t *testing.T, p *hivev1.ClusterPool, status corev1.ConditionStatus, words string) *hivev1.ClusterDeployment {
	t.Helper()
	var spare *hivev1.ClusterDeployment
	eventually(t, fmt.Sprintf("condition Bootstrapped of a spare of %s is %s, %q", p.Name, status, words), func(context.Context) error {
		spare = nil
		for _, cd := range h.clusters(t, p) {
			if cd.Spec.ClusterPoolRef.ClaimName == "" && cd.DeletionTimestamp == nil {
				spare = &cd
			}
		}
		if spare == nil {
			return fmt.Errorf("there is no spare")
		}
		c := condition.Find(spare.Status.Conditions, hivev1.ClusterBootstrapped)
		if c == nil || c.Status != status || !strings.Contains(c.Message, words) {
			return fmt.Errorf("the condition of %s, which is %s, is %+v", spare.Name, spare.Status.PowerState, c)
		}
		return nil
	})
	return spare
}

// A claim gets a cluster that has what the steps of the bootstrap put into it. A manifest that the cluster refuses
// keeps it from claims, and the condition says why, without the value of a Secret.
func TestAClaimGetsAClusterWithItsBootstrap(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := localPool(ns, "dev", 1, 1)
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
		Spec:       v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "web"}},
	}
	const password = "opensesame-31"
	exposed := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "exposed"},
		StringData: map[string]string{"service.yaml": strings.Replace(webService, "ports:", "clusterIP: "+password+"\n  ports:", 1)},
	}
	chart := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop-chart"}, BinaryData: map[string][]byte{"shop-1.2.3.tgz": helmcharttest.Package(shopChart)},
	}
	h.create(t, exposed, chart, webSteps(ns), policy, pool)
	const refused = "Step 4 of 4, service: Service web/web: the cluster refuses it: Invalid (FieldValueInvalid at spec.clusterIPs[0]"
	spare := h.bootstrapIs(t, pool, corev1.ConditionFalse, refused)
	says(t, h.hotspare(t, "-n", ns, "explain", "pool", "dev"), "bootstrapping 1")
	says(t, h.hotspare(t, "explain", "cluster", spare.Name, "-n", spare.Namespace), "takes the steps of the bootstrap: "+refused, "it counts as broken in")
	raw, err := json.Marshal(spare.Status)
	if err != nil {
		t.Fatal(err)
	}
	if events := h.kubectl(t, "get", "events", "-A", "-o", "yaml"); strings.Contains(string(raw)+events, password) {
		t.Errorf("a value of the Secret is shown: %s", raw)
	}
	if log, err := os.ReadFile(h.log()); err != nil || strings.Contains(string(log), password) {
		t.Errorf("a value of the Secret is logged, %v", err)
	}
	first := claimOn(pool, "first")
	h.create(t, first)
	h.conditioned(t, first, hivev1.ClaimPending, corev1.ConditionTrue)

	t.Log("a person corrects it: another cluster takes the steps, and the claim gets it")
	exposed.StringData = map[string]string{"service.yaml": webService}
	if err := h.Update(t.Context(), exposed); err != nil {
		t.Fatal(err)
	}
	cd := h.served(t, first)
	if cd.Name == spare.Name {
		t.Errorf("the claim has cluster %s, which has begun other steps", cd.Name)
	}
	if r := cd.Status.Bootstrap; r == nil || r.FinishedAt == nil || strings.Join(r.StepsDone, " ") != "web migrate shop service" {
		t.Errorf("its record is %+v", r)
	}
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(pool), pool); err != nil || pool.Status.StepsVersion != cd.Status.Bootstrap.Version || pool.Status.GatesVersion != "" {
		t.Errorf("the pool requires steps %q and gates %q, and the cluster has taken steps %q, %v",
			pool.Status.StepsVersion, pool.Status.GatesVersion, cd.Status.Bootstrap.Version, err)
	}
	admin := kubernetes.NewForConfigOrDie(h.spoke(t, cd))
	settings, err := admin.CoreV1().ConfigMaps("web").Get(t.Context(), "settings", metav1.GetOptions{})
	if err != nil || settings.Data["color"] != "blue" || len(settings.ManagedFields) == 0 || settings.ManagedFields[0].Manager != "hotspare" {
		t.Errorf("the ConfigMap is %+v, %v", settings, err)
	}
	if web, err := admin.AppsV1().Deployments("web").Get(t.Context(), "web", metav1.GetOptions{}); err != nil || web.Status.AvailableReplicas != 1 {
		t.Errorf("the Deployment is %+v, %v", web, err)
	}
	if _, err := admin.CoreV1().Services("web").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("the Service: %v", err)
	}
	jobs, err := admin.BatchV1().Jobs(bootstrap.JobNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 1 || jobs.Items[0].Status.Succeeded != 1 {
		t.Fatalf("the Jobs are %+v, %v", jobs, err)
	}
	checkShop(t, admin)
	if _, err := admin.RbacV1().ClusterRoleBindings().Get(t.Context(), bootstrap.JobNamespace+"-"+jobs.Items[0].Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Job has its rights still: %v", err)
	}
	if _, err := admin.CoreV1().Secrets(bootstrap.JobNamespace).Get(t.Context(), jobs.Items[0].Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("its environment is still there: %v", err)
	}
	h.hotspare(t, "claim", "release", "first", "-n", ns, "--wait")
	h.hotspare(t, "pool", "delete", "dev", "-n", ns)
}

// The first bootstrap of a pool that has spares: they take its steps after one another, where they are.
func TestTheFirstBootstrapOfAPoolKeepsItsSpares(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 3, 3)
	h.create(t, pool)
	older := map[string]bool{}
	eventually(t, "three spares that were installed seconds ago", func(context.Context) error {
		for _, cd := range h.clusters(t, pool) {
			if at := cd.Status.InstalledTimestamp; cd.Status.PowerState == hivev1.StatusRunning && at != nil && time.Since(at.Time) > 2*time.Second {
				older[cd.Name] = true
			}
		}
		if len(older) != 3 {
			return fmt.Errorf("%v", older)
		}
		return nil
	})
	h.create(t, webSteps(ns), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop-chart"}, BinaryData: map[string][]byte{"shop-1.2.3.tgz": helmcharttest.Package(shopChart)},
	}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "exposed"}, StringData: map[string]string{"service.yaml": webService}},
		&v1alpha1.PoolPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
			Spec:       v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "web"}},
		})
	eventually(t, "all three have taken the steps", func(context.Context) error {
		done := 0
		for _, cd := range h.clusters(t, pool) {
			if !older[cd.Name] {
				t.Errorf("the pool has created %s: %s", cd.Name, cd.Status.PowerState)
			}
			if bootstrap.IsFinished(&cd) {
				done++
			}
		}
		if done != 3 {
			return fmt.Errorf("%d have", done)
		}
		return nil
	})
	h.eventsSay(t, ns, "Bootstrapping", "takes the steps of the bootstrap: it was installed before the bootstrap of the pool had steps")
}
