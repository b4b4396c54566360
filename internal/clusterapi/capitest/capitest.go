// Package capitest simulates a hub with Cluster API, for tests: an API in memory, and as much of the
// controllers as the behavior of hotspare depends on. They create machines, confirm pauses, replace
// machines that do not run, and delete, and do none of this while a Cluster is paused.
//
// Test module test/capi runs the same against Cluster API's own controllers.
package capitest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/clusterapi"
)

// Finalizer is the finalizer that the simulated controllers set.
const Finalizer = "cluster.cluster.x-k8s.io"

// ErrCrash is the error of the write at which the simulated process ends.
var ErrCrash = errors.New("the process has ended")

// Hub is the simulated hub.
type Hub struct {
	*fake.FakeDynamicClient
	t     *testing.T
	clock clock.PassiveClock
	// Running reports whether the instance with a provider ID runs; the controllers replace the machines
	// of those that do not. Nil means that all run.
	Running func(providerID string) bool
	// Confirming is false while the controllers do not confirm pauses.
	Confirming bool
	// crashIn is the number of writes until a crash; 0 means none. The write at which the process
	// crashes is stored if afterWrite is set.
	crashIn    int
	afterWrite bool
	crashed    bool
	// Writes counts the writes of hotspare.
	Writes int
	serial int
	inSim  bool
}

// listKinds are the kinds that the hub serves.
var listKinds = map[schema.GroupVersionResource]string{
	clusterapi.Clusters: "ClusterList", clusterapi.ClusterClasses: "ClusterClassList", clusterapi.Machines: "MachineList",
	clusterapi.MachineHealthChecks: "MachineHealthCheckList", clusterapi.MachinePools: "MachinePoolList", clusterapi.BareMetalHosts: "BareMetalHostList",
	clusterapi.KamajiControlPlanes: "KamajiControlPlaneList", clusterapi.K0smotronClusters: "ClusterList",
	clusterapi.K0smotronClustersV1beta1: "ClusterList", clusterapi.Secrets: "SecretList", clusterapi.ConfigMaps: "ConfigMapList",
	{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "awsclusters"}: "AWSClusterList",
}

// New returns a hub with the given objects.
func New(t *testing.T, c clock.PassiveClock, objects ...*unstructured.Unstructured) *Hub {
	t.Helper()
	h := &Hub{t: t, clock: c, Confirming: true}
	h.FakeDynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds)
	h.PrependReactor("*", "*", h.react)
	for _, o := range objects {
		h.Add(o)
	}
	return h
}

// CrashAt makes the process crash at its nth write, before or after the hub stores it. 0 means that
// it does not crash.
func (h *Hub) CrashAt(n int, afterWrite bool) {
	h.crashIn, h.afterWrite, h.crashed = n, afterWrite, false
}

// Crashed reports whether the process has crashed since CrashAt.
func (h *Hub) Crashed() bool { return h.crashed }

// Unserve makes the hub answer as an API server without a resource does.
func (h *Hub) Unserve(r schema.GroupVersionResource) {
	h.PrependReactor("*", r.Resource, func(action k8stesting.Action) (bool, runtime.Object, error) {
		if action.GetResource() != r || h.inSim {
			return false, nil, nil
		}
		return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, action.GetVerb(), r.GroupResource(), "", "404 page not found", 0, true)
	})
}

// react implements what the fake client lacks: times, UIDs, finalizers, and crashes.
func (h *Hub) react(action k8stesting.Action) (bool, runtime.Object, error) {
	if h.inSim || action.GetVerb() == "get" || action.GetVerb() == "list" {
		return false, nil, nil
	}
	h.Writes++
	if h.crashIn > 0 {
		h.crashIn--
		if h.crashIn == 0 {
			h.crashed = true
			if !h.afterWrite {
				return true, nil, ErrCrash
			}
			if _, _, err := h.store(action); err != nil {
				h.t.Errorf("storing the last write: %v", err)
			}
			return true, nil, ErrCrash
		}
	}
	return h.store(action)
}

