package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// TestCIOperatorTakesAClusterAndGivesItBack does what its step cluster-claim does.
func TestCIOperatorTakesAClusterAndGivesItBack(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	labels := map[string]string{"product": "ocp", "version": "4.18", "architecture": "amd64", "cloud": "aws", "owner": pool.Namespace}
	pool.Labels = labels
	h.create(t, pool)
	h.settled(t, pool)

	t.Log("it picks a pool by labels, first of architecture multi, then amd64")
	var pools hivev1.ClusterPoolList
	for architecture, want := range map[string]int{"multi": 0, "amd64": 1} {
		wanted := client.MatchingLabels{"product": "ocp", "version": "4.18", "architecture": architecture, "cloud": "aws", "owner": pool.Namespace}
		if err := h.List(t.Context(), &pools, wanted); err != nil || len(pools.Items) != want {
			t.Fatalf("%s: found %d, %v", architecture, len(pools.Items), err)
		}
	}
	var set hivev1.ClusterImageSet
	if err := h.Get(t.Context(), client.ObjectKey{Name: pool.Spec.ImageSetRef.Name}, &set); err != nil || set.Spec.ReleaseImage == "" {
		t.Errorf("release image %q, %v", set.Spec.ReleaseImage, err)
	}

	t.Log("it claims, and follows the claim by its name until the cluster runs")
	lifetime := hivev1.Duration("4h0m0s")
	claim := claimOn(pool, "8b8f1d2c-33b7-4a1c-9d7e-0a7f35a1f3e2")
	claim.Labels = map[string]string{"prow.k8s.io/job": "pull-ci-e2e", "prow.k8s.io/build-id": "1897"}
	claim.Spec.Lifetime = &lifetime
	h.create(t, claim)
	events := h.follow(t, claim)
	claim = until(t, events, func(e watch.EventType, c *hivev1.ClusterClaim) bool {
		if e == watch.Deleted {
			t.Fatal("the claim was deleted")
		}
		return statusOf(c, "ClusterRunning") == corev1.ConditionTrue
	})
	if claim.Status.Lifetime == nil || *claim.Status.Lifetime != lifetime {
		t.Errorf("status.lifetime is %v", claim.Status.Lifetime)
	}

	t.Log("it reads the cluster of that name in the namespace of that name, and copies two Secrets")
	cd := get(t, h, cluster(claim.Spec.Namespace))
	kubeconfig, password := h.adminSecrets(t, cd)
	if len(kubeconfig.Data["kubeconfig"]) == 0 || len(password.Data["password"]) == 0 || kubeconfig.Type == "" || password.Type == "" {
		t.Errorf("a key or a type is missing: %s %s", kubeconfig.Type, password.Type)
	}

	t.Log("it prints conditions by lastTransitionTime, and none that is Unknown or Initialized")
	shown := 0
	for _, c := range claim.Status.Conditions {
		if c.Status != corev1.ConditionUnknown && c.Reason != "Initialized" && !c.LastTransitionTime.IsZero() {
			shown++
		}
	}
	if shown != 2 {
		t.Errorf("it would show %d of %+v", shown, claim.Status.Conditions)
	}

	t.Log("it gives the cluster back")
	h.delete(t, claim)
	until(t, events, func(e watch.EventType, c *hivev1.ClusterClaim) bool {
		if e != watch.Deleted && c.Labels["prow.k8s.io/build-id"] != "1897" {
			t.Errorf("it has lost its labels: %v", c.Labels)
		}
		return e == watch.Deleted
	})
	h.gone(t, cd)
}

