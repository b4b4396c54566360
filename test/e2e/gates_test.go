package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
)

// licensed is a bootstrap whose gate web fails until ConfigMap licence in the cluster is valid.
func licensed(namespace string) *v1alpha1.ClusterBootstrap {
	return &v1alpha1.ClusterBootstrap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "licensed"},
		Spec: v1alpha1.ClusterBootstrapSpec{CheckInterval: "1s", Gates: []v1alpha1.Gate{
			{Name: "nodes", Type: v1alpha1.GateNodesReady},
			{Name: "system", Type: v1alpha1.GateSystemDeploymentsAvailable},
			{Name: "apis", Type: v1alpha1.GateAPIServicesAvailable},
			{Name: "token", Type: v1alpha1.GateServiceAccountToken},
			{Name: "pod", Type: v1alpha1.GatePodRuns, Pod: &v1alpha1.GatePod{Image: "registry.example/web"}},
			{Name: "web", Type: v1alpha1.GateObject, Object: &v1alpha1.GateObjectCheck{
				APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "licence", Expression: "object.data.valid == 'yes'", Message: "the licence is not valid",
			}},
		}},
	}
}

// gatesAre waits until a spare of a pool, or the one of that name, has a verdict with these words, and returns it.
func (h *hub) gatesAre(t *testing.T, p *hivev1.ClusterPool, name string, status corev1.ConditionStatus, words string) *hivev1.ClusterDeployment {
	t.Helper()
	var spare *hivev1.ClusterDeployment
	eventually(t, fmt.Sprintf("the gates of a spare of %s are %s, %q", p.Name, status, words), func(context.Context) error {
		spare = nil
		for _, cd := range h.clusters(t, p) {
			if cd.Spec.ClusterPoolRef.ClaimName == "" && (name == "" || cd.Name == name) {
				spare = &cd
			}
		}
		if spare == nil {
			return fmt.Errorf("there is no spare")
		}
		c := condition.Find(spare.Status.Conditions, hivev1.ClusterGatesPassed)
		if c == nil || c.Status != status || !strings.Contains(c.Message, words) {
			return fmt.Errorf("the condition of %s, which is %s, is %+v", spare.Name, spare.Status.PowerState, c)
		}
		return nil
	})
	return spare
}

