package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// outsider is a running local cluster that no ClusterDeployment manages, and a kubeconfig of its
// administrator.
type outsider struct {
	*hub
	was        *hivev1.ClusterDeployment
	kubeconfig string
}

// newOutsider creates a cluster that another hub manages. The hub under test would stop the machines of
// a cluster that no ClusterDeployment of its own names.
func newOutsider(t *testing.T) outsider {
	t.Helper()
	h := another(t)
	cd := h.standalone(t, "outside", hivev1.PowerRunning)
	h.conditioned(t, cd, hivev1.ClusterReady, corev1.ConditionTrue)
	o := outsider{h, cd, filepath.Join(t.TempDir(), "outside.kubeconfig")}
	h.hotspare(t, "cluster", "kubeconfig", cd.Name, "-n", cd.Namespace, "-o", o.kubeconfig)

	t.Log("the hub that manages it does not adopt it")
	r := h.run(t, "", "adopt", "kubeconfig", "twice", "--admin-kubeconfig", o.kubeconfig, "-n", cd.Namespace)
	refused(t, r, "ClusterDeployment "+cd.Namespace+"/outside manages this cluster already")
	return o
}

// answers checks that the cluster's API lists its nodes.
func (o outsider) answers(t *testing.T) {
	t.Helper()
	o.hub.kubectl(t, "--kubeconfig", o.kubeconfig, "get", "nodes")
}

// destroy destroys the cluster with the hub that created it.
func (o outsider) destroy(t *testing.T) {
	t.Helper()
	o.hub.delete(t, get(t, o.hub, o.was.DeepCopy()))
	o.gone(t, o.was.DeepCopy())
	machines := filepath.Join(o.machines(), o.was.Spec.ClusterMetadata.InfraID)
	if _, err := os.Stat(machines); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", machines, err)
	}
}

// An adopted cluster runs, serves a claim as a spare, and outlives both of its ClusterDeployments.
func TestAnAdoptedClusterOutlivesItsClusterDeployment(t *testing.T) {
	h := shared(t)
	o := newOutsider(t)

	t.Log("outside pools it has a state, and survives the deletion")
	ns := h.namespace(t)
	adopt := []string{"adopt", "kubeconfig", "lab", "--admin-kubeconfig", o.kubeconfig, "-n", ns}
	says(t, h.hotspare(t, adopt...), "cluster lab adopted: 2 nodes", "keeps the cluster")
	says(t, h.hotspare(t, adopt...), "cluster lab was adopted before")
	lab := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lab"}}
	h.conditioned(t, lab, hivev1.ClusterReady, corev1.ConditionTrue)
	if c := h.conditioned(t, lab, hivev1.ClusterHibernating, corev1.ConditionFalse); c.Reason != hivev1.ReasonUnsupported {
		t.Errorf("Hibernating has reason %s, want %s", c.Reason, hivev1.ReasonUnsupported)
	}
	h.delete(t, get(t, h, lab))
	h.gone(t, lab)
	o.answers(t)

	t.Log("in a pool of size zero it is a spare, and leaves the pool with its claim")
	p := localPool(h.namespace(t), "adopters", 0, 0)
	h.create(t, p)
	name := p.Namespace + "-lab"
	h.hotspare(t, "adopt", "kubeconfig", name, "--admin-kubeconfig", o.kubeconfig, "--pool", p.Name, "-n", p.Namespace)
	eventually(t, "the pool counts it", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil || p.Status.Size != 1 {
			return fmt.Errorf("size %d: %w", p.Status.Size, err)
		}
		return nil
	})
	claim := claimOn(p, "mine")
	h.create(t, claim)
	spare := h.served(t, claim)
	if spare.Name != name {
		t.Errorf("the claim has cluster %s, want %s", spare.Name, name)
	}
	h.kubectl(t, "--kubeconfig", h.kubeconfigOf(t, p.Namespace, claim.Name), "get", "nodes")
	h.delete(t, claim)
	h.gone(t, spare)
	o.answers(t)
	h.delete(t, p)
	h.gone(t, p)
	o.destroy(t)
}

// A user who may read the Secrets of a pool's namespace, but not update the pool, adds no cluster to it.
func TestOnlyUsersWhoMayUpdateAPoolAddClustersToIt(t *testing.T) {
	h := shared(t)
	p := fakePool(h.namespace(t), "pool", 0, 0)
	h.create(t, p)
	eve := person{h, "eve-adds-to-" + p.Namespace}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-adders-" + p.Namespace},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{"clusterdeployments"}, Verbs: []string{rbacv1.VerbAll}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{rbacv1.VerbAll}},
		},
	}
	h.create(t, role)
	t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
	h.allow(t, role.Name, p.Namespace, eve.name)
	eve.may(t, "get", "secrets", "-n", p.Namespace)
	planted := plantedCluster(p.Namespace, p)
	refused(t, eve.apply(t, manifest(t, "ClusterDeployment", planted), "--as", eve.name), "spec.clusterPoolRef", "who may update that pool")

	pools := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-updaters-" + p.Namespace},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{"clusterpools"}, Verbs: []string{"get", "update"}}},
	}
	h.create(t, pools)
	t.Cleanup(func() { _ = h.Delete(context.Background(), pools) }) // as above
	h.allow(t, pools.Name, p.Namespace, eve.name)
	eve.may(t, "get", "clusterpool", p.Name, "-n", p.Namespace)
	if r := eve.apply(t, manifest(t, "ClusterDeployment", planted), "--as", eve.name); r.code != 0 {
		t.Errorf("with both rights she is refused: %s", r.all())
	}
}
