package dataplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/agent/install"
)

const ns = "fleet"

var (
	start = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	key   = types.NamespacedName{Namespace: ns, Name: "p"}
)

func hubScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), rbacv1.AddToScheme(s), hivev1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// everything has the kinds of the scenario.
var everything = []client.Object{
	&corev1.Namespace{}, &corev1.ServiceAccount{}, &corev1.Secret{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&hivev1.ClusterPool{}, &hivev1.ClusterClaim{}, &hivev1.ClusterDeployment{}, &hivev1.MachinePool{},
	&v1alpha1.InstanceType{}, &v1alpha1.FleetRegion{}, &v1alpha1.DataPlane{}, &v1alpha1.DataPlaneAgent{}, &v1alpha1.ServiceInstance{},
}

// fleet returns a region with a pool and a type.
func fleet() []client.Object {
	it := &v1alpha1.InstanceType{ObjectMeta: metav1.ObjectMeta{Name: "developer"}}
	it.Spec = v1alpha1.InstanceTypeSpec{
		UnitsPerNode: ptr.To(resource.MustParse("10")), Sizes: []v1alpha1.InstanceSize{{Name: "x1", Units: 1}},
		NodePools: []v1alpha1.NodePool{{Platform: "local", MaxNodes: 2}},
	}
	region := &v1alpha1.FleetRegion{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "here"}}
	region.Spec = v1alpha1.FleetRegionSpec{
		Provider: "local", Region: "laptop", DefaultNodePool: v1alpha1.DefaultNodePool{MinNodes: 1, MaxNodes: 2},
		ClusterSource: v1alpha1.ClusterSource{Claim: &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "spares"}}}}},
		InstanceTypes: []v1alpha1.RegionType{{Name: "developer", Reserved: &v1alpha1.Reserved{Count: 1, Size: "x1"}}},
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}},
		&hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "spares"}}, it, region,
	}
}

func plane(edits ...func(*v1alpha1.DataPlane)) *v1alpha1.DataPlane {
	dp := &v1alpha1.DataPlane{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}}
	dp.Spec = v1alpha1.DataPlaneSpec{
		Provider: "local", Region: "laptop", InstanceTypes: []string{"developer"}, Ownership: v1alpha1.Managed, DeletionPolicy: v1alpha1.DeletionDelete,
	}
	for _, e := range edits {
		e(dp)
	}
	return dp
}

// spoke is a cluster in which the agent is installed.
type spoke struct {
	client.Client
	// log has the writes to it; trouble says why it does not answer; refuses is a kind that it
	// rejects.
	log     []string
	trouble string
	refuses string
}

func newSpoke(t *testing.T) *spoke {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), appsv1.AddToScheme(s), rbacv1.AddToScheme(s), schedulingv1.AddToScheme(s), admissionv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	s.AddKnownTypeWithName(crd, &unstructured.Unstructured{})
	p := &spoke{}
	p.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(s).Build(), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			u := o.(interface {
				GetKind() string
				GetName() string
			})
			p.log = append(p.log, "apply "+u.GetKind()+" "+u.GetName())
			if u.GetKind() == p.refuses {
				return errors.New("it does not answer")
			}
			if u.GetKind() != "Deployment" {
				return nil // the fake client is slow at it
			}
			raw, err := json.Marshal(o)
			d := &appsv1.Deployment{}
			if err := errors.Join(err, json.Unmarshal(raw, d), client.IgnoreNotFound(c.Delete(ctx, d.DeepCopy()))); err != nil {
				return err
			}
			return c.Create(ctx, d)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			p.log = append(p.log, "create "+o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			p.log = append(p.log, "delete "+o.GetObjectKind().GroupVersionKind().Kind+" "+o.GetName())
			err := c.Delete(ctx, o, opts...)
			if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" { // with everything in it
				err = errors.Join(err, client.IgnoreNotFound(c.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: install.Namespace, Name: install.Name}})))
			}
			return err
		},
	})
	return p
}

func (s *spoke) connect(secret types.NamespacedName) (client.Client, string, error) {
	if secret.Name != "admin" && secret.Name != "k" {
		return nil, "", fmt.Errorf("the Secret is %s", secret)
	}
	return s.Client, s.trouble, nil
}

type spokes struct{ of *spoke }

func (s spokes) Client(_ context.Context, secret types.NamespacedName) (client.Client, string, error) {
	return s.of.connect(secret)
}

func (s *spoke) installed(ctx context.Context) bool {
	return s.Get(ctx, types.NamespacedName{Namespace: install.Namespace, Name: install.Name}, &appsv1.Deployment{}) == nil
}