// A claim gets no cluster of which a gate fails, also if the gate passed before, and gets it as soon as a person
// has corrected what the gate checks.
func TestAClaimGetsOnlyAClusterThatPassesItsGates(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := localPool(ns, "dev", 1, 1)
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
		Spec:       v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "licensed"}},
	}
	h.create(t, licensed(ns), policy, pool)
	spare := h.gatesAre(t, pool, "", corev1.ConditionFalse, "A gate fails: web: ConfigMap default/licence does not exist.")
	eventually(t, "the pool says that it checks gates", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil || pool.Status.Plan != "checking gates of 1" {
			return fmt.Errorf("the plan is %q, %w", pool.Status.Plan, err)
		}
		return nil
	})
	says(t, h.hotspare(t, "explain", "cluster", spare.Name, "-n", spare.Namespace), "no claim gets it: A gate fails: web: ConfigMap default/licence does not exist")

	t.Log("a claim waits while a gate fails")
	first := claimOn(pool, "first")
	h.create(t, first)
	h.conditioned(t, first, hivev1.ClaimPending, corev1.ConditionTrue)
	admin := kubernetes.NewForConfigOrDie(h.spoke(t, spare)).CoreV1().ConfigMaps("default")
	licence := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "licence"}, Data: map[string]string{"valid": "no"}}
	if _, err := admin.Create(t.Context(), licence, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gatesAre(t, pool, spare.Name, corev1.ConditionFalse, "web: the licence is not valid")
	if c := get(t, h, first); c.Spec.Namespace != "" {
		t.Fatalf("the claim has cluster %s", c.Spec.Namespace)
	}

	t.Log("a person corrects it")
	licence.Data["valid"] = "yes"
	if _, err := admin.Update(t.Context(), licence, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if cd := h.served(t, first); cd.Name != spare.Name {
		t.Errorf("the claim has cluster %s, want %s", cd.Name, spare.Name)
	}

	t.Log("a gate of the next spare passes, and fails again")
	spare = h.gatesAre(t, pool, "", corev1.ConditionFalse, "web: ConfigMap default/licence does not exist")
	admin = kubernetes.NewForConfigOrDie(h.spoke(t, spare)).CoreV1().ConfigMaps("default")
	licence.ResourceVersion, licence.UID = "", ""
	if _, err := admin.Create(t.Context(), licence, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gatesAre(t, pool, spare.Name, corev1.ConditionTrue, "Every gate of the cluster passes.")
	if err := admin.Delete(t.Context(), "licence", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.gatesAre(t, pool, spare.Name, corev1.ConditionFalse, "web: ConfigMap default/licence does not exist")
	second := claimOn(pool, "second")
	h.create(t, second)
	h.conditioned(t, second, hivev1.ClaimPending, corev1.ConditionTrue)
	licence.ResourceVersion = ""
	if _, err := admin.Create(t.Context(), licence, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if cd := h.served(t, second); cd.Name != spare.Name {
		t.Errorf("the claim has cluster %s, want %s", cd.Name, spare.Name)
	}
	h.hotspare(t, "claim", "release", "first", "second", "-n", ns, "--wait")
	h.hotspare(t, "pool", "delete", "dev", "-n", ns)
}

// Users who may write PoolPolicies and ClusterBootstraps, and not the pool, cannot change its gates.
func TestWhoMayChangeTheGatesOfAPool(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 1, 1)
	h.create(t, pool)
	h.kubectl(t, "create", "role", "policies", "-n", ns, "--verb=*", "--resource=poolpolicies.hotspare.io,clusterbootstraps.hotspare.io")
	h.kubectl(t, "create", "rolebinding", "policies", "-n", ns, "--role=policies", "--user=bob")
	person{h, "bob"}.may(t, "get", "poolpolicies", "-n", ns) // the API server has read his rights
	refused := func(what, input, words string, args ...string) {
		t.Helper()
		r := h.run(t, input, append([]string{"kubectl", "-n", ns, "--as", "bob"}, args...)...)
		if (r.code != 0) != (words != "") || !strings.Contains(r.all(), words) {
			t.Errorf("%s: exit code %d, want %q: %s", what, r.code, words, r.all())
		}
	}
	manifest := func(kind, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"hotspare.io/v1alpha1","kind":%q,"metadata":{"name":"dev","namespace":%q},"spec":%s}`, kind, ns, spec)
	}
	const patchPool, patchPools = "ask somebody who may patch the pool", "ask somebody who may patch the ClusterPools there"
	refused("a bootstrap", manifest("ClusterBootstrap", `{"gates":[{"name":"a","type":"NodesReady"}]}`), patchPools, "create", "-f", "-")
	// bob may patch the pools of another namespace, and not read its Secrets.
	other := h.namespace(t)
	h.kubectl(t, "create", "role", "pools", "-n", other, "--verb=*", "--resource=clusterpools.hive.openshift.io,clusterbootstraps.hotspare.io")
	h.kubectl(t, "create", "rolebinding", "pools", "-n", other, "--role=pools", "--user=bob")
	person{h, "bob"}.may(t, "get", "clusterpools", "-n", other)
	steps := func(from string) string {
		return strings.Replace(manifest("ClusterBootstrap", `{"steps":[{"name":"a","manifests":{"from":[`+from+`]}}]}`), fmt.Sprintf("%q", ns), fmt.Sprintf("%q", other), 1)
	}
	elsewhere := func(what, input, words string) {
		t.Helper()
		r := h.run(t, input, "kubectl", "-n", other, "--as", "bob", "create", "--dry-run=server", "-f", "-")
		if (r.code != 0) != (words != "") || !strings.Contains(r.all(), words) {
			t.Errorf("%s: exit code %d, want %q: %s", what, r.code, words, r.all())
		}
	}
	elsewhere("steps with a Secret", steps(`{"configMapRef":{"name":"x"}},{"secretRef":{"name":"x"}}`), "ask somebody who may read the Secrets there")
	chart := strings.Replace(manifest("ClusterBootstrap", `{"steps":[{"name":"a","chart":{"archiveFrom":{"configMapRef":{"name":"x"}},"valuesFrom":[{"secretRef":{"name":"x"}}]}}]}`),
		fmt.Sprintf("%q", ns), fmt.Sprintf("%q", other), 1)
	elsewhere("a chart with values of a Secret", chart, "ask somebody who may read the Secrets there")
	elsewhere("a chart with values of a ConfigMap", strings.Replace(chart, "secretRef", "configMapRef", 1), "")
	elsewhere("steps with a ConfigMap", steps(`{"configMapRef":{"name":"x"}}`), "")
	refused("a policy with gates", manifest("PoolPolicy", `{"bootstrapRef":{"name":"dev"}}`), patchPool, "create", "-f", "-")
	refused("a limit of inactivity", manifest("PoolPolicy", `{"claimedClusters":{"hibernateAfterInactivity":"1h"}}`), patchPool, "create", "-f", "-")
	refused("a policy without gates", manifest("PoolPolicy", `{}`), "", "create", "-f", "-")
	h.kubectl(t, "patch", "poolpolicy", "dev", "-n", ns, "--type=merge", "-p", `{"spec":{"claimedClusters":{"hibernateAfterInactivity":"1h"}}}`)
	refused("what counts as use", "", patchPool, "patch", "poolpolicy", "dev", "--type=merge", "-p", `{"spec":{"claimedClusters":{"ignoredNamespaces":["default"]}}}`)
	refused("no limit any more", "", patchPool, "patch", "poolpolicy", "dev", "--type=merge", "-p", `{"spec":{"claimedClusters":null}}`)
	refused("adding gates", "", patchPool, "patch", "poolpolicy", "dev", "--type=merge", "-p", `{"spec":{"bootstrapRef":{"name":"dev"}}}`)
	h.kubectl(t, "patch", "poolpolicy", "dev", "-n", ns, "--type=merge", "-p", `{"spec":{"bootstrapRef":{"name":"dev"}}}`)
	refused("removing gates", "", patchPool, "patch", "poolpolicy", "dev", "--type=merge", "-p", `{"spec":{"bootstrapRef":null}}`)
	refused("deleting gates with the policy", "", "ask somebody who may delete the pool", "delete", "poolpolicy", "dev")
	refused("another change", "", "", "patch", "poolpolicy", "dev", "--type=merge", "-p", `{"spec":{"size":{"max":3}}}`)

	t.Log("a reference to nothing lets no claim have a cluster")
	eventually(t, "the pool names the bootstrap that does not exist", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return err
		}
		c := condition.Find(pool.Status.Conditions, hivev1.PoolMissingDependencies)
		if c == nil || !strings.Contains(c.Message, `ClusterBootstrap "dev" does not exist`) {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	mine := claimOn(pool, "mine")
	h.create(t, mine)
	h.conditioned(t, mine, hivev1.ClaimPending, corev1.ConditionTrue)
	h.create(t, &v1alpha1.ClusterBootstrap{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
		Spec:       v1alpha1.ClusterBootstrapSpec{Gates: []v1alpha1.Gate{{Name: "a", Type: v1alpha1.GateNodesReady}}},
	})
	h.served(t, mine)
	h.hotspare(t, "claim", "release", "mine", "-n", ns, "--wait")
	h.hotspare(t, "pool", "delete", "dev", "-n", ns)
}
