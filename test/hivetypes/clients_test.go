package hivetypes

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	hiveaws "github.com/openshift/hive/apis/hive/v1/aws"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// world has an object of every kind that hotspare serves, as real work leaves them.
const world = `
{apiVersion: v1, kind: Namespace, metadata: {name: wire}}
---
apiVersion: hive.openshift.io/v1
kind: ClusterDeploymentCustomization
metadata: {name: site, namespace: wire}
spec:
  installConfigPatches: [{op: replace, path: metadata/name, value: x}]
  clusterDeploymentSpecPatches: [{op: add, path: /manageDNS, valueJSON: "false"}]
---
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: paper, namespace: wire}
spec:
  size: 1
  runningCount: 1
  baseDomain: example.com
  imageSetRef: {name: kubernetes}
  platform: {local: {workers: 2, certificateDuration: 48h}}
  annotations: {hive.openshift.io/fake-cluster: "true"}
  powerstateTransitionToRunningTimeout: 20m0s
  powerstateTransitionToHibernatingTimeout: 10m0s
  hibernateAfter: 8h0m0s
---
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: sites, namespace: wire}
spec:
  size: 1
  runningCount: 1
  baseDomain: example.com
  imageSetRef: {name: kubernetes}
  platform: {aws: {region: us-east-1, userTags: {a: b}}}
  annotations: {hive.openshift.io/fake-cluster: "true"}
  inventory: {ClusterDeploymentCustomizations: [{name: site}]}
---
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: machines, namespace: wire}
spec:
  size: 0
  baseDomain: example.com
  imageSetRef: {name: kubernetes}
  platform: {local: {workers: 0}}
---
{apiVersion: hive.openshift.io/v1, kind: ClusterClaim, metadata: {name: served, namespace: wire}, spec: {clusterPoolName: paper, lifetime: 4h0m0s}}
---
{apiVersion: hive.openshift.io/v1, kind: ClusterClaim, metadata: {name: real, namespace: wire}, spec: {clusterPoolName: machines}}
---
{apiVersion: hive.openshift.io/v1, kind: ClusterPool, metadata: {name: none, namespace: wire}, spec: {size: 0, maxSize: 0, baseDomain: example.com, imageSetRef: {name: kubernetes}, platform: {aws: {region: us-east-1}}, annotations: {hive.openshift.io/fake-cluster: "true"}}}
---
apiVersion: hive.openshift.io/v1
kind: MachinePool
metadata: {name: infra, namespace: wire}
spec:
  clusterDeploymentRef: {name: none}
  name: infra
  replicas: 2
  platform: {aws: {type: m6i.large, rootVolume: {size: 100, type: gp3, iops: 1}, zones: [a]}}
  taints: [{key: a, effect: NoSchedule}]
---
{apiVersion: hive.openshift.io/v1, kind: ClusterClaim, metadata: {name: waiting, namespace: wire}, spec: {clusterPoolName: none}}
`

// hold is a finalizer of somebody else.
const hold = "example.com/hold"

// TestClientsWithHivesTypes does with every kind what clients with Hive's types do.
func TestClientsWithHivesTypes(t *testing.T) {
	h := start(t)
	h.apply(t, world)
	real := h.served(t, "real")
	h.served(t, "served")
	h.settled(t, "paper", "sites")
	h.leaveADeprovision(t)

	t.Run("informers see every kind", func(t *testing.T) { h.inform(t) })
	t.Run("a whole object that is written back loses nothing", func(t *testing.T) {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			t.Run(kind, func(t *testing.T) { h.writeBack(t, kind) })
		}
	})
	t.Run("the pool does not replace its clusters for it", func(t *testing.T) { h.settled(t, "paper", "sites") })
	t.Run("a field can be removed on purpose", func(t *testing.T) { h.remove(t) })
	t.Run("what would break a list is refused", func(t *testing.T) { h.refuse(t) })
	t.Run("a served claim stays with its pool", func(t *testing.T) { h.keepPool(t) })
	t.Run("what cannot work is refused", func(t *testing.T) { h.refuseUseless(t) })
	t.Run("a real cluster is destroyed when its claim is released", func(t *testing.T) { h.release(t, "real", real) })
}

