package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// TestTheConsoleClaimsAndDestroys clicks through the page of cluster pools.
func TestTheConsoleClaimsAndDestroys(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	h.create(t, pool)
	h.settled(t, pool)

	t.Log("a claim on a pool with a ready cluster is assigned while it looks, every half second")
	claim := claimOn(pool, "mine")
	h.create(t, claim)
	looks := 0
	err := wait.PollUntilContextCancel(patient(t), 500*time.Millisecond, false, func(context.Context) (bool, error) {
		looks++
		return get(t, h, claim).Spec.Namespace != "", nil
	})
	if err != nil {
		t.Fatalf("after %d looks the console says pending: %v", looks, err)
	}
	t.Logf("assigned at look %d; the console looks ten times", looks)
	cd := h.served(t, claim)
	h.settled(t, pool)

	t.Log("it lists the pool's clusters by clusterPoolRef: those without claimName can be claimed")
	for _, other := range h.clusters(t, pool) {
		ref := other.Spec.ClusterPoolRef
		if free := other.Name != cd.Name; ref.PoolName != "ci" || ref.Namespace != pool.Namespace || free != (ref.ClaimName == "") || free != ref.ClaimedTimestamp.IsZero() {
			t.Errorf("cluster %s: %+v", other.Name, ref) // managedcluster-import-controller waits for the time
		}
	}

	t.Log("it shows credentials, addresses and install-config of the claimed one")
	for what, value := range map[string]string{
		"spec.clusterMetadata.clusterID": cd.Spec.ClusterMetadata.ClusterID, "spec.clusterMetadata.infraID": cd.Spec.ClusterMetadata.InfraID,
		"status.apiURL": cd.Status.APIURL, "status.webConsoleURL": cd.Status.WebConsoleURL,
		"status.installedTimestamp": fmt.Sprint(cd.Status.InstalledTimestamp),
	} {
		if value == "" || value == "<nil>" {
			t.Errorf("%s is empty", what)
		}
	}
	config := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cd.Namespace, Name: cd.Spec.Provisioning.InstallConfigSecretRef.Name}}
	if len(get(t, h, config).Data["install-config.yaml"]) == 0 {
		t.Error("the Secret of the install-config has no key install-config.yaml")
	}

	t.Log("a pool with a claimed cluster stays until its claim has gone")
	h.delete(t, pool)
	c := h.conditioned(t, pool, "DeletionPossible", corev1.ConditionFalse)
	says(t, c.Message, cd.Name)
	eventually(t, "the unclaimed cluster goes", func(context.Context) error {
		if left := h.clusters(t, pool); len(left) != 1 || left[0].Name != cd.Name {
			return fmt.Errorf("%d are left", len(left))
		}
		return nil
	})
	if got := get(t, h, pool).Finalizers; !slices.Equal(got, []string{"hive.openshift.io/clusters"}) {
		t.Errorf("the pool is held by %v", got)
	}
	h.delete(t, claim)
	h.gone(t, cd)
	h.gone(t, pool)
}

func TestTheConsoleUpdatesTheReleaseImage(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 0)
	next := &hivev1.ClusterImageSet{
		ObjectMeta: metav1.ObjectMeta{Name: "next-of-" + pool.Namespace, Labels: map[string]string{"visible": "true"}},
		Spec:       hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/openshift-release-dev/ocp-release:4.18.20-x86_64"},
	}
	h.create(t, pool, next)
	t.Cleanup(func() {
		if err := h.Delete(context.Background(), next); err != nil {
			t.Error(err)
		}
	})
	h.settled(t, pool)
	old := h.clusters(t, pool)[0]
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/imageSetRef/name","value":%q}]`, next.Name)
	if err := h.Patch(t.Context(), pool, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	h.gone(t, &old)
	h.settled(t, pool)
	if c := h.conditioned(t, pool, "AllClustersCurrent", corev1.ConditionTrue); c.Reason != "ClusterDeploymentsCurrent" {
		t.Errorf("reason %q", c.Reason)
	}
	now := h.clusters(t, pool)[0]
	if now.Spec.Provisioning.ImageSetRef.Name != next.Name || now.Status.InstallVersion == nil || *now.Status.InstallVersion != "4.18.20" {
		t.Errorf("the new cluster is of %s, version %v", now.Spec.Provisioning.ImageSetRef.Name, now.Status.InstallVersion)
	}
	for label, want := range map[string]string{"version": "4.18.20", "version-major": "4", "version-major-minor": "4.18", "version-major-minor-patch": "4.18.20"} {
		if got := now.Labels["hive.openshift.io/"+label]; got != want {
			t.Errorf("label hive.openshift.io/%s is %q, want %q", label, got, want)
		}
	}
}

