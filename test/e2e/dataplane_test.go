package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent/install"
)

// A data plane comes out of a warm pool, gets its nodes and an agent that reports, runs
// an instance, waits for that when it is deleted, and leaves nothing behind.
func TestADataPlaneComesAndGoes(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := localPool(ns, "spares", 1, 1)
	it, region := fleetOf(ns)
	h.create(t, pool, it, region)
	t.Cleanup(func() {
		if err := h.Delete(context.Background(), it); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting InstanceType %s: %v", it.Name, err)
		}
	})
	h.settled(t, pool)
	dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "plane"}}
	dp.Spec = v1alpha1.DataPlaneSpec{Provider: "local", Region: ns, InstanceTypes: []string{it.Name}}
	h.create(t, dp)
	h.planeIs(t, dp, v1alpha1.PhaseReady, string(v1alpha1.PhaseReady))
	if c := dp.Status.Capacity[it.Name]; c.MaxNodes != 2 || c.MaxUnits != 20 || dp.Spec.ClusterRef == nil || dp.Spec.ClusterRef.Claim.Name != dp.Name {
		t.Errorf("got %+v, %+v", c, dp.Spec.ClusterRef)
	}
	warm := "reserved-kafka-" + it.Name + "-1"
	agent := &v1alpha1.DataPlaneAgent{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: dp.Name}}
	h.reports(t, agent, func(r v1alpha1.DataPlaneReport) bool { return phases(r) == warm+":Ready" })

	si := h.placedOn(t, dp)
	h.reports(t, agent, func(r v1alpha1.DataPlaneReport) bool {
		return phases(r) == string(si.UID)+":Ready "+warm+":Ready" || phases(r) == warm+":Ready "+string(si.UID)+":Ready"
	})
	t.Log("deleted in the foreground, it waits for its instance, and its claim stays")
	if err := h.Delete(t.Context(), dp, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	h.planeIs(t, dp, v1alpha1.PhaseReady, v1alpha1.ReasonInstancesLeft)
	var claim hivev1.ClusterClaim
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(dp), &claim); err != nil || claim.DeletionTimestamp != nil {
		t.Fatalf("the claim: %v, deleted %v", err, claim.DeletionTimestamp)
	}
	stranger := h.stranger(t, dp, si)
	eventually(t, "the hub is told of an instance that it does not know", func(ctx context.Context) error {
		a := &v1alpha1.DataPlaneAgent{}
		if err := errors.Join(h.Get(ctx, client.ObjectKeyFromObject(dp), dp), h.Get(ctx, client.ObjectKeyFromObject(dp), a)); err != nil || len(dp.Status.Unlisted) == 1 {
			return err
		}
		return fmt.Errorf("%+v, and its agent says %+v", dp.Status, a.Status.Report)
	})
	if err := h.Delete(t.Context(), si); err != nil {
		t.Fatal(err)
	}
	h.planeIs(t, dp, v1alpha1.PhaseReady, v1alpha1.ReasonUnlistedInstances)
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(dp), &claim); err != nil || claim.DeletionTimestamp != nil || len(dp.Status.Unlisted) != 1 || dp.Status.Unlisted[0].Name != "stranger" {
		t.Fatalf("an instance that the hub does not know is on it, %v; the claim: %v, deleted %v", dp.Status.Unlisted, err, claim.DeletionTimestamp)
	}
	t.Log("a person deletes the instance that nobody knows on the data plane")
	if err := planeOf(t, h.kubeconfigOf(t, ns, dp.Name)).Delete(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all of the data plane is gone", func(ctx context.Context) error { return h.gonePlane(ctx, dp) })
}