// apply creates the objects of a manifest.
func (h *hub) apply(t *testing.T, manifest string) {
	t.Helper()
	for _, o := range objects(t, manifest) {
		if err := h.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// objects reads the documents of a manifest.
func objects(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq("\n"+manifest, "\n---") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil {
			t.Fatal(err)
		}
		if o != nil {
			out = append(out, &unstructured.Unstructured{Object: o})
		}
	}
	return out
}

// served waits for the cluster of a claim.
func (h *hub) served(t *testing.T, name string) *hivev1.ClusterDeployment {
	t.Helper()
	cd := &hivev1.ClusterDeployment{}
	h.eventually(t, "claim "+name+" is served", func(ctx context.Context) error {
		var claim hivev1.ClusterClaim
		if err := h.Get(ctx, types.NamespacedName{Namespace: "wire", Name: name}, &claim); err != nil {
			return err
		}
		for _, c := range claim.Status.Conditions {
			if c.Type == hivev1.ClusterRunningCondition && c.Status == corev1.ConditionTrue {
				return h.Get(ctx, types.NamespacedName{Namespace: claim.Spec.Namespace, Name: claim.Spec.Namespace}, cd)
			}
		}
		return fmt.Errorf("%+v", claim.Status.Conditions)
	})
	return cd
}

// settled waits until pools have their clusters, all of them current.
func (h *hub) settled(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		h.eventually(t, "pool "+name+" settles", func(ctx context.Context) error {
			var pool hivev1.ClusterPool
			if err := h.Get(ctx, types.NamespacedName{Namespace: "wire", Name: name}, &pool); err != nil {
				return err
			}
			current := slices.ContainsFunc(pool.Status.Conditions, func(c hivev1.ClusterPoolCondition) bool {
				return c.Type == hivev1.ClusterPoolAllClustersCurrentCondition && c.Status == corev1.ConditionTrue
			})
			if !current || pool.Status.Ready != pool.Spec.RunningCount || pool.Status.Size != pool.Spec.Size {
				return fmt.Errorf("%+v", pool.Status)
			}
			return nil
		})
	}
}

// leaveADeprovision leaves a cluster that is being deleted, with its ClusterDeprovision.
func (h *hub) leaveADeprovision(t *testing.T) {
	t.Helper()
	h.apply(t, `{apiVersion: hive.openshift.io/v1, kind: ClusterClaim, metadata: {name: brief, namespace: wire}, spec: {clusterPoolName: paper}}`)
	cd := h.served(t, "brief")
	before := cd.DeepCopy()
	cd.Finalizers = append(cd.Finalizers, hold)
	if err := h.Patch(t.Context(), cd, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := h.Delete(t.Context(), &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "wire", Name: "brief"}}); err != nil {
		t.Fatal(err)
	}
	h.eventually(t, "there is a ClusterDeprovision", func(ctx context.Context) error {
		return h.Get(ctx, client.ObjectKeyFromObject(cd), &hivev1.ClusterDeprovision{})
	})
	h.settled(t, "paper")
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := h.Patch(context.Background(), cd, patch); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// inform checks that an informer gets every object of every kind.
func (h *hub) inform(t *testing.T) {
	c, err := cache.New(h.config, cache.Options{Scheme: h.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { _ = c.Start(ctx) }() // its end is the test's
	c.WaitForCacheSync(ctx)
	for resource, typ := range kinds {
		if _, err := c.GetInformer(ctx, reflect.New(typ).Interface().(client.Object)); err != nil {
			t.Errorf("%s: %v", resource, err)
			continue
		}
		list := h.list(t, typ)
		if err := c.List(ctx, list); err != nil {
			t.Errorf("listing %s: %v", resource, err)
		}
		if n := reflect.ValueOf(list).Elem().FieldByName("Items").Len(); n == 0 {
			t.Errorf("there are no %s, so nothing was tested", resource)
		}
	}
}

// list is an empty list of a kind.
func (h *hub) list(t *testing.T, typ reflect.Type) client.ObjectList {
	t.Helper()
	o, err := h.Scheme().New(hivev1.SchemeGroupVersion.WithKind(typ.Name() + "List"))
	if err != nil {
		t.Fatal(err)
	}
	return o.(client.ObjectList)
}

// writeBack gets each object of a kind with Hive's types and writes it back, in every way
// that clients do.
func (h *hub) writeBack(t *testing.T, resource string) {
	typ := kinds[resource]
	list := h.list(t, typ)
	if err := h.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	for i := range items.Len() {
		key := client.ObjectKeyFromObject(items.Index(i).Addr().Interface().(client.Object))
		for _, w := range []struct {
			how   string
			write func(context.Context, client.Object) error
		}{
			{"update", func(ctx context.Context, o client.Object) error {
				label(o, "updated")
				return h.Update(ctx, o)
			}},
			{"update of the status", func(ctx context.Context, o client.Object) error { return h.Status().Update(ctx, o) }},
			{"patch", func(ctx context.Context, o client.Object) error {
				before := o.DeepCopyObject().(client.Object)
				label(o, "patched")
				return h.Patch(ctx, o, client.MergeFrom(before))
			}},
			{"apply", func(ctx context.Context, o client.Object) error {
				return h.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
					"apiVersion": hivev1.SchemeGroupVersion.String(), "kind": typ.Name(),
					"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace, "labels": map[string]any{"wire": "applied"}},
				}}), client.FieldOwner("gitops"), client.ForceOwnership)
			}},
		} {
			before := h.raw(t, typ, key)
			h.eventually(t, w.how+" of "+key.String(), func(ctx context.Context) error {
				o := reflect.New(typ).Interface().(client.Object)
				if err := h.Get(ctx, key, o); err != nil {
					return err
				}
				err := w.write(ctx, o)
				if err != nil && !apierrors.IsConflict(err) {
					t.Errorf("%s of %s %s: %v", w.how, typ.Name(), key, err)
					return nil
				}
				return err
			})
			for _, path := range lost("", before, h.raw(t, typ, key)) {
				t.Errorf("%s of %s %s lost or changed %s", w.how, typ.Name(), key, path)
			}
		}
	}
}

