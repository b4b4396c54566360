package capi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/clusterapi/capitest"
	"hotspare.io/hotspare/internal/fault"
)

// hostedLab is a lab whose control plane runs in pods.
type hostedLab struct {
	*lab
	resource schema.GroupVersionResource
	name     string
	// deprecated reports whether the status has ready instead of readyReplicas, as early versions of
	// k0smotron do.
	deprecated bool
}

// newHostedLab returns a lab with a control plane of a kind; spec is that of the object with the
// replicas.
func newHostedLab(t *testing.T, kind string, r schema.GroupVersionResource, spec map[string]any) *hostedLab {
	t.Helper()
	l := &hostedLab{lab: newLab(t), resource: r, name: "kcp"}
	objectKind := kind
	if kind == "K0smotronControlPlane" {
		l.name, objectKind = "c", "Cluster"
		l.simulateK0smotronWebhook()
		if r == clusterapi.K0smotronClustersV1beta1 {
			l.Unserve(clusterapi.K0smotronClusters)
			l.deprecated = true
		}
	}
	l.Remove(clusterapi.Machines, "ns", "cp-0")
	l.Edit(clusterapi.Clusters, "ns", "c", func(o *unstructured.Unstructured) {
		o.Object["spec"] = map[string]any{"controlPlaneRef": map[string]any{"apiGroup": "controlplane.cluster.x-k8s.io", "kind": kind, "name": "kcp"}}
	})
	l.Add(capitest.Object(r.GroupVersion().String(), objectKind, "ns", l.name, spec))
	l.scale()
	return l
}

// simulateK0smotronWebhook replaces 0 replicas by 1 in every write but one to the subresource scale,
// as the webhook of k0smotron does.
func (l *hostedLab) simulateK0smotronWebhook() {
	l.PrependReactor("patch", "clusters", func(action k8stesting.Action) (bool, runtime.Object, error) {
		a, _ := action.(k8stesting.PatchActionImpl)
		var patch struct {
			Spec struct {
				Replicas *int64 `json:"replicas"`
			} `json:"spec"`
		}
		err := json.Unmarshal(a.Patch, &patch)
		if zero := err == nil && patch.Spec.Replicas != nil && *patch.Spec.Replicas == 0; a.Resource.Group != "k0smotron.io" || a.Subresource != "" || !zero {
			return false, nil, nil
		}
		return true, l.Get(l.resource, "ns", l.name), nil // unchanged: there was one replica at least
	})
}

// scale does what the controllers of the control plane do.
func (l *hostedLab) scale() {
	l.Edit(l.resource, "ns", l.name, func(o *unstructured.Unstructured) {
		n, found, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if !found {
			n = 1
		}
		if l.deprecated {
			o.Object["status"] = map[string]any{"replicas": n, "ready": true}
			return
		}
		o.Object["status"] = map[string]any{"replicas": n, "readyReplicas": n}
	})
}

func (l *hostedLab) replicas() int64 {
	n, _, _ := unstructured.NestedInt64(l.Get(l.resource, "ns", l.name).Object, "spec", "replicas")
	return n
}

// cycle hibernates and resumes the cluster.
func (l *hostedLab) cycle() {
	l.t.Helper()
	l.until(cloud.Stopped, func(ctx context.Context, ref cloud.Ref) error { defer l.scale(); return l.Stop(ctx, ref) })
	if n := l.replicas(); n != 0 {
		l.t.Errorf("%d replicas while it hibernates", n)
	}
	l.until(cloud.Running, func(ctx context.Context, ref cloud.Ref) error { defer l.scale(); return l.Start(ctx, ref) })
}

var hostedCases = map[string]struct {
	kind     string
	resource schema.GroupVersionResource
	spec     map[string]any
	replicas int64
}{
	"Kamaji": {"KamajiControlPlane", clusterapi.KamajiControlPlanes, map[string]any{"replicas": int64(3)}, 3},
	"k0smotron with an etcd of one member": {
		"K0smotronControlPlane", clusterapi.K0smotronClusters,
		map[string]any{"replicas": int64(1), "storage": map[string]any{"type": "etcd"}},
		1,
	},
	"k0smotron with kine": {"K0smotronControlPlane", clusterapi.K0smotronClusters, map[string]any{"replicas": int64(3), "storage": map[string]any{"type": "kine"}}, 3},
	"k0smotron of version 1": {
		"K0smotronControlPlane", clusterapi.K0smotronClustersV1beta1,
		map[string]any{"replicas": int64(1), "etcd": map[string]any{"image": "etcd"}},
		1,
	},
}