// follow lists a claim by a field selector, and watches it from there.
func (h *hub) follow(t *testing.T, c *hivev1.ClusterClaim) <-chan watch.Event {
	t.Helper()
	list := &hivev1.ClusterClaimList{}
	byName := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingFields{"metadata.name": c.Name}}
	if err := h.List(t.Context(), list, byName...); err != nil || len(list.Items) != 1 {
		t.Fatalf("listed %d, %v", len(list.Items), err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
	w, err := h.Watch(patient(t), list, append(byName, from)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w.ResultChan()
}

// until takes events until one satisfies, and returns its claim.
func until(t *testing.T, events <-chan watch.Event, done func(watch.EventType, *hivev1.ClusterClaim) bool) *hivev1.ClusterClaim {
	t.Helper()
	for e := range events {
		if c, ok := e.Object.(*hivev1.ClusterClaim); ok && done(e.Type, c) {
			return c
		}
	}
	t.Fatal("the watch has ended")
	return nil
}

// TestScriptsOfCIReadPoolsAndClusters reads with kubectl and jsonpath, as scripts do.
func TestScriptsOfCIReadPoolsAndClusters(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 2, 1)
	claim := claimOn(pool, "mine")
	claim.Spec.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:masters"}}
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	h.settled(t, pool)
	jsonpath := func(path string, args ...string) string {
		t.Helper()
		return strings.TrimSpace(h.kubectl(t, append([]string{"get", "-o", "jsonpath=" + path}, args...)...))
	}
	mine := []string{"clusterclaims.hive.openshift.io", "mine", "-n", pool.Namespace}
	its := []string{"clusterdeployments.hive.openshift.io", cd.Name, "-n", cd.Namespace}
	for name, tt := range map[string]struct {
		args       []string
		path, want string
	}{
		"ods-ci: why it is running":               {mine, `{.status.conditions[?(@.type=="ClusterRunning")].reason}`, "Running"},
		"lifeguard: whether it is pending":        {mine, `{.status.conditions[?(@.type=="Pending")].status}`, "False"},
		"lifeguard: the cluster's namespace":      {mine, `{.spec.namespace}`, cd.Name},
		"lifeguard: whether it hibernates":        {its, `{.status.conditions[?(@.type=="Hibernating")].status}`, "False"},
		"lifeguard: whether it is unreachable":    {its, `{.status.conditions[?(@.type=="Unreachable")].status}`, "False"},
		"cluster-templates-operator: if ready":    {its, `{.status.conditions[?(@.type=="Ready")].status}`, "True"},
		"ci-framework: name of the kubeconfig":    {its, `{.spec.clusterMetadata.adminKubeconfigSecretRef.name}`, cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name},
		"lifeguard: how many are ready":           {[]string{"clusterpools.hive.openshift.io", "ci", "-n", pool.Namespace}, `{.status.ready} {.status.standby} {.status.size}`, "1 1 2"},
		"ck: the power that is wanted":            {its, `{.spec.powerState}`, "Running"},
		"ck: the pool of a cluster":               {its, `{.spec.clusterPoolRef.poolName}/{.spec.clusterPoolRef.claimName}`, "ci/mine"},
		"kubectl: what installing came to":        {its, `{.status.conditions[?(@.type=="Provisioned")].reason}`, "Provisioned"},
		"cluster-curator-controller: not stopped": {its, `{.status.conditions[?(@.type=="ProvisionStopped")].status}`, "False"},
		"cluster-curator-controller: nor failed":  {its, `{.status.conditions[?(@.type=="ProvisionFailed")].status}`, "False"},
		"the console: requirements are met":       {its, `{.status.conditions[?(@.type=="RequirementsMet")].status}`, "True"},
	} {
		t.Run(name, func(t *testing.T) {
			parallelSubtest(t)
			if got := jsonpath(tt.path, tt.args...); got != tt.want {
				t.Errorf("%s of %v is %q, want %q", tt.path, tt.args, got, tt.want)
			}
		})
	}
	t.Run("must-gather takes all objects", func(t *testing.T) {
		parallelSubtest(t)
		h.kubectl(t, "get", "clusterpools.hive.openshift.io,clusterclaims.hive.openshift.io,clusterdeployments.hive.openshift.io,clusterdeploymentcustomizations.hive.openshift.io", "-A", "-o", "json")
	})
	t.Run("Terraform and kubectl read the schema", func(t *testing.T) {
		parallelSubtest(t)
		for _, field := range []string{"clusterpool.spec.hibernationConfig.resumeTimeout", "clusterclaim.spec.lifetime", "clusterdeployment.spec.clusterPoolRef.clusterDeploymentCustomization"} {
			h.kubectl(t, "explain", field)
		}
	})
	t.Run("cluster-display reads every image set", func(t *testing.T) {
		parallelSubtest(t)
		h.kubectl(t, "label", "clusterimageset", "kubernetes", "visible=true", "--overwrite")
		if got := jsonpath("{.items[*].spec.releaseImage}", "clusterimagesets", "-l", "visible=true"); got == "" {
			t.Error("none has a release image")
		}
	})
	t.Run("the finalizers and labels are Hive's", func(t *testing.T) {
		parallelSubtest(t)
		space := get(t, h, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cd.Namespace}})
		for what, pair := range map[string][2]string{
			"finalizers of the pool":    {fmt.Sprint(get(t, h, pool.DeepCopy()).Finalizers), "[hive.openshift.io/clusters]"},
			"finalizers of the claim":   {fmt.Sprint(claim.Finalizers), "[hive.openshift.io/claim]"},
			"finalizers of the cluster": {fmt.Sprint(cd.Finalizers), "[hive.openshift.io/deprovision]"},
			"label of the namespace":    {space.Labels["hive.openshift.io/cluster-pool-name"], "ci"},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: %s, want %s", what, pair[0], pair[1])
			}
		}
	})
}