// stranger puts an instance on the data plane that is one of the agent's, and that the hub
// does not know, as after a restore of the hub.
func (h *hub) stranger(t *testing.T, dp *v1alpha1.DataPlane, like *v1alpha1.ServiceInstance) *unstructured.Unstructured {
	t.Helper()
	api := planeOf(t, h.kubeconfigOf(t, dp.Namespace, dp.Name))
	known := &unstructured.Unstructured{}
	known.SetGroupVersionKind(schema.GroupVersionKind{Group: "managedkafka.bf2.org", Version: "v1alpha1", Kind: "ManagedKafka"})
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kafka-" + string(like.UID), Name: like.Name}, known); err != nil {
		t.Fatal(err)
	}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kafka-lost"}}
	other := known.DeepCopy()
	other.SetNamespace(space.Name)
	other.SetName("stranger")
	other.SetUID("")
	other.SetResourceVersion("")
	other.SetManagedFields(nil)
	for _, o := range []client.Object{space, other} {
		if err := api.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	// Last: the agent deletes a namespace of its own that is empty.
	space.Labels = map[string]string{"app.kubernetes.io/managed-by": "hotspare-agent", "hotspare.io/instance": "lost"}
	if err := api.Update(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	return other
}

// fleetOf is a type and a region of their own. The region makes and removes nothing.
func fleetOf(ns string) (*v1alpha1.InstanceType, *v1alpha1.FleetRegion) {
	it := &v1alpha1.InstanceType{ObjectMeta: metav1.ObjectMeta{Name: ns}}
	it.Spec = v1alpha1.InstanceTypeSpec{
		Sizes: []v1alpha1.InstanceSize{{Name: "x1", Units: 1}}, UnitsPerNode: ptr.To(resource.MustParse("10")),
		NodePools: []v1alpha1.NodePool{{Platform: "local", MinNodes: ptr.To[int32](1), MaxNodes: 2}},
	}
	region := &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "here"}}
	region.Spec = v1alpha1.FleetRegionSpec{
		Provider: "local", Region: ns, DefaultNodePool: v1alpha1.DefaultNodePool{MinNodes: 1, MaxNodes: 2},
		InstanceTypes: []v1alpha1.RegionType{{Name: it.Name, Reserved: &v1alpha1.Reserved{Count: 1, Size: "x1"}}},
		ClusterSource: v1alpha1.ClusterSource{Claim: &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}},
		ScaleUp:       v1alpha1.ScaleUp{Mode: v1alpha1.ScalingOff}, ScaleDown: v1alpha1.ScaleDown{Mode: v1alpha1.ScalingOff},
	}
	return it, region
}

func (h *hub) planeIs(t *testing.T, dp *v1alpha1.DataPlane, phase v1alpha1.DataPlanePhase, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("data plane %s is %s with reason %s", dp.Name, phase, reason), func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(dp), dp); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneReady); dp.Status.Phase != phase || c == nil || c.Reason != reason {
			return fmt.Errorf("it is %s: %+v", dp.Status.Phase, c)
		}
		return nil
	})
}

// placedOn makes an instance that has a place on the data plane.
func (h *hub) placedOn(t *testing.T, dp *v1alpha1.DataPlane) *v1alpha1.ServiceInstance {
	t.Helper()
	si := &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: dp.Namespace, Name: "mine"}}
	si.Spec = v1alpha1.ServiceInstanceSpec{Type: dp.Spec.InstanceTypes[0], Size: "x1", Provider: dp.Spec.Provider, Region: dp.Spec.Region}
	h.create(t, si)
	eventually(t, "the instance has its place", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(si), si); err != nil || si.Status.DataPlaneName != "" {
			return err
		}
		before := si.DeepCopy()
		si.Status.DataPlaneName, si.Status.Units, si.Status.Placements = dp.Name, 1, 1
		return h.Status().Patch(ctx, si, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	return si
}

// gonePlane is an error while anything is there that the data plane has made.
func (h *hub) gonePlane(ctx context.Context, dp *v1alpha1.DataPlane) error {
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: dp.Namespace, Name: name} }
	for _, o := range append(install.HubObjects(dp.Namespace, dp.Name),
		&v1alpha1.DataPlane{ObjectMeta: at(dp.Name)}, &v1alpha1.DataPlaneAgent{ObjectMeta: at(dp.Name)}, &hivev1.ClusterClaim{ObjectMeta: at(dp.Name)},
	) {
		if err := h.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is there: %w", o, o.GetName(), err)
		}
	}
	var clusters hivev1.ClusterDeploymentList
	if err := h.List(ctx, &clusters); err != nil {
		return err
	}
	for _, cd := range clusters.Items {
		if of := cd.Spec.ClusterPoolRef; of != nil && of.Namespace == dp.Namespace && of.ClaimName == dp.Name {
			return fmt.Errorf("cluster %s is there", cd.Name)
		}
	}
	return nil
}