func label(o client.Object, value string) {
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels["wire"] = value
	o.SetLabels(labels)
}

// raw is the spec and the status of an object as they are stored.
func (h *hub) raw(t *testing.T, typ reflect.Type, key client.ObjectKey) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(hivev1.SchemeGroupVersion.WithKind(typ.Name()))
	if err := h.Get(t.Context(), key, u); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"spec": u.Object["spec"], "status": u.Object["status"]}
}

// lost are the paths of what was there before and is not after. Of a status only fields
// count, since controllers go on writing their values.
func lost(at string, before, after any) []string {
	b, ok := before.(map[string]any)
	if !ok {
		if !strings.HasPrefix(at, ".status") && !reflect.DeepEqual(before, after) {
			return []string{fmt.Sprintf("%s: %v became %v", at, before, after)}
		}
		return nil
	}
	a, _ := after.(map[string]any)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(b)) {
		switch v, ok := a[k]; {
		case ok:
			out = append(out, lost(at+"."+k, b[k], v)...)
		case b[k] != nil && !reflect.DeepEqual(b[k], map[string]any{}) && !reflect.DeepEqual(b[k], false) && !reflect.DeepEqual(b[k], int64(0)):
			out = append(out, at+"."+k)
		}
	}
	return out
}

// remove removes a field that Hive's types lack, with and without a field manager.
func (h *hub) remove(t *testing.T) {
	pool := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: "wire", Name: "paper"}}
	key := client.ObjectKeyFromObject(pool)
	has := func() bool {
		spec := h.raw(t, reflect.TypeFor[hivev1.ClusterPool](), key)["spec"].(map[string]any)
		return spec["powerstateTransitionToHibernatingTimeout"] != nil
	}
	null := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"powerstateTransitionToHibernatingTimeout":null}}`))
	if err := h.Patch(t.Context(), pool, null); err != nil || !has() {
		t.Errorf("a write without a field manager: %v, kept: %v", err, has())
	}
	if err := h.Patch(t.Context(), pool, null, client.FieldOwner("kubectl-edit")); err != nil || has() {
		t.Errorf("a write with a field manager: %v, kept: %v", err, has())
	}
	other := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"platform":{"local":null,"none":{}}}}`))
	if err := h.Patch(t.Context(), pool, other, client.DryRunAll); err != nil {
		t.Errorf("another platform: %v", err)
	}
	spec := h.raw(t, reflect.TypeFor[hivev1.ClusterPool](), key)["spec"].(map[string]any)
	if spec["platform"].(map[string]any)["local"] == nil {
		t.Errorf("the platform is %v, want the local one", spec["platform"])
	}
}