func (h *Hub) store(action k8stesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case k8stesting.CreateActionImpl:
		o, _ := a.GetObject().(*unstructured.Unstructured)
		h.serial++
		o = o.DeepCopy()
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", h.serial)))
		o.SetCreationTimestamp(metav1.NewTime(h.clock.Now()))
		if o.GetKind() == "Cluster" {
			o.SetFinalizers([]string{Finalizer})
		}
		if err := h.Tracker().Create(a.GetResource(), o, a.GetNamespace()); err != nil {
			return true, nil, err
		}
		return true, o, nil
	case k8stesting.DeleteActionImpl:
		o := h.get(a.GetResource(), a.GetNamespace(), a.GetName())
		if o == nil || len(o.GetFinalizers()) == 0 {
			return true, nil, h.Tracker().Delete(a.GetResource(), a.GetNamespace(), a.GetName())
		}
		now := metav1.NewTime(h.clock.Now())
		if o.GetDeletionTimestamp() == nil {
			o.SetDeletionTimestamp(&now)
		}
		return true, nil, h.Tracker().Update(a.GetResource(), o, a.GetNamespace())
	}
	if h.crashed && h.afterWrite {
		return h.ReactionChain[len(h.ReactionChain)-1].React(action)
	}
	return false, nil, nil
}

func (h *Hub) get(r schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	o, err := h.Tracker().Get(r, namespace, name)
	if err != nil {
		return nil
	}
	found, _ := o.(*unstructured.Unstructured)
	return found.DeepCopy()
}

// Get returns an object, or nil.
func (h *Hub) Get(r schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	return h.get(r, namespace, name)
}

// Add stores an object as another user would.
func (h *Hub) Add(o *unstructured.Unstructured) {
	h.t.Helper()
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	if o.GetUID() == "" {
		h.serial++
		o.SetUID(types.UID(fmt.Sprintf("uid-%d", h.serial)))
	}
	if err := h.Tracker().Create(plural, o, o.GetNamespace()); err != nil {
		h.t.Fatal(err)
	}
}

// Edit changes an object as another user would.
func (h *Hub) Edit(r schema.GroupVersionResource, namespace, name string, f func(*unstructured.Unstructured)) {
	h.t.Helper()
	o := h.get(r, namespace, name)
	if o == nil {
		h.t.Fatalf("%s %s does not exist", r.Resource, name)
	}
	f(o)
	if err := h.Tracker().Update(r, o, namespace); err != nil {
		h.t.Fatal(err)
	}
}

// Remove removes an object at once.
func (h *Hub) Remove(r schema.GroupVersionResource, namespace, name string) {
	h.t.Helper()
	if err := h.Tracker().Delete(r, namespace, name); err != nil {
		h.t.Fatal(err)
	}
}

// List returns the objects of a namespace.
func (h *Hub) List(r schema.GroupVersionResource, namespace string) []unstructured.Unstructured {
	h.t.Helper()
	h.inSim = true
	defer func() { h.inSim = false }()
	list, err := h.Resource(r).Namespace(namespace).List(h.t.Context(), metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return list.Items
}

// Object returns an object from an apiVersion, a kind, a name and a spec.
func Object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	o.SetNamespace(namespace)
	o.SetName(name)
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

// SetCondition sets a condition of an object.
func SetCondition(o *unstructured.Unstructured, typ string, status bool, message string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var kept []any
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] != typ {
			kept = append(kept, item)
		}
	}
	text := "False"
	if status {
		text = "True"
	}
	kept = append(kept, map[string]any{"type": typ, "status": text, "reason": typ, "message": message})
	if err := unstructured.SetNestedSlice(o.Object, kept, "status", "conditions"); err != nil {
		panic(err) // the kinds of the values above are fixed
	}
}

