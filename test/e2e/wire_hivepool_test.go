package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// The steps that Hive's own end-to-end test of pools, hack/e2e-pool-test.sh, makes and
// waits for, with the same commands except where a state may have passed before kubectl starts. Its real pool is a fake one here.
func TestTheStepsOfHivesPoolTest(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	first, second := ns+"-cis", ns+"-fake-cis"
	for _, name := range []string{first, second} {
		set := &hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "quay.io/ocp/release:4.18.20"}}
		h.create(t, set)
		t.Cleanup(func() { _ = h.Delete(context.Background(), set) })
	}
	pool := fakePool(ns, "fake-pool", 4, 0)
	pool.Spec.ImageSetRef.Name = first
	h.create(t, pool)

	t.Log("a pool is ready when ready and standby are its size, and all clusters are current")
	h.readyAsInHive(t, pool)
	h.allFrom(t, pool, first)

	t.Log("with another image set all its clusters are stale, and replaced")
	current := func() *hivev1.Condition {
		return condition.Find(get(t, h, pool).Status.Conditions, hivev1.PoolAllClustersCurrent)
	}
	before := current().LastTransitionTime
	h.kubectl(t, "patch", "clusterpool", pool.Name, "-n", ns, "--type=merge", "-p", `{"spec":{"imageSetRef":{"name":"`+second+`"}}}`)
	eventually(t, "the condition was False, and is True again", func(context.Context) error {
		if c := current(); c.Status != corev1.ConditionTrue || !before.Before(&c.LastTransitionTime) {
			return fmt.Errorf("it is %+v, and was True since %s", c, before)
		}
		return nil
	})
	h.readyAsInHive(t, pool)
	h.allFrom(t, pool, second)

	t.Log("a claim gets a cluster that runs; that sleeps and wakes")
	cd := h.claimAsInHive(t, pool, "fake-claim")
	h.setPowerState(t, cd, hivev1.PowerHibernating)
	slept := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating).LastTransitionTime
	if took := slept.Sub(cd.Status.InstalledTimestamp.Time); took > 10*time.Minute {
		t.Errorf("it hibernates %s after its install", took)
	}
	h.setPowerState(t, cd, hivev1.PowerRunning)

	t.Log("it is deleted by itself")
	h.kubectl(t, "delete", "cd", "-n", cd.Name, cd.Name, "--wait=false")
	h.gone(t, cd)

	t.Log("a spare that is marked broken by ProvisionStopped is replaced")
	h.readyAsInHive(t, pool)
	broken := &h.clusters(t, pool)[0]
	h.markStopped(t, broken)
	h.gone(t, broken)
	h.readyAsInHive(t, pool)

	t.Log("a pool that grows from nothing has the names of its inventory")
	prepared := fakePool(ns, "prepared", 0, 0)
	prepared.Spec.ImageSetRef.Name = first
	h.create(t, prepared, &hivev1.ClusterDeploymentCustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "cdc-test"},
		Spec: hivev1.ClusterDeploymentCustomizationSpec{InstallConfigPatches: []hivev1.PatchEntity{{
			Op: "replace", Path: "/metadata/name", Value: raw(`"cdcci-x"`),
		}}},
	})
	h.kubectl(t, "patch", "cp", "-n", ns, prepared.Name, "--type=merge", "-p", `{"spec":{"inventory":[{"name":"cdc-test"}]}}`)
	h.kubectl(t, "scale", "cp", "-n", ns, prepared.Name, "--replicas=1")
	h.readyAsInHive(t, prepared)
	h.installConfigNamed(t, &h.clusters(t, prepared)[0], "cdcci-x")
	cd = h.claimAsInHive(t, prepared, "the-claim")
	h.setPowerState(t, cd, hivev1.PowerHibernating)
	h.setPowerState(t, cd, hivev1.PowerRunning)

	t.Log("without claims and pools there are no clusters")
	h.kubectl(t, "delete", "clusterclaim", "--all", "-n", ns, "--wait=false")
	h.kubectl(t, "delete", "clusterpool", "--all", "-n", ns, "--wait=false")
	for _, p := range []*hivev1.ClusterPool{pool, prepared} {
		h.gone(t, p)
		if left := h.clusters(t, p); len(left) > 0 {
			t.Errorf("pool %s is gone, and %d clusters are left", p.Name, len(left))
		}
	}
}

