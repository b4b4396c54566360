package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// grouped is a cluster with MachinePools.
type grouped struct {
	*hub
	cd      *hivev1.ClusterDeployment
	infraID string
	api     kubernetes.Interface
}

// A MachinePool of a local cluster is scaled up and down, sleeps and wakes with its
// cluster, survives a restart of the hub, and takes its machines along when it goes.
// The installer's workers are pool worker's.
func TestMachinePoolsOfALocalCluster(t *testing.T) {
	h := own(t)
	ns := h.namespace(t)
	g := h.grouped(t, ns)
	gpu := machinePool(ns, "grouped-gpu", "gpu", 0)
	gpu.Spec.Labels = map[string]string{"team": "blue"}
	gpu.Spec.MachineLabels = map[string]string{"rack": "r1"}
	gpu.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	h.create(t, gpu)
	g.synced(t, gpu, 0)

	t.Log("from none to two")
	h.hotspare(t, "kubectl", "scale", "machinepool", "grouped-gpu", "-n", ns, "--replicas=2")
	g.synced(t, gpu, 2)
	g.nodes(t, "gpu", 2)
	g.marked(t)
	g.nodes(t, "worker", 1)

	t.Log("labels change, and those of others stay")
	first := g.infraID + "-gpu-0"
	g.kubectl(t, "label", "node", first, "mine=stays")
	before := gpu.DeepCopy()
	gpu.Spec.Labels = map[string]string{"colour": "green"}
	gpu.Spec.Taints = nil
	g.change(t, gpu, before)
	eventually(t, "the nodes have the new labels", func(ctx context.Context) error {
		n, err := g.api.CoreV1().Nodes().Get(ctx, first, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if l := n.Labels; l["colour"] != "green" || l["team"] != "" || l["mine"] != "stays" || len(n.Spec.Taints) > 0 {
			return fmt.Errorf("labels %v, taints %v", l, n.Spec.Taints)
		}
		return nil
	})

	t.Log("from two to one: the empty one goes")
	g.kubectl(t, "create", "deployment", "busy", "--image=registry.example/x")
	g.kubectl(t, "patch", "deployment", "busy", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"`+g.infraID+`-gpu-1"}}}}}`)
	g.kubectl(t, "rollout", "status", "deployment/busy", "--timeout=4m")
	h.hotspare(t, "kubectl", "scale", "machinepool", "grouped-gpu", "-n", ns, "--replicas=1")
	g.synced(t, gpu, 1)
	if left := g.nodes(t, "gpu", 1); left[0] != g.infraID+"-gpu-1" {
		t.Errorf("left is %v, on which nothing ran", left)
	}

	t.Log("it sleeps and wakes with its cluster")
	h.hotspare(t, "cluster", "hibernate", "grouped", "-n", ns)
	h.conditioned(t, g.cd, hivev1.ClusterHibernating, corev1.ConditionTrue)
	g.condition(t, gpu, hivev1.ReasonClusterAsleep)
	h.hotspare(t, "cluster", "resume", "grouped", "-n", ns)
	h.conditioned(t, g.cd, hivev1.ClusterReady, corev1.ConditionTrue)
	g.synced(t, gpu, 1)
	g.nodes(t, "gpu", 1)

	t.Log("and with the hub")
	h.kill(t)
	h.restart(t)
	g.synced(t, gpu, 1)
	g.nodes(t, "gpu", 1)

	t.Log("the installer's workers become the pool's of that name")
	workers := machinePool(ns, "grouped-worker", "worker", 2)
	h.create(t, workers)
	g.synced(t, workers, 2)
	g.nodes(t, "worker", 2)

	t.Log("a deleted pool takes its machines along")
	h.delete(t, gpu)
	h.gone(t, gpu)
	g.nodes(t, "gpu", 0)
	g.nodes(t, "worker", 2)
	h.delete(t, g.cd)
	h.gone(t, g.cd)
	if left, err := foldersIn(filepath.Join(h.machines(), g.infraID)); err == nil && len(left) > 0 {
		t.Errorf("left of the cluster: %v", left)
	}
	g.condition(t, workers, hivev1.ReasonClusterNotFound)
	h.delete(t, workers)
	h.gone(t, workers)
}

// grouped makes a cluster with one worker.
func (h *hub) grouped(t *testing.T, namespace string) *grouped {
	t.Helper()
	cd := shortLived(namespace, "grouped")
	cd.Spec.PowerState, cd.Spec.Platform.Local.CertificateDuration = hivev1.PowerRunning, "24h"
	h.create(t, cd)
	h.conditioned(t, cd, hivev1.ClusterReady, corev1.ConditionTrue)
	h.conditioned(t, cd, hivev1.ClusterUnreachable, corev1.ConditionFalse)
	api, err := kubernetes.NewForConfig(h.spoke(t, cd))
	if err != nil {
		t.Fatal(err)
	}
	return &grouped{hub: h, cd: cd, infraID: cd.Spec.ClusterMetadata.InfraID, api: api}
}

func machinePool(namespace, name, pool string, replicas int64) *hivev1.MachinePool {
	return &hivev1.MachinePool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: hivev1.MachinePoolSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: "grouped"}, Name: pool, Replicas: ptr.To(replicas),
		},
	}
}

func (g *grouped) kubectl(t *testing.T, args ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.hotspare(t, "cluster", "kubeconfig", g.cd.Name, "-n", g.cd.Namespace, "-o", path)
	g.hub.kubectl(t, append([]string{"--kubeconfig", path}, args...)...)
}

// synced waits until the cluster has that many machines of the pool, all well.
func (g *grouped) synced(t *testing.T, mp *hivev1.MachinePool, replicas int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s has %d machines", mp.Name, replicas), func(ctx context.Context) error {
		if err := g.Get(ctx, client.ObjectKeyFromObject(mp), mp); err != nil {
			return err
		}
		sets := mp.Status.MachineSets
		if !condition.IsTrue(mp.Status.Conditions, hivev1.MachinePoolSynced) || mp.Status.Replicas != replicas || len(sets) != 1 || sets[0].ReadyReplicas != replicas {
			return fmt.Errorf("its status is %+v", mp.Status)
		}
		return nil
	})
}

func (g *grouped) condition(t *testing.T, mp *hivev1.MachinePool, reason string) {
	t.Helper()
	eventually(t, mp.Name+" says "+reason, func(ctx context.Context) error {
		if err := g.Get(ctx, client.ObjectKeyFromObject(mp), mp); err != nil {
			return err
		}
		if c := condition.Find(mp.Status.Conditions, hivev1.MachinePoolSynced); c == nil || c.Reason != reason {
			return fmt.Errorf("it says %+v", c)
		}
		return nil
	})
}

// nodes waits until a pool has that many nodes, all ready, and as many machines.
func (g *grouped) nodes(t *testing.T, pool string, n int) (names []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("pool %s has %d nodes", pool, n), func(ctx context.Context) error {
		list, err := g.api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		names = nil
		for _, node := range list.Items {
			ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			})
			if strings.HasPrefix(node.Name, g.infraID+"-"+pool+"-") && ready {
				names = append(names, node.Name)
			}
		}
		machines, err := foldersIn(filepath.Join(g.machines(), g.infraID))
		if err != nil {
			return err
		}
		machines = slices.DeleteFunc(machines, func(m string) bool { return !strings.HasPrefix(m, g.infraID+"-"+pool+"-") })
		if len(names) != n || len(machines) != n {
			return fmt.Errorf("nodes %v, machines %v", names, machines)
		}
		return nil
	})
	return names
}

// marked checks the labels and taints of a pool's nodes and Machines.
func (g *grouped) marked(t *testing.T) {
	t.Helper()
	list, err := g.api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "team=blue"})
	if err != nil || len(list.Items) != 2 {
		t.Fatalf("nodes with the label: %d, %v", len(list.Items), err)
	}
	for _, n := range list.Items {
		taints := slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
		if len(taints) != 1 || taints[0].Key != "gpu" || n.Labels["node-role.kubernetes.io/worker"] != "" {
			t.Errorf("node %s has taints %v, labels %v", n.Name, n.Spec.Taints, n.Labels)
		}
		raw, err := g.api.CoreV1().RESTClient().Get().
			AbsPath("/apis/machine.openshift.io/v1beta1/namespaces/openshift-machine-api/machines/" + n.Name).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		says(t, string(raw), `"rack":"r1"`, `"hive.openshift.io/machine-pool":"gpu"`)
	}
}

func (g *grouped) change(t *testing.T, mp, before *hivev1.MachinePool) {
	t.Helper()
	if err := g.Patch(t.Context(), mp, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