// refuse checks that nobody can store what Hive's types cannot decode.
func (h *hub) refuse(t *testing.T) {
	for platform, want := range map[string]string{
		`{aws: {regoin: us-east-1}}`:                               `unknown field "spec.platform.aws.regoin"`,
		`{aws: {region: us-east-1, credentialsSecretRef: text}}`:   "spec.platform.aws.credentialsSecretRef",
		`{azure: {region: 7}}`:                                     "spec.platform.azure.region",
		`{gcp: {region: a, discardLocalSsdOnHibernate: "yes"}}`:    "spec.platform.gcp.discardLocalSsdOnHibernate",
		`{vsphere: {vCenter: [a]}}`:                                "spec.platform.vsphere.vCenter",
		`{openstack: {cloud: {a: b}}}`:                             "spec.platform.openstack.cloud",
		`{nutanix: {prismCentral: {address: a, port: "9440"}}}`:    "spec.platform.nutanix.prismCentral.port",
		`{agentBareMetal: {agentSelector: {matchLabels: {a: 7}}}}`: "spec.platform.agentBareMetal.agentSelector.matchLabels.a",
		`{baremetal: {libvirtSSHPrivateKeySecretRef: a}}`:          "spec.platform.baremetal.libvirtSSHPrivateKeySecretRef",
		`{ibmcloud: {region: true}}`:                               "spec.platform.ibmcloud.region",
	} {
		o := objects(t, `{apiVersion: hive.openshift.io/v1, kind: ClusterPool, metadata: {name: bad, namespace: wire},
			spec: {size: 0, baseDomain: example.com, imageSetRef: {name: kubernetes}, platform: `+platform+`}}`)[0]
		err := client.WithFieldValidation(h, metav1.FieldValidationStrict).Create(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %s", platform, err, want)
		}
	}
}

// release releases a claim and waits until its cluster and its machines have gone.
func (h *hub) release(t *testing.T, name string, cd *hivev1.ClusterDeployment) {
	if err := h.Delete(t.Context(), &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "wire", Name: name}}); err != nil {
		t.Fatal(err)
	}
	h.eventually(t, "the cluster has gone", func(ctx context.Context) error {
		err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd)
		if err == nil {
			return fmt.Errorf("it is there: %+v", cd.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
	left, err := filepath.Glob(filepath.Join(h.dir, "machines", cd.Name+"*"))
	if len(left) > 0 || err != nil {
		t.Errorf("machines are left: %v, %v", left, err)
	}
}

// keepPool checks that a claim that has a cluster cannot be moved to another pool, and
// that one that waits can.
func (h *hub) keepPool(t *testing.T) {
	move := func(name, pool string) error {
		claim := &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "wire", Name: name}}
		return h.Patch(t.Context(), claim, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"clusterPoolName":%q}}`, pool)))
	}
	const want = "clusterPoolName cannot be changed because the claim has cluster "
	if err := move("served", "machines"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a claim that has a cluster: %v, want an error that says %q", err, want)
	}
	if err := move("waiting", "nothing"); err != nil {
		t.Errorf("a claim that waits: %v", err)
	}
	h.served(t, "served")
}

// refuseUseless checks that the API refuses pools that can have no cluster.
func (h *hub) refuseUseless(t *testing.T) {
	for want, pool := range map[string][2]string{
		`metadata.name: "a.b" contains a dot`:                {"a.b", "example.com"},
		`"local_hotspare.io" is not a DNS domain`:            {"ab", "local_hotspare.io"},
		"spec.baseDomain: Too long":                          {"ab", strings.Repeat("a", 300)},
		"use at most 189":                                    {"ab", strings.Repeat("a.", 100) + "a"},
		`spec.labels["a"]: "b c" is not a valid label value`: {"ab", "example.com, labels: {a: b c}"},
		`spec.labels: "a b" is not a valid label key`:        {"ab", "example.com, labels: {a b: c}"},
	} {
		o := objects(t, fmt.Sprintf(`{apiVersion: hive.openshift.io/v1, kind: ClusterPool, metadata: {name: %s, namespace: wire},
			spec: {size: 0, imageSetRef: {name: kubernetes}, platform: {local: {}}, baseDomain: %s}}`, pool[0], pool[1]))[0]
		if err := h.Create(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80v: %v, want an error that says %s", pool, err, want)
		}
	}
	var pool hivev1.ClusterPool
	pool.Namespace, pool.Name = "wire", "nowhere"
	pool.Spec.BaseDomain, pool.Spec.ImageSetRef.Name = "example.com", "kubernetes"
	pool.Spec.Platform.AWS = &hiveaws.Platform{} // whose region is empty, not absent
	const want = "spec.platform.aws.region: Required value: write the AWS region of the cluster"
	if err := h.Create(t.Context(), &pool); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a pool without a region: %v, want an error that says %s", err, want)
	}
}