// Step lets the controllers do one pass over every Cluster of a namespace.
func (h *Hub) Step(namespace string) {
	h.t.Helper()
	for _, c := range h.List(clusterapi.Clusters, namespace) {
		h.stepCluster(&c)
	}
}

func (h *Hub) stepCluster(c *unstructured.Unstructured) {
	namespace, name, paused := c.GetNamespace(), c.GetName(), clusterapi.IsPaused(c)
	if h.Confirming {
		confirm := func(o *unstructured.Unstructured) { SetCondition(o, clusterapi.Paused, paused, "") }
		h.Edit(clusterapi.Clusters, namespace, name, confirm)
		for _, r := range []schema.GroupVersionResource{clusterapi.Machines, clusterapi.MachineHealthChecks} {
			for _, o := range h.List(r, namespace) {
				if o.GetLabels()[clusterapi.LabelCluster] == name {
					h.Edit(r, namespace, o.GetName(), confirm)
				}
			}
		}
	}
	switch {
	case paused:
	case c.GetDeletionTimestamp() != nil:
		for _, m := range h.List(clusterapi.Machines, namespace) {
			if m.GetLabels()[clusterapi.LabelCluster] == name {
				h.Remove(clusterapi.Machines, namespace, m.GetName())
			}
		}
		h.Remove(clusterapi.Clusters, namespace, name)
	default:
		h.stepMachines(c)
	}
}

// stepMachines creates the machines of a Cluster and its kubeconfig, and replaces the machines whose
// instances do not run.
func (h *Hub) stepMachines(c *unstructured.Unstructured) {
	namespace, name := c.GetNamespace(), c.GetName()
	machines := 0
	for _, m := range h.List(clusterapi.Machines, namespace) {
		if m.GetLabels()[clusterapi.LabelCluster] != name {
			continue
		}
		machines++
		id, _, _ := unstructured.NestedString(m.Object, "spec", "providerID")
		if h.Running != nil && !h.Running(id) {
			h.Remove(clusterapi.Machines, namespace, m.GetName())
			h.AddMachine(namespace, name, m.GetName(), strings.TrimSuffix(id, "-again")+"-again", clusterapi.IsControlPlane(&m))
		}
	}
	if machines == 0 {
		h.AddMachine(namespace, name, name+"-cp-0", "aws:///us-east-1a/i-"+name+"-cp-0", true)
		h.AddMachine(namespace, name, name+"-md-0", "aws:///us-east-1a/i-"+name+"-md-0", false)
		return
	}
	if h.get(clusterapi.Secrets, namespace, clusterapi.KubeconfigSecret(name)) == nil {
		secret := Object("v1", "Secret", namespace, clusterapi.KubeconfigSecret(name), nil)
		secret.Object["data"] = map[string]any{clusterapi.KubeconfigKey: base64.StdEncoding.EncodeToString([]byte(Kubeconfig))}
		h.Add(secret)
		return
	}
	h.Edit(clusterapi.Clusters, namespace, name, func(o *unstructured.Unstructured) { SetCondition(o, clusterapi.Available, true, "") })
}

// Kubeconfig is the kubeconfig of every cluster.
const Kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://c.example.com:6443"}}]
users: [{name: admin, user: {token: planted-secret}}]
contexts: [{name: admin, context: {cluster: c, user: admin}}]
current-context: admin
`

// AddMachine adds a Machine of a Cluster with a node of the same name.
func (h *Hub) AddMachine(namespace, cluster, name, providerID string, controlPlane bool) {
	h.t.Helper()
	m := Object(clusterapi.Group+"/"+clusterapi.Version, "Machine", namespace, name, map[string]any{})
	if providerID != "" {
		m.Object["spec"] = map[string]any{"providerID": providerID}
	}
	m.Object["status"] = map[string]any{"nodeRef": map[string]any{"name": name}}
	labels := map[string]string{clusterapi.LabelCluster: cluster}
	if controlPlane {
		labels["cluster.x-k8s.io/control-plane"] = ""
	}
	m.SetLabels(labels)
	h.Add(m)
}