// world plays the other components: those that fill claims, destroy clusters and create tokens, and
// the agent. It reports whether it changed anything.
func world(ctx context.Context, api client.Client, p *spoke) (bool, error) {
	changed := false
	for _, turn := range []func(context.Context, client.Client, *spoke) (bool, error){claims, tokens, agents} {
		did, err := turn(ctx, api, p)
		if err != nil {
			return false, err
		}
		changed = changed || did
	}
	return changed, nil
}

func claims(ctx context.Context, api client.Client, _ *spoke) (bool, error) {
	var list hivev1.ClusterClaimList
	if err := api.List(ctx, &list); err != nil {
		return false, err
	}
	for i := range list.Items {
		c := &list.Items[i]
		before, cd := c.DeepCopy(), &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "c1"}}
		switch there := api.Get(ctx, client.ObjectKeyFromObject(cd), cd) == nil; {
		case c.DeletionTimestamp != nil && there:
			return true, api.Delete(ctx, cd)
		case c.DeletionTimestamp != nil:
			controllerutil.RemoveFinalizer(c, hivev1.FinalizerClaim)
			return true, api.Patch(ctx, c, client.MergeFrom(before))
		case c.Spec.Namespace == "":
			controllerutil.AddFinalizer(c, hivev1.FinalizerClaim)
			c.Spec.Namespace = "c1"
			return true, api.Patch(ctx, c, client.MergeFrom(before))
		case !there:
			return true, run(ctx, api, c.Name)
		case len(c.Status.Conditions) == 0:
			c.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClaimClusterRunning, Status: corev1.ConditionTrue, Reason: "Running"}}
			return true, api.Status().Patch(ctx, c, client.MergeFrom(before))
		}
	}
	return false, nil
}

// run creates the claim's running cluster.
func run(ctx context.Context, api client.Client, claim string) error {
	cd := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "c1"}}
	cd.Spec = hivev1.ClusterDeploymentSpec{
		ClusterName: "c1", Installed: true, Platform: hivev1.Platform{Local: &hivev1.LocalPlatform{}},
		ClusterPoolRef:  &hivev1.ClusterPoolReference{Namespace: ns, PoolName: "spares", ClaimName: claim},
		ClusterMetadata: &hivev1.ClusterMetadata{InfraID: "x", AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "admin"}},
	}
	if err := api.Create(ctx, cd); err != nil {
		return err
	}
	before := cd.DeepCopy()
	cd.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterReady, Status: corev1.ConditionTrue, Reason: "Running"}}
	return api.Status().Patch(ctx, cd, client.MergeFrom(before))
}

func tokens(ctx context.Context, api client.Client, _ *spoke) (bool, error) {
	var s corev1.Secret
	err := api.Get(ctx, types.NamespacedName{Namespace: ns, Name: install.TokenName("p")}, &s)
	if err != nil || len(s.Data) > 0 {
		return false, client.IgnoreNotFound(err)
	}
	before := s.DeepCopy()
	s.Data = map[string][]byte{"token": []byte("t0ken"), "ca.crt": []byte("ca")}
	return true, api.Patch(ctx, &s, client.MergeFrom(before))
}

// agents makes installed agents report what is listed for them.
func agents(ctx context.Context, api client.Client, p *spoke) (bool, error) {
	var a v1alpha1.DataPlaneAgent
	if err := api.Get(ctx, key, &a); err != nil || !p.installed(ctx) {
		return false, client.IgnoreNotFound(err)
	}
	r := &v1alpha1.DataPlaneReport{
		At: metav1.NewTime(start), DataPlaneUID: a.Spec.DataPlaneUID, Ready: true, AgentVersion: "v1", ObservedGeneration: a.Generation,
		Capacity: map[string]v1alpha1.ReportedCapacity{},
		Versions: []v1alpha1.OperatorVersion{{Strimzi: "s1", Ready: true, Kafka: []string{"3.9.0"}, KafkaIBP: []string{"3.9"}}},
	}
	for _, pool := range a.Spec.Pools {
		r.Capacity[pool.Type] = v1alpha1.ReportedCapacity{MaxNodes: pool.MaxNodes, MaxUnits: pool.MaxUnits(), RemainingUnits: pool.MaxUnits()}
	}
	for _, i := range a.Spec.Instances {
		r.Instances = append(r.Instances, v1alpha1.InstanceReport{UID: i.UID, PlacementID: i.PlacementID, Name: i.Name, Reserved: i.Reserved, Phase: v1alpha1.AgentReady})
	}
	if was := a.Status.Report; was != nil && was.ObservedGeneration == r.ObservedGeneration && len(was.Instances) == len(r.Instances) {
		return false, nil
	}
	before := a.DeepCopy()
	a.Status.Report, a.Status.ObservedGeneration = r, a.Generation
	return true, api.Status().Patch(ctx, &a, client.MergeFrom(before))
}