// readyAsInHive waits until the pool is ready as the script asks for it.
func (h *hub) readyAsInHive(t *testing.T, p *hivev1.ClusterPool) {
	t.Helper()
	eventually(t, "pool "+p.Name+" is ready", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		s := p.Status
		if s.Size != p.Spec.Size || s.Size == 0 || s.Ready+s.Standby != s.Size || statusOf(p, hivev1.PoolAllClustersCurrent) != corev1.ConditionTrue {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
}

// allFrom checks that the clusters of a pool are made from the image set.
func (h *hub) allFrom(t *testing.T, p *hivev1.ClusterPool, set string) {
	t.Helper()
	for _, cd := range h.clusters(t, p) {
		if got := cd.Spec.Provisioning.ImageSetRef.Name; got != set && cd.DeletionTimestamp == nil {
			t.Errorf("cluster %s is made from %s, want %s", cd.Name, got, set)
		}
	}
}

// claimAsInHive claims a cluster, and returns it: it runs when the claim is not pending.
func (h *hub) claimAsInHive(t *testing.T, p *hivev1.ClusterPool, name string) *hivev1.ClusterDeployment {
	t.Helper()
	h.create(t, claimOn(p, name))
	h.kubectl(t, "wait", "--for=condition=Pending=false", "--timeout=2m", "-n", p.Namespace, "clusterclaim/"+name)
	cluster := h.kubectl(t, "get", "clusterclaim", "-n", p.Namespace, name, "-o", "jsonpath={.spec.namespace}")
	if state := h.kubectl(t, "get", "cd", "-n", cluster, cluster, "-o", "jsonpath={.status.powerState}"); state != "Running" {
		t.Errorf("the claimed cluster is %q", state)
	}
	return &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: cluster}}
}

// setPowerState sets the power state of a cluster and waits for it.
func (h *hub) setPowerState(t *testing.T, cd *hivev1.ClusterDeployment, state hivev1.PowerState) {
	t.Helper()
	h.kubectl(t, "patch", "cd", "-n", cd.Namespace, cd.Name, "--type=merge", "-p", `{"spec":{"powerState":"`+string(state)+`"}}`)
	eventually(t, "cluster "+cd.Name+" is "+string(state), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil || cd.Status.PowerState == string(state) {
			return err
		}
		return fmt.Errorf("it is %s", cd.Status.PowerState)
	})
}

// markStopped writes the whole status back with ProvisionStopped True, and once only.
func (h *hub) markStopped(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	eventually(t, "ProvisionStopped is set", func(context.Context) error {
		var o map[string]any
		if err := json.Unmarshal([]byte(h.kubectl(t, "get", "cd", "-n", cd.Namespace, cd.Name, "-o", "json")), &o); err != nil {
			return err
		}
		for _, c := range o["status"].(map[string]any)["conditions"].([]any) {
			if c := c.(map[string]any); c["type"] == "ProvisionStopped" {
				c["status"] = "True"
			}
		}
		raw, err := json.Marshal(o)
		if err != nil {
			return err
		}
		r := h.run(t, string(raw), "kubectl", "replace", "--subresource=status", "-f", "-")
		if r.code != 0 && strings.Contains(r.all(), "Conflict") {
			return fmt.Errorf("conflict: %s", r.all())
		}
		if r.code != 0 {
			t.Fatalf("writing the status: %s", r.all())
		}
		return nil
	})
}

// installConfigNamed checks the name in the install-config of a cluster.
func (h *hub) installConfigNamed(t *testing.T, cd *hivev1.ClusterDeployment, name string) {
	t.Helper()
	var secret corev1.Secret
	if err := h.Get(t.Context(), types.NamespacedName{Namespace: cd.Namespace, Name: cd.Spec.Provisioning.InstallConfigSecretRef.Name}, &secret); err != nil {
		t.Fatal(err)
	}
	var config struct{ Metadata struct{ Name string } }
	if err := yaml.Unmarshal(secret.Data[hivev1.SecretKeyInstallConfig], &config); err != nil || config.Metadata.Name != name {
		t.Errorf("its install-config names it %q, want %q: %v", config.Metadata.Name, name, err)
	}
	if ref := cd.Spec.ClusterPoolRef.CustomizationRef; ref == nil || ref.Name != "cdc-test" {
		t.Errorf("its customization is %v", ref)
	}
}
