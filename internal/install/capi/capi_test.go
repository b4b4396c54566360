package capi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/clusterapi/capitest"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
)

const v1beta2 = clusterapi.Group + "/" + clusterapi.Version

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// lab is an executor on a simulated hub.
type lab struct {
	*Executor
	*capitest.Hub
	t     *testing.T
	clock *testingclock.FakePassiveClock
	req   install.Request
}

func newLab(t *testing.T, objects ...*unstructured.Unstructured) *lab {
	t.Helper()
	l := &lab{t: t, clock: testingclock.NewFakePassiveClock(began)}
	l.Hub = capitest.New(t, l.clock, append(objects, capitest.Object(v1beta2, "ClusterClass", "classes", "quick-start", nil))...)
	l.Executor = New(l.Hub, Options{Clock: l.clock})
	l.req = request()
	return l
}

func request() install.Request {
	two := int32(2)
	return install.Request{ClusterTarget: install.ClusterTarget{
		Cluster: types.NamespacedName{Namespace: "ns", Name: "spare-abcde"}, UID: "cd-uid",
		Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
			ClassRef: &hivev1.CAPIClassReference{Name: "quick-start", Namespace: "classes"}, Version: "v1.36.0",
			Workers:   []hivev1.CAPIWorkers{{Class: "default-worker", Name: "md-0", Replicas: &two}},
			Variables: []hivev1.CAPIVariable{{Name: "size", Value: &runtime.RawExtension{Raw: []byte(`{"cores":4}`)}}},
			Labels:    map[string]string{"cni": "calico"},
		}},
	}}
}

// templateRequest requests a cluster from ConfigMap template in the namespace of the pool.
func templateRequest(variables ...hivev1.CAPIVariable) install.Request {
	req := request()
	req.PoolNamespace = "pools"
	req.Platform.CAPI = &hivev1.CAPIPlatform{TemplateRef: &corev1.LocalObjectReference{Name: "template"}, Version: "v1.36.0", Variables: variables}
	return req
}

const template = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}", namespace: "${NAMESPACE}"}
spec: {infrastructureRef: {kind: AWSCluster, name: "${CLUSTER_NAME}"}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: "${CLUSTER_NAME}"}
spec: {region: "${AWS_REGION:=us-east-1}", version: "${KUBERNETES_VERSION}", machines: ${CONTROL_PLANE_MACHINE_COUNT}}
`

func templateMap(text string) *unstructured.Unstructured {
	o := capitest.Object("v1", "ConfigMap", "pools", "template", nil)
	o.Object["data"] = map[string]any{"cluster.yaml": text}
	return o
}

// prepare prepares the attempt.
func (l *lab) prepare() install.Metadata {
	l.t.Helper()
	md, err := l.Prepare(l.t.Context(), l.req)
	if err != nil {
		l.t.Fatal(err)
	}
	return md
}

// untilInstalled installs, lets the controllers work in between, and returns the result.
func (l *lab) untilInstalled(md install.Metadata) install.Result {
	l.t.Helper()
	for range 20 {
		res, err := l.Install(l.t.Context(), l.req, md)
		if err != nil && fault.KindOf(err) != fault.Wait && !errors.Is(err, capitest.ErrCrash) {
			l.t.Fatal(err)
		}
		if res.Phase == install.Succeeded || res.Phase == install.Failed {
			return res
		}
		l.Step("ns")
	}
	l.t.Fatal("the attempt does not end")
	return install.Result{}
}

// untilDestroyed destroys, and returns an error that is not a crash.
func (l *lab) untilDestroyed(md install.Metadata) {
	l.t.Helper()
	for range 20 {
		res, err := l.Destroy(l.t.Context(), l.req.ClusterTarget, md)
		if err != nil && !errors.Is(err, capitest.ErrCrash) {
			l.t.Fatal(err)
		}
		if res.Phase == install.Succeeded {
			return
		}
		l.Step("ns")
	}
	l.t.Fatal("the destruction does not end")
}

func TestTheClusterIsCreatedFromItsClass(t *testing.T) {
	l := newLab(t)
	md := l.prepare()
	if l.Writes > 0 {
		t.Errorf("Prepare wrote %d times", l.Writes)
	}
	res := l.untilInstalled(md)
	want := install.Result{Phase: install.Succeeded, Kubeconfig: []byte(capitest.Kubeconfig), APIURL: "https://c.example.com:6443", Version: "1.36.0"}
	if diff := cmp.Diff(want, res); diff != "" {
		t.Error(diff)
	}
	cluster := l.Get(clusterapi.Clusters, "ns", md.InfraID)
	raw, err := yaml.Marshal(map[string]any{"labels": cluster.GetLabels(), "owner": cluster.GetAnnotations()[clusterapi.AnnotationOwner], "spec": cluster.Object["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	const spec = `labels:
  cni: calico