// TestAScriptPatchesTheSizeOfAPool is the CronJob of hibernate-cronjob, and what
// rhoai-cluster-pool does at night.
func TestAScriptPatchesTheSizeOfAPool(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	h.create(t, pool)
	sized := func(want int32) {
		t.Helper()
		if get(t, h, pool); pool.Spec.Size != want {
			t.Errorf("size %d, want %d", pool.Spec.Size, want)
		}
		h.settled(t, pool)
	}
	h.kubectl(t, "patch", "clusterpool", "ci", "-n", pool.Namespace, "--type=merge", "-p", `{"spec":{"size":2}}`)
	sized(2)
	h.kubectl(t, "scale", "clusterpool", "ci", "-n", pool.Namespace, "--replicas=0")
	sized(0)
}

// TestCIChatBotMakesAClusterWithoutAPool creates the cluster itself, and follows its
// ClusterProvision.
func TestCIChatBotMakesAClusterWithoutAPool(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	manifest := fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata:
  name: %[1]s
  namespace: %[1]s
  annotations: {hive.openshift.io/fake-cluster: "true"}
spec:
  clusterName: %[1]s
  baseDomain: example.com
  platform: {aws: {region: us-east-1, credentialsSecretRef: {name: aws}}}
  provisioning:
    imageSetRef: {name: kubernetes}
    installConfigSecretRef: {name: install-config}
`, ns)
	if r := h.apply(t, manifest); r.code != 0 {
		t.Fatal(r.all())
	}
	cd := cluster(ns)
	h.conditioned(t, cd, "Provisioned", corev1.ConditionTrue)
	h.conditioned(t, cd, "ProvisionFailed", corev1.ConditionFalse)
	eventually(t, "the provision of "+ns+" is complete", func(ctx context.Context) error {
		var provisions hivev1.ClusterProvisionList
		if err := h.List(ctx, &provisions, client.InNamespace(ns)); err != nil || len(provisions.Items) != 1 {
			return fmt.Errorf("found %d provisions, %w", len(provisions.Items), err)
		}
		if p := provisions.Items[0]; p.Spec.Stage != "complete" || cd.Status.ProvisionRef == nil || cd.Status.ProvisionRef.Name != p.Name {
			return fmt.Errorf("stage %q of %s; status.provisionRef %+v", p.Spec.Stage, p.Name, cd.Status.ProvisionRef)
		}
		return nil
	})
	h.delete(t, cd)
	h.gone(t, cd)
}

// TestClusterKeeperLocksAClaim reads JSON, changes it, and replaces the object.
func TestClusterKeeperLocksAClaim(t *testing.T) {
	const locks = "open-cluster-management.io/cluster-keeper-locks"
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 0, 0)
	claim := claimOn(pool, "mine")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	for _, o := range []struct {
		kind string
		client.Object
	}{{"clusterclaim", claim}, {"clusterdeployment", cd}} {
		eventually(t, "ck replaces the "+o.kind, func(context.Context) error {
			var object map[string]any
			text := h.kubectl(t, "get", o.kind, o.GetName(), "-n", o.GetNamespace(), "-o", "json")
			if err := json.Unmarshal([]byte(text), &object); err != nil {
				return err
			}
			if err := unstructured.SetNestedField(object, "ck,ci", "metadata", "annotations", locks); err != nil {
				return err
			}
			changed, err := json.Marshal(object)
			if err != nil {
				return err
			}
			if r := h.run(t, string(changed), "kubectl", "replace", "-f", "-"); r.code != 0 {
				return fmt.Errorf("%s", r.all()) // somebody else wrote it in between
			}
			return nil
		})
	}
	h.kubectl(t, "patch", "clusterdeployment", cd.Name, "-n", cd.Namespace, "--type=json", "-p", `[{"op":"add","path":"/spec/powerState","value":"Hibernating"}]`)
	if c := h.conditioned(t, cd, "Hibernating", corev1.ConditionTrue); c.Reason != "Hibernating" {
		t.Errorf("reason %q", c.Reason)
	}
	if got := get(t, h, claim).Annotations[locks]; got != "ck,ci" {
		t.Errorf("the claim's locks are %q", got)
	}
}