// TestTheConsoleShowsWhatWaits lists in pages, watches, and tolerates kinds that are
// not there.
func TestTheConsoleShowsWhatWaits(t *testing.T) {
	const creator = "open-cluster-management.io/user-identity"
	h := shared(t)
	none := int32(0)
	pool := fakePool(h.namespace(t), "full", 1, 1)
	pool.Spec.MaxSize = &none
	first, second := claimOn(pool, "first"), claimOn(pool, "second")
	first.Annotations = map[string]string{creator: "YWxpY2U="}
	h.create(t, pool, first, second)
	for _, claim := range []*hivev1.ClusterClaim{first, second} {
		if c := h.conditioned(t, claim, "Pending", corev1.ConditionTrue); c.Reason != "NoClusters" || claim.Spec.Namespace != "" {
			t.Errorf("reason %q, spec.namespace %q", c.Reason, claim.Spec.Namespace)
		}
	}
	if first.Annotations[creator] != "YWxpY2U=" {
		t.Errorf("the page does not find who made it: %v", first.Annotations)
	}
	h.conditioned(t, pool, hivev1.PoolCapacityAvailable, corev1.ConditionFalse) // claims are told first
	types := map[string]bool{}
	for _, c := range pool.Status.Conditions {
		types[c.Type] = true
	}
	for _, typ := range []string{"MissingDependencies", "CapacityAvailable", "AllClustersCurrent", "InventoryValid", "DeletionPossible"} {
		if !types[typ] {
			t.Errorf("the pool has no condition %s", typ)
		}
	}

	var names []string
	page := &hivev1.ClusterClaimList{}
	for more := true; more; more = page.Continue != "" {
		if err := h.List(t.Context(), page, client.InNamespace(pool.Namespace), client.Limit(1), client.Continue(page.Continue)); err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Items {
			names = append(names, c.Name)
		}
	}
	if strings.Join(names, " ") != "first second" {
		t.Errorf("page by page it finds %v", names)
	}
	from := &client.ListOptions{Namespace: pool.Namespace, Raw: &metav1.ListOptions{ResourceVersion: page.ResourceVersion}}
	w, err := h.Watch(patient(t), &hivev1.ClusterClaimList{}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	h.delete(t, second)
	until(t, w.ResultChan(), func(_ watch.EventType, c *hivev1.ClusterClaim) bool { return c.Name == "second" })

	r := h.run(t, "", "kubectl", "get", "--raw", "/apis/extensions.hive.openshift.io/v1beta1/agentclusterinstalls?limit=100")
	if says(t, r.all(), "could not find the requested resource"); r.code == 0 {
		t.Error("a kind that is not there was found")
	}
}

// TestTypedClientsWriteWholeObjectsBack does as multicloud-operators-foundation,
// multicluster-resiliency-addon and hibernate-cronjob do: they read an object into
// types that know Hive's fields only, change it, and update the whole.
func TestTypedClientsWriteWholeObjectsBack(t *testing.T) {
	const set = "cluster.open-cluster-management.io/clusterset"
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	timeout := hivev1.Duration("20m")
	pool.Spec.PowerstateTransitionToRunningTimeout = &timeout
	claim := claimOn(pool, "mine")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	h.settled(t, pool)
	objects := []client.Object{claim, cd}
	for _, other := range h.clusters(t, pool) {
		objects = append(objects, &other)
	}
	for _, o := range objects {
		h.update(t, o, func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{set: "blue", hivev1.LabelPoolName: "ci", hivev1.LabelPoolNamespace: pool.Namespace})
		})
	}
	h.settled(t, pool)
	h.served(t, claim)
	for _, o := range append(objects, claim) {
		if got := get(t, h, o).GetLabels()[set]; got != "blue" {
			t.Errorf("%T %s has lost its cluster set: %q", o, o.GetName(), got)
		}
	}

	t.Log("hibernate-cronjob puts it to sleep with such an update")
	h.update(t, cd, func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, "Hibernating", "spec", "powerState"); err != nil {
			t.Fatal(err)
		}
	})
	h.conditioned(t, cd, "Hibernating", corev1.ConditionTrue)

	t.Log("multicluster-resiliency-addon deletes the cluster under its claim")
	h.delete(t, cd)
	h.gone(t, cd)
	eventually(t, "the claim tells of it", func(ctx context.Context) error {
		if c := h.conditioned(t, claim, "ClusterRunning", corev1.ConditionFalse); c.Reason != "ClusterDeleted" {
			return fmt.Errorf("reason %s", c.Reason)
		}
		return nil
	})
	h.delete(t, claim)
	h.gone(t, claim)
}

// update reads an object, forgets the fields that Hive's types do not have, changes
// it and writes it back whole, until nobody came in between.
func (h *hub) update(t *testing.T, o client.Object, change func(*unstructured.Unstructured)) {
	t.Helper()
	gvk, err := h.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "updating "+o.GetName(), func(ctx context.Context) error {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), u); err != nil {
			return err
		}
		for _, ours := range [][]string{
			{"spec", "powerstateTransitionToRunningTimeout"},
			{"spec", "powerstateTransitionToHibernatingTimeout"},
			{"status", "powerTransition"},
			{"status", "claimedTimestamp"},
			{"status", "position"},
			{"status", "estimatedReadyTime"},
		} {
			unstructured.RemoveNestedField(u.Object, ours...)
		}
		change(u)
		err := h.Update(ctx, u)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(errors.Join(fmt.Errorf("updating %s", o.GetName()), err))
		}
		return err
	})
}