owner: cd-uid
spec:
  topology:
    classRef:
      name: quick-start
      namespace: classes
    controlPlane:
      replicas: 1
    variables:
    - name: size
      value:
        cores: 4
    version: v1.36.0
    workers:
      machineDeployments:
      - class: default-worker
        name: md-0
        replicas: 2
`
	if diff := cmp.Diff(spec, string(raw)); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(md.InfraID, "spare-abcde-") || len(md.InfraID) > 27 {
		t.Errorf("infraID %q", md.InfraID)
	}
}

func TestNamesFollowFromTheClusterAndTheAttempt(t *testing.T) {
	l := newLab(t)
	first := l.prepare()
	if again := l.prepare(); again.InfraID != first.InfraID {
		t.Errorf("one attempt has the names %s and %s", first.InfraID, again.InfraID)
	}
	l.req.Attempt = 1
	if next := l.prepare(); next.InfraID == first.InfraID {
		t.Errorf("two attempts have the name %s", next.InfraID)
	}
	l.req.Attempt, l.req.UID = 0, "other"
	if other := l.prepare(); other.InfraID == first.InfraID {
		t.Errorf("two clusters have the name %s", other.InfraID)
	}
}

func TestATemplateIsCreatedAndDestroyed(t *testing.T) {
	l := newLab(t, templateMap(template))
	l.req = templateRequest(hivev1.CAPIVariable{Name: "AWS_REGION", Value: &runtime.RawExtension{Raw: []byte(`"eu-central-1"`)}})
	md := l.prepare()
	if res := l.untilInstalled(md); res.Phase != install.Succeeded {
		t.Fatalf("%+v", res)
	}
	infra := schema.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta2", Resource: "awsclusters"}
	made := l.Get(infra, "ns", md.InfraID)
	if made == nil {
		t.Fatal("the template's infrastructure does not exist")
	}
	if diff := cmp.Diff(map[string]any{"region": "eu-central-1", "version": "v1.36.0", "machines": int64(1)}, made.Object["spec"]); diff != "" {
		t.Error(diff)
	}
	l.Remove(clusterapi.ConfigMaps, "pools", "template") // Destroy must not need it
	l.untilDestroyed(md)
	if l.Get(infra, "ns", md.InfraID) != nil || l.Get(clusterapi.Clusters, "ns", md.InfraID) != nil {
		t.Error("something is left")
	}
}

// Every write may be the last one, stored or not.
func TestACrashAtAnyWriteLeavesNothingAndCreatesNothingTwice(t *testing.T) {
	for n := 1; ; n++ {
		crashed := false
		for _, stored := range []bool{false, true} {
			l := newLab(t, templateMap(template))
			l.req = templateRequest()
			md := l.prepare()
			l.CrashAt(n, stored)
			if res := l.untilInstalled(md); res.Phase != install.Succeeded {
				t.Fatalf("write %d, stored %t: %+v", n, stored, res)
			}
			if got := len(l.List(clusterapi.Clusters, "ns")); got != 1 {
				t.Errorf("write %d, stored %t: %d Clusters", n, stored, got)
			}
			l.untilDestroyed(md)
			crashed = crashed || l.Crashed()
			for r := range map[schema.GroupVersionResource]bool{clusterapi.Clusters: true, clusterapi.Machines: true} {
				if left := l.List(r, "ns"); len(left) > 0 {
					t.Errorf("write %d, stored %t: %d %s are left", n, stored, len(left), r.Resource)
				}
			}
		}
		if !crashed {
			if n < 4 {
				t.Fatalf("there are only %d writes", n-1)
			}
			return
		}
	}
}

func TestWhatKeepsAClusterFromBeingInstalledIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(l *lab, md install.Metadata)
		want string
	}{
		"a Cluster without status": {
			func(*lab, install.Metadata) {},
			"wait: Cluster ID is not Available yet: it has no condition Available: check that the controllers of Cluster API run",
		},
		"conditions on several lines": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) {
				capitest.SetCondition(o, "Available", false, "* WorkersAvailable:\n  * MachineDeployment md-0: 0 available replicas")
			})
		}, "wait: Cluster ID is not Available yet: WorkersAvailable:; MachineDeployment md-0: 0 available replicas"},
		"another user's pause": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["paused"] = true })
		}, "wait: Cluster ID is paused by another user, so Cluster API does not create it: whoever paused it can set its spec.paused to false"},
		"a Cluster that is Available and has no kubeconfig": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) { capitest.SetCondition(o, "Available", true, "") })
		}, "wait: Cluster ID is Available, and Secret ID-kubeconfig with its kubeconfig does not exist yet"},
		"a Cluster that was deleted by hand": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) {
				at := metav1Now()
				o.SetDeletionTimestamp(&at)
			})
		}, "ClusterDeleted: Cluster ID was deleted by another user while it was created: the rest of the attempt is deleted, and another attempt follows. " +
			"To delete the cluster, delete its ClusterDeployment."},
		"a Cluster that was not created for it": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		}, "NameTaken: Cluster ID exists already, and hotspare did not create it for this ClusterDeployment: delete or rename it; another attempt follows."},
		"a Cluster that takes too long": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) { capitest.SetCondition(o, "Available", false, "no quota") })
			l.clock.SetTime(began.Add(2 * time.Hour))
		}, "InstallTimeout: Available=False Available: no quota\nCluster ID was not Available after 1h0m0s: no quota"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			md := l.prepare()
			if _, err := l.Install(t.Context(), l.req, md); fault.KindOf(err) != fault.Wait {
				t.Fatal(err)
			}
			c.edit(l, md)
			res, err := l.Install(t.Context(), l.req, md)
			if diff := cmp.Diff(c.want, strings.ReplaceAll(describe(res, err), md.InfraID, "ID")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// describe returns a result and an error as text.
func describe(res install.Result, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v", fault.KindOf(err), err)
	case res.Phase == install.Failed:
		return res.Reason + ": " + res.Log
	}
	return string(res.Phase)
}

func TestWhatKeepsAClusterFromBeingDestroyedIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(l *lab, md install.Metadata)
		want string
	}{
		"a Cluster of another owner stays": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) { o.SetAnnotations(nil) })
		}, "denied: Cluster ID in namespace ns was not created by hotspare for this ClusterDeployment, so hotspare does not delete it: " +
			"set spec.preserveOnDelete of ClusterDeployment spare-abcde to delete that alone, " +
			"or set the annotation hotspare.io/cluster-deployment-uid of the object to cd-uid to have it deleted"},
		"another user's pause is named": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) { o.Object["spec"].(map[string]any)["paused"] = true })
		}, "DestroyTimeout: Cluster ID is deleted, and another user has paused it, so Cluster API does not delete its machines: " +
			"whoever paused it can set its spec.paused to false."},
		"a deletion that is stuck is named": {func(l *lab, md install.Metadata) {
			l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) {
				at := metav1Now()
				o.SetDeletionTimestamp(&at)
				capitest.SetCondition(o, "Deleting", true, "* Control plane:\n  * still 1 Machine.")
			})
			l.clock.SetTime(began.Add(2 * time.Hour))
		}, "DestroyTimeout: Cluster ID was deleted more than 30m0s ago and still exists: " +
			"Control plane:; still 1 Machine; see its condition Deleting and the logs of the infrastructure provider."},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			md := l.prepare()
			l.untilInstalled(md)
			c.edit(l, md)
			res, err := l.Destroy(t.Context(), l.req.ClusterTarget, md)
			if diff := cmp.Diff(c.want, strings.ReplaceAll(describe(res, err), md.InfraID, "ID")); diff != "" {
				t.Error(diff)
			}
			if l.Get(clusterapi.Clusters, "ns", md.InfraID) == nil {
				t.Error("the Cluster does not exist any more")
			}
		})
	}
}

// Cluster API deletes nothing that is paused.
func TestAHibernatingClusterIsDestroyed(t *testing.T) {
	l := newLab(t)
	md := l.prepare()
	l.untilInstalled(md)
	l.Edit(clusterapi.Clusters, "ns", md.InfraID, func(o *unstructured.Unstructured) {
		o.Object["spec"].(map[string]any)["paused"] = true
		o.SetAnnotations(map[string]string{clusterapi.AnnotationOwner: "cd-uid", clusterapi.AnnotationPaused: "2026-01-02T03:04:05Z"})
	})
	l.untilDestroyed(md)
}

func TestSettingsThatCannotWorkAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		req     install.Request
		want    string
	}{
		"no class and no template": {
			nil, edited(func(p *hivev1.CAPIPlatform) { p.ClassRef = nil }),
			"denied: spec.platform.capi of ClusterDeployment ns/spare-abcde has neither classRef nor templateRef: name a ClusterClass or a template",
		},
		"a class that does not exist": {
			nil, edited(func(p *hivev1.CAPIPlatform) { p.ClassRef.Namespace = "" }),
			"wait: ClusterClass quick-start in namespace ns, named by spec.platform.capi.classRef, does not exist: create it, or correct classRef",
		},
		"no version": {
			nil, edited(func(p *hivev1.CAPIPlatform) { p.Version = "" }),
			`denied: spec.platform.capi.version of ClusterDeployment ns/spare-abcde is empty, and the tag of the release image "" is not a version: set the version, such as v1.36.0`,
		},
		"no template": {nil, templateRequest(), "wait: ConfigMap template, named by spec.platform.capi.templateRef, does not exist: create it in namespace pools"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, c.objects...)
			_, err := l.Prepare(t.Context(), c.req)
			if diff := cmp.Diff(c.want, describe(install.Result{}, err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func edited(edit func(*hivev1.CAPIPlatform)) install.Request {
	req := request()
	edit(req.Platform.CAPI)
	return req
}

func TestTheVersionMayComeFromTheImageSet(t *testing.T) {
	req := edited(func(p *hivev1.CAPIPlatform) { p.Version = "" })
	for image, want := range map[string]string{
		"registry.example/kubernetes:v1.36.0": "v1.36.0", "registry.example:5000/kubernetes:1.36.0": "v1.36.0", "registry.example:5000/kubernetes": "", "x@sha256:00": "",
	} {
		req.ReleaseImage = image
		if got, _ := kubernetesVersion(req); got != want {
			t.Errorf("%s: got %q, want %q", image, got, want)
		}
	}
}

func TestTemplatesThatAreNotSafeAreRefused(t *testing.T) {
	values := map[string]string{"CLUSTER_NAME": "c-1", "NAMESPACE": "ns"}
	cluster := "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: c-1}\n"
	for name, c := range map[string]struct{ text, want string }{
		"kinds of other groups":       {cluster + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}", `API group "rbac.authorization.k8s.io"`},
		"Secrets":                     {cluster + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: x}", `API group ""`},
		"a group that only looks so":  {cluster + "---\napiVersion: evilcluster.x-k8s.io/v1\nkind: X\nmetadata: {name: x}", `API group "evilcluster.x-k8s.io"`},
		"other namespaces":            {cluster + "---\napiVersion: bootstrap.cluster.x-k8s.io/v1\nkind: X\nmetadata: {name: x, namespace: kube-system}", `namespace "kube-system"`},
		"owners":                      {cluster + "---\napiVersion: bootstrap.cluster.x-k8s.io/v1\nkind: X\nmetadata: {name: x, ownerReferences: [{name: y}]}", "finalizers or owners"},
		"no Cluster":                  {"---\napiVersion: bootstrap.cluster.x-k8s.io/v1\nkind: X\nmetadata: {name: x}", "has 0 Clusters"},
		"two Clusters":                {cluster + strings.ReplaceAll(cluster, "c-1", "c-2"), "has 2 Clusters"},
		"one object twice":            {cluster + cluster, "is there twice"},
		"a Cluster of another name":   {strings.ReplaceAll(cluster, "c-1", "c-2"), "write name: ${CLUSTER_NAME}"},
		"a Cluster of an old version": {strings.ReplaceAll(cluster, "v1beta2", "v1beta1"), "write it as cluster.x-k8s.io/v1beta2"},
		"a paused Cluster":            {strings.TrimSuffix(cluster, "\n") + "\nspec: {paused: true}", "remove the field"},
		"a variable without a value":  {cluster + "# ${ZONE} ${AWS_REGION}", "needs the variables AWS_REGION, ZONE"},
		"a reference with a function": {cluster + "# ${ZONE^^}", "${ZONE^^} is not a reference"},
		"YAML that cannot be parsed":  {cluster + "---\n{", "not valid YAML"},
		"an object without a name":    {cluster + "---\napiVersion: bootstrap.cluster.x-k8s.io/v1\nkind: X", "no metadata.name"},
		"more objects than the limit": {cluster + strings.Repeat("---\napiVersion: bootstrap.cluster.x-k8s.io/v1\nkind: X\nmetadata: {name: x}\n", 64), "the limit is 64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := renderTemplate([]string{c.text}, values, "ns", "c-1")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestVariablesAreSubstituted(t *testing.T) {
	values := map[string]string{"A": "1", "EMPTY": ""}
	for in, want := range map[string]string{
		"${A} ${ A }": "1 1", "${B:=x y}": "x y", "${B:-[\"10.0.0.0/8\"]}": `["10.0.0.0/8"]`, "${A:=9}": "1", "$${A}": "${A}", "$A": "$A", "${EMPTY}": "", "${B:=}": "",
	} {
		if got, err := substituteVariables(in, values); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestVariablesCannotReplaceThoseThatHotspareSets(t *testing.T) {
	req := templateRequest(hivev1.CAPIVariable{Name: "NAMESPACE", Value: &runtime.RawExtension{Raw: []byte(`"kube-system"`)}})
	values, err := templateValues(req, "c-1")
	if err != nil || values["NAMESPACE"] != "ns" {
		t.Errorf("got %q, %v", values["NAMESPACE"], err)
	}
}