func TestAHostedControlPlaneIsScaledToZeroAndBack(t *testing.T) {
	for name, c := range hostedCases {
		t.Run(name, func(t *testing.T) {
			l := newHostedLab(t, c.kind, c.resource, c.spec)
			l.cycle()
			if o := l.Get(l.resource, "ns", l.name); l.replicas() != c.replicas || o.GetAnnotations()[clusterapi.AnnotationReplicas] != "" {
				t.Errorf("%d replicas after the resume, annotations %v", l.replicas(), o.GetAnnotations())
			}
			l.cycle() // the record of the first hibernation does not count in the second
		})
	}
}

// A hibernation and a resume write the pause, the record of the replicas and the replicas, in two
// writes at most for each way.
func TestACrashAtAnyWriteKeepsTheNumberOfReplicas(t *testing.T) {
	for name, c := range hostedCases {
		for n := 1; n <= 4; n++ {
			for _, stored := range []bool{false, true} {
				l := newHostedLab(t, c.kind, c.resource, c.spec)
				l.CrashAt(n, stored)
				l.cycle()
				for range 3 {
					if err := l.CompleteResume(t.Context(), l.ref, []string{"md-0"}); err != nil && !errors.Is(err, capitest.ErrCrash) {
						t.Fatal(err)
					}
				}
				if l.replicas() != c.replicas || l.isPaused() || !l.Crashed() {
					t.Errorf("%s, write %d, stored %t: %d replicas, paused %t, crashed %t", name, n, stored, l.replicas(), l.isPaused(), l.Crashed())
				}
			}
		}
	}
}

func TestAHostedControlPlaneThatWouldNotSurviveKeepsRunning(t *testing.T) {
	for name, c := range map[string]struct {
		resource schema.GroupVersionResource
		spec     map[string]any
		want     string
	}{
		"several etcd members": {
			clusterapi.K0smotronClusters,
			map[string]any{"replicas": int64(3), "storage": map[string]any{"type": "etcd"}},
			"its etcd has 3 members and loses its quorum",
		},
		"several etcd members of version 1": {
			clusterapi.K0smotronClustersV1beta1,
			map[string]any{"replicas": int64(3), "etcd": map[string]any{}},
			"its etcd has 3 members and loses its quorum",
		},
		"NATS": {
			clusterapi.K0smotronClusters,
			map[string]any{"replicas": int64(1), "storage": map[string]any{"type": "nats"}},
			"its storage.type is nats",
		},
		"data in its pod": {
			clusterapi.K0smotronClustersV1beta1,
			map[string]any{"replicas": int64(1)},
			"it keeps its data in its pod",
		},
		"data in its pod, emptyDir by its name": {
			clusterapi.K0smotronClustersV1beta1,
			map[string]any{"persistence": map[string]any{"type": "emptyDir"}},
			"it keeps its data in its pod",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newHostedLab(t, "K0smotronControlPlane", c.resource, c.spec)
			writes := l.Writes
			err := l.Stop(t.Context(), l.ref)
			if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "hotspare cannot stop K0smotronControlPlane kcp: "+c.want) {
				t.Errorf("got %v", err)
			}
			if ms := l.observe(); !ms.AllIn(cloud.Running) || l.Writes != writes {
				t.Errorf("%v, %d writes", ms, l.Writes-writes)
			}
		})
	}
}

func TestAK0smotronControlPlaneWithItsDataElsewhereSurvives(t *testing.T) {
	for name, c := range map[string]struct {
		replicas int64
		spec     map[string]any
	}{
		"a volume":                        {1, map[string]any{"persistence": map[string]any{"type": "pvc"}}},
		"kine":                            {3, map[string]any{"kineDataSourceURL": "mysql://db"}},
		"kine, with the URL in a Secret":  {3, map[string]any{"kineDataSourceSecretName": "db"}},
		"an etcd of one member":           {1, map[string]any{"etcd": map[string]any{}}},
		"storage of which nothing is set": {1, map[string]any{"storage": map[string]any{}}},
	} {
		if why := describeK0smotronObstacle(capitest.Object("k0smotron.io/v1beta1", "Cluster", "ns", "c", c.spec), c.replicas); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

func TestAHostedControlPlaneWhoseProviderIsNotInstalledIsReported(t *testing.T) {
	l := newHostedLab(t, "K0smotronControlPlane", clusterapi.K0smotronClustersV1beta1, map[string]any{})
	l.Unserve(clusterapi.K0smotronClustersV1beta1)
	if _, err := l.Observe(t.Context(), l.ref); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), "clusters.k0smotron.io") {
		t.Errorf("got %v", err)
	}
}
