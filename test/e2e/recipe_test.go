package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// recipes is the folder with the recipes of the shared hub.
func recipes() (string, error) { return filepath.Abs(filepath.Join("testdata", "recipes")) }

// execPool is a pool of clusters that the recipe nested creates: each is a local cluster of the same hub,
// created by its command line.
func execPool(h *hub, namespace, name string) *hivev1.ClusterPool {
	p := localPool(namespace, name, 1, 1)
	p.Spec.MaxSize = ptr.To[int32](1) // a claimed cluster is not replaced
	p.Spec.Platform = hivev1.Platform{Exec: &hivev1.ExecPlatform{
		Recipe: "nested",
		With:   map[string]hivev1.ExecParameter{"program": hivev1.ExecParameter(binary), "data-dir": hivev1.ExecParameter(h.dir)},
	}}
	return p
}

func TestOnlyUsersWhoMayUseARecipeCreateClustersWithIt(t *testing.T) {
	h := shared(t)
	p := execPool(h, h.namespace(t), "pool")
	p.Spec.Size, p.Spec.RunningCount = 0, 0
	eve := person{h, "eve-uses-a-recipe-in-" + p.Namespace}
	grant := func(name string, rule rbacv1.PolicyRule) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + p.Namespace}, Rules: []rbacv1.PolicyRule{rule}}
		h.create(t, role)
		t.Cleanup(func() { _ = h.Delete(context.Background(), role) }) // the shared hub ends with the run
		h.allow(t, role.Name, p.Namespace, eve.name)
	}
	grant("e2e-writers-", rbacv1.PolicyRule{
		APIGroups: []string{hivev1.GroupVersion.Group}, Resources: []string{"clusterpools", "clusterdeployments"}, Verbs: []string{rbacv1.VerbAll},
	})
	eve.may(t, "get", "clusterpools", "-n", p.Namespace)
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "own"},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: "own", BaseDomain: "example.com", Platform: p.Spec.Platform,
			Provisioning: &hivev1.Provisioning{ImageSetRef: &hivev1.ClusterImageSetReference{Name: p.Spec.ImageSetRef.Name}},
		},
	}
	refused(t, eve.apply(t, manifest(t, "ClusterPool", p), "--as", eve.name), "spec.platform.exec.recipe", `verb use on recipes.hotspare.io "nested"`)
	refused(t, eve.apply(t, manifest(t, "ClusterDeployment", cd), "--as", eve.name), "spec.platform.exec.recipe", `verb use on recipes.hotspare.io "nested"`)

	grant("e2e-recipe-users-", rbacv1.PolicyRule{
		APIGroups: []string{"hotspare.io"}, Resources: []string{"recipes"}, ResourceNames: []string{"nested"}, Verbs: []string{"use"},
	})
	eventually(t, "with the right to use the recipe, she creates a pool of it", func(context.Context) error {
		if r := eve.apply(t, manifest(t, "ClusterPool", p), "--as", eve.name); r.code != 0 {
			return errors.New(r.all())
		}
		return nil
	})
	other := p.DeepCopy()
	other.Spec.Platform.Exec.Recipe = "another"
	refused(t, eve.apply(t, manifest(t, "ClusterPool", other), "--as", eve.name), `verb use on recipes.hotspare.io "another"`)
}

// A recipe's cluster becomes a spare, is claimed, hibernates, resumes, and is destroyed with all that the
// recipe created.
func TestAPoolOfARecipeServesClaims(t *testing.T) {
	h := shared(t)
	p := execPool(h, h.namespace(t), "recipe")
	h.create(t, p)
	h.settled(t, p)

	c := claimOn(p, "mine")
	h.create(t, c)
	cd := h.served(t, c)
	infraID := cd.Spec.ClusterMetadata.InfraID
	inner := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: infraID, Name: "inner"}}
	if get(t, h, inner).Status.APIURL != cd.Status.APIURL || cd.Status.APIURL == "" {
		t.Errorf("the claimed cluster is at %q, and the recipe created %q", cd.Status.APIURL, inner.Status.APIURL)
	}

	setPower(t, h, cd, hivev1.PowerHibernating)
	h.conditioned(t, cd, hivev1.ClusterHibernating, corev1.ConditionTrue)
	if got := get(t, h, inner).Status.PowerState; got != "Hibernating" {
		t.Errorf("the cluster hibernates, and the recipe's cluster is %s", got)
	}
	setPower(t, h, cd, hivev1.PowerRunning)
	h.conditioned(t, cd, hivev1.ClusterReady, corev1.ConditionTrue)

	h.delete(t, c)
	h.gone(t, cd)
	h.gone(t, inner)
	state := filepath.Join(h.dir, "recipe-clusters", infraID)
	if _, err := os.Stat(state); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", state, err)
	}
	h.delete(t, p)
	h.gone(t, p)
}

// setPower sets the desired power state of a cluster, as its user does.
func setPower(t *testing.T, h *hub, cd *hivev1.ClusterDeployment, state hivev1.PowerState) {
	t.Helper()
	before := get(t, h, cd).DeepCopy()
	cd.Spec.PowerState = state
	if err := h.Patch(t.Context(), cd, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// A pool reports what is wrong with its recipe and parameters, and creates nothing.
func TestAPoolReportsWhatItsRecipeLacks(t *testing.T) {
	h := shared(t)
	p := execPool(h, h.namespace(t), "lacks")
	p.Spec.Platform.Exec.With = map[string]hivev1.ExecParameter{"workers": "many"}
	h.create(t, p)
	found := h.conditioned(t, p, hivev1.PoolMissingDependencies, corev1.ConditionTrue)
	for _, want := range []string{"with.workers", `"many"`, "with.program", "with.data-dir"} {
		if !strings.Contains(found.Message, want) {
			t.Errorf("MissingDependencies does not name %s: %s", want, found.Message)
		}
	}
	other := execPool(h, p.Namespace, "unknown")
	other.Spec.Platform.Exec.Recipe = "k3x"
	h.create(t, other)
	if found := h.conditioned(t, other, hivev1.PoolMissingDependencies, corev1.ConditionTrue); !strings.Contains(found.Message, `"k3x"`) || !strings.Contains(found.Message, "nested") {
		t.Errorf("MissingDependencies does not name the recipe and those that exist: %s", found.Message)
	}
	if n := len(h.clusters(t, p)) + len(h.clusters(t, other)); n > 0 {
		t.Errorf("%d clusters were created", n)
	}
	h.delete(t, p)
	h.delete(t, other)
	h.gone(t, p)
	h.gone(t, other)
}
