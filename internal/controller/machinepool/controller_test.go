package machinepool_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/remote"
)

func TestWhatAPoolWaitsFor(t *testing.T) {
	says := func(typ string, s corev1.ConditionStatus) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) {
			condition.Set(&cd.Status.Conditions, typ, s, "R", "The cause.", start)
		}
	}
	for name, tc := range map[string]struct {
		edit   func(*hivev1.ClusterDeployment)
		reason string
	}{
		"to be installed":         {func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false }, hivev1.ReasonClusterNotInstalled},
		"its end":                 {func(cd *hivev1.ClusterDeployment) { cd.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }, hivev1.ReasonClusterGoing},
		"to be woken":             {func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }, hivev1.ReasonClusterAsleep},
		"to have woken":           {says(hivev1.ClusterHibernating, corev1.ConditionTrue), hivev1.ReasonClusterAsleep},
		"an answer":               {says(hivev1.ClusterUnreachable, corev1.ConditionTrue), hivev1.ReasonClusterUnreachable},
		"to know whether it does": {says(hivev1.ClusterUnreachable, corev1.ConditionUnknown), hivev1.ReasonClusterUnreachable},
		"to be told so":           {func(cd *hivev1.ClusterDeployment) { cd.Status.Conditions = nil }, hivev1.ReasonClusterUnreachable},
		"a person who paused it": {func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
		}, hivev1.ReasonPaused},
		"nothing, being a pretext": {func(cd *hivev1.ClusterDeployment) { cd.Annotations = map[string]string{hivev1.AnnotationFake: "true"} }, hivev1.ReasonFakeCluster},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, cluster(local, tc.edit), pool(2))
			mp, result, err := g.pass()
			if err != nil || result.RequeueAfter != 0 || synced(mp).Reason != tc.reason || synced(mp).Message == "" {
				t.Errorf("%+v, %v, %+v", result, err, mp.Status)
			}
			if len(g.log) > 0 || len(mp.Finalizers) > 0 {
				t.Errorf("done in the cluster: %v", g.log)
			}
		})
	}
	t.Run("a cluster", func(t *testing.T) {
		g := newRig(t, pool(2))
		if mp, _, err := g.pass(); err != nil || synced(mp).Reason != hivev1.ReasonClusterNotFound || !strings.Contains(synced(mp).Message, "ClusterDeployment c ") {
			t.Errorf("%v, %+v", err, mp.Status)
		}
	})
	t.Run("a kubeconfig that works", func(t *testing.T) {
		g := newRig(t, cluster(local), pool(2))
		g.trouble = "its name does not resolve"
		if mp, result, err := g.pass(); err != nil || result.RequeueAfter == 0 || !strings.Contains(synced(mp).Message, g.trouble) {
			t.Errorf("%v, %+v", err, mp.Status)
		}
	})
}

func TestLocalWorkersComeAndGo(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	g := newRig(t, cluster(local), pool(2, func(mp *hivev1.MachinePool) {
		mp.Spec.Labels, mp.Spec.MachineLabels, mp.Spec.Taints = map[string]string{"team": "blue"}, map[string]string{"rack": "r1"}, []corev1.Taint{taint}
	}))
	g.workers.list = []install.Worker{{Name: "c-x-worker-0"}}
	mp := g.settle()
	if mp.Status.Replicas != 2 || len(g.workers.list) != 3 || !slices.Contains(mp.Finalizers, hivev1.FinalizerMachinePool) {
		t.Errorf("%+v, %v", mp, g.workers.list)
	}
	want := []hivev1.MachineSetStatus{{Name: "c-x-p", Replicas: 2, ReadyReplicas: 2, MinReplicas: 2, MaxReplicas: 2}}
	if diff := cmp.Diff(want, mp.Status.MachineSets); diff != "" {
		t.Error(diff)
	}
	for _, n := range g.nodes() {
		if mine := strings.HasPrefix(n.Name, "c-x-p-"); mine != (n.Labels["team"] == "blue") || mine != (len(n.Spec.Taints) == 1) {
			t.Errorf("node %s has labels %v and taints %v", n.Name, n.Labels, n.Spec.Taints)
		}
	}
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(remote.Machine)
	if err := g.spoke.Get(t.Context(), types.NamespacedName{Namespace: machines, Name: "c-x-p-0"}, m); err != nil || m.GetLabels()["rack"] != "r1" {
		t.Errorf("%v, %v", m.GetLabels(), err)
	}

	t.Run("at rest nothing is written", func(t *testing.T) {
		g.log = nil
		before := mp.ResourceVersion
		mp, result, err := g.pass()
		if err != nil || len(g.log) > 0 || mp.ResourceVersion != before || result.RequeueAfter != 30*time.Second {
			t.Errorf("%v, %v, %+v", err, g.log, result)
		}
	})
	t.Run("pods are kept away, deleted, and then the machine stops", func(t *testing.T) {
		for name, node := range map[string]string{"there": "c-x-p-0", "here": "c-x-p-1", "too": "c-x-p-1"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
			if err := g.spoke.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		g.edit(func(mp *hivev1.MachinePool) { mp.Spec.Replicas = ptr.To[int64](1) })
		g.hook = func(what string) {
			i := slices.IndexFunc(g.nodes(), func(n corev1.Node) bool { return n.Name == "c-x-p-0" })
			if what == "delete Pod there" && len(g.nodes()[i].Spec.Taints) != 2 {
				t.Error("new pods may come while the old ones are deleted")
			}
		}
		if _, _, err := g.pass(); err != nil {
			t.Fatal(err)
		}
		g.hook = nil
		want := []string{"patch Node c-x-p-0", "delete Pod there", "stop c-x-p-0", "delete Node c-x-p-0", "delete Machine c-x-p-0"}
		if diff := cmp.Diff(want, g.log); diff != "" {
			t.Error(diff)
		}
		if mp := g.settle(); mp.Status.Replicas != 1 {
			t.Errorf("%+v", mp.Status)
		}
	})
	t.Run("labels that are not asked for any more go", func(t *testing.T) {
		g.edit(func(mp *hivev1.MachinePool) { mp.Spec.Labels, mp.Spec.Taints = map[string]string{"a": "b"}, nil })
		g.hook = func(what string) {
			var mp hivev1.MachinePool
			if err := g.hub.Get(t.Context(), key, &mp); err != nil || !slices.Equal(mp.Status.OwnedLabels, []string{"a", "team"}) {
				t.Errorf("%s before it is recorded: %v, %v", what, mp.Status.OwnedLabels, err)
			}
		}
		g.settle()
		g.hook = nil
		for _, n := range g.nodes() {
			if n.Name == "c-x-p-1" && (n.Labels["team"] != "" || n.Labels["a"] != "b" || len(n.Spec.Taints) > 0) {
				t.Errorf("labels %v, taints %v", n.Labels, n.Spec.Taints)
			}
		}
		if mp, _, _ := g.pass(); !slices.Equal(mp.Status.OwnedLabels, []string{"a"}) || len(mp.Status.OwnedTaints) > 0 {
			t.Errorf("%+v", mp.Status)
		}
	})
	t.Run("a deleted pool has nothing left, and others have all", func(t *testing.T) {
		g.delete()
		if g.settle() != nil || len(g.workers.list) != 1 || len(g.nodes()) != 1 {
			t.Errorf("left: %v, %v", g.workers.list, g.nodes())
		}
	})
}

func TestNoRoom(t *testing.T) {
	g := newRig(t, cluster(local), pool(2))
	g.workers.full = true
	mp, result, err := g.pass()
	if c := synced(mp); err != nil || c.Reason != hivev1.ReasonNoRoom || !strings.Contains(c.Message, "buy memory") || result.RequeueAfter == 0 {
		t.Errorf("%v, %+v, %+v", err, result, mp.Status)
	}
	g.workers.full = false
	if mp = g.settle(); mp.Status.Replicas != 2 {
		t.Errorf("%+v", mp.Status)
	}
}

func TestADeletedPoolOfAClusterThatGoesIsReleased(t *testing.T) {
	for name, objects := range map[string][]client.Object{
		"a cluster that is gone": nil,
		"one that is going":      {cluster(local, func(cd *hivev1.ClusterDeployment) { cd.DeletionTimestamp = ptr.To(metav1.NewTime(start)) })},
		"one never installed":    {cluster(local, func(cd *hivev1.ClusterDeployment) { cd.Spec.Installed = false })},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, append(objects, pool(2, func(mp *hivev1.MachinePool) { mp.Finalizers = []string{hivev1.FinalizerMachinePool} }))...)
			g.workers.list = []install.Worker{{Name: "c-x-p-0"}}
			g.delete()
			if mp, _, err := g.pass(); mp != nil || err != nil || len(g.log) > 0 {
				t.Errorf("%v, %v, %v", mp, err, g.log)
			}
		})
	}
	t.Run("but not while the cluster sleeps", func(t *testing.T) {
		g := newRig(t, cluster(local, func(cd *hivev1.ClusterDeployment) { cd.Spec.PowerState = hivev1.PowerHibernating }),
			pool(2, func(mp *hivev1.MachinePool) { mp.Finalizers = []string{hivev1.FinalizerMachinePool} }))
		g.delete()
		if mp, _, err := g.pass(); mp == nil || err != nil || synced(mp).Reason != hivev1.ReasonClusterAsleep {
			t.Errorf("%v, %v", mp, err)
		}
	})
}

func TestTheOlderOfTwoPoolsOfOneNameHasIt(t *testing.T) {
	t.Run("by time", func(t *testing.T) {
		isOlderPool(t, pool(3, func(mp *hivev1.MachinePool) {
			mp.Name, mp.CreationTimestamp = "a-younger", metav1.NewTime(start.Add(time.Minute))
		}))
	})
	t.Run("or by name", func(t *testing.T) {
		isOlderPool(t, pool(3, func(mp *hivev1.MachinePool) { mp.Name = "z" }))
	})
}

func isOlderPool(t *testing.T, younger *hivev1.MachinePool) {
	t.Helper()
	g := newRig(t, cluster(local), pool(1), younger)
	if mp := g.settle(); mp.Status.Replicas != 1 {
		t.Errorf("%+v", mp.Status)
	}
	key = client.ObjectKeyFromObject(younger)
	defer func() { key = client.ObjectKeyFromObject(pool(1)) }()
	mp, _, err := g.pass()
	c := condition.Find(mp.Status.Conditions, hivev1.MachinePoolUnsupported)
	if err != nil || c == nil || c.Reason != hivev1.ReasonDuplicatePool || len(g.workers.list) != 1 {
		t.Errorf("%v, %+v", err, mp.Status)
	}
}

func TestPodsScaleALocalPool(t *testing.T) {
	g := newRig(t, cluster(local), pool(0, func(mp *hivev1.MachinePool) {
		mp.Spec.Replicas, mp.Spec.Autoscaling = nil, &hivev1.MachinePoolAutoscaling{MaxReplicas: 3}
		mp.Spec.Labels, mp.Spec.Taints = map[string]string{"team": "blue"}, []corev1.Taint{{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	}))
	waits := func(name string, edit func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
		p.Spec.NodeSelector = map[string]string{"team": "blue"}
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		edit(p)
		if err := g.spoke.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, edit := range map[string]func(*corev1.Pod){
		"elsewhere":  func(p *corev1.Pod) { p.Spec.NodeSelector["team"] = "red" },
		"intolerant": func(p *corev1.Pod) { p.Spec.Tolerations = nil },
		"too-picky":  func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Value: "b"}} },
		"new":        func(p *corev1.Pod) { p.Status.Conditions = nil },
		"going":      func(p *corev1.Pod) { p.Finalizers = []string{"x/y"}; p.Status.Phase = corev1.PodFailed },
	} {
		waits(name, edit)
	}
	if mp := g.settle(); mp.Status.Replicas != 0 {
		t.Fatalf("for pods that cannot run there: %+v", mp.Status)
	}
	mine := waits("mine", func(*corev1.Pod) {})
	g.edit(func(*hivev1.MachinePool) {})
	if _, _, err := g.pass(); err != nil {
		t.Fatal(err)
	}
	if len(g.workers.list) != 1 {
		t.Fatalf("workers: %v", g.workers.list)
	}
	if _, _, err := g.pass(); err != nil || len(g.workers.list) != 1 {
		t.Fatalf("before the first has joined: %v, %v", g.workers.list, err)
	}
	g.workers.join()
	mine.Spec.NodeName, mine.Status.Phase = "c-x-p-0", corev1.PodRunning
	if err := g.spoke.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	g.settle()
	if err := g.spoke.Delete(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	for range 3 { // noted, and still empty
		if _, _, err := g.pass(); err != nil || len(g.workers.list) != 1 {
			t.Fatalf("%v, %v", g.workers.list, err)
		}
	}
	g.clock.SetTime(g.clock.Now().Add(5 * time.Minute))
	if mp := g.settle(); len(g.workers.list) != 0 && mp.Status.Replicas != 0 {
		t.Errorf("%v", g.workers.list)
	}
	if g.pass(); len(g.workers.list) != 0 {
		t.Errorf("an idle node stays: %v", g.workers.list)
	}
}

// A pass may end after any write, in the cluster, at the platform or on the hub. The
// next ones come to the same.
func TestAnyWriteMayBeTheLast(t *testing.T) {
	for cut := range 60 {
		g := newRig(t, cluster(local), pool(2, func(mp *hivev1.MachinePool) { mp.Spec.Labels = map[string]string{"a": "b"} }))
		over := func() bool {
			g.fuse = cut
			for range 8 {
				_, _, _ = g.pass() // it may fail: that is the point
				g.workers.join()
			}
			spent := g.fuse < 0
			g.fuse = 1 << 30
			return !spent
		}
		done := over()
		if mp := g.settle(); mp.Status.Replicas != 2 || len(g.nodes()) != 2 || len(g.workers.list) != 2 {
			t.Fatalf("cut %d: %+v", cut, mp.Status)
		}
		g.edit(func(mp *hivev1.MachinePool) {
			mp.Spec.Replicas, mp.Spec.Labels = ptr.To[int64](1), map[string]string{"c": "d"}
		})
		done = over() && done
		g.settle()
		if mp, _, _ := g.pass(); len(g.workers.list) != 1 || len(g.nodes()) != 1 || g.nodes()[0].Labels["a"] != "" || len(mp.Status.OwnedLabels) != 1 {
			t.Fatalf("cut %d: %v, %+v", cut, g.nodes(), mp.Status)
		}
		g.delete()
		done = over() && done
		if g.settle() != nil || len(g.workers.list) != 0 || len(g.nodes()) != 0 {
			t.Fatalf("cut %d: left %v, %v", cut, g.workers.list, g.nodes())
		}
		if done {
			t.Logf("%d cuts", cut)
			return
		}
	}
	t.Error("more writes than were cut")
}

func machineSet(name, zone string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"replicas": int64(1),
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"machine.openshift.io/cluster-api-machine-role": "worker"}},
				"spec": map[string]any{"providerSpec": map[string]any{"value": map[string]any{
					"instanceType": "m5.large", "placement": map[string]any{"availabilityZone": zone, "region": "us-east-1"},
				}}},
			},
		},
		"status": map[string]any{"readyReplicas": int64(1)},
	}}
	u.SetGroupVersionKind(remote.MachineSet)
	u.SetNamespace(machines)
	u.SetName(name)
	return u
}

func TestMachineSetsComeAndGo(t *testing.T) {
	g := newRig(t, cluster(aws), pool(3, func(mp *hivev1.MachinePool) {
		mp.Spec.Platform = &runtime.RawExtension{Raw: []byte(`{"aws":{"type":"m6i.large"}}`)}
		mp.Spec.Labels, mp.Spec.MachineLabels = map[string]string{"team": "blue"}, map[string]string{"rack": "r1"}
		mp.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	}))
	for _, zone := range []string{"us-east-1a", "us-east-1b"} {
		if err := g.spoke.Create(t.Context(), machineSet("c-x-worker-"+zone, zone)); err != nil {
			t.Fatal(err)
		}
	}
	mp := g.settle()
	if mp.Status.Replicas != 3 || len(mp.Status.MachineSets) != 2 || mp.Status.MachineSets[0].Name != "c-x-p-us-east-1a" {
		t.Errorf("%+v", mp.Status)
	}
	set := func(name string) *unstructured.Unstructured {
		u := machineSet(name, "")
		if err := g.spoke.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		return u
	}
	want := map[string]any{
		"replicas": int64(2),
		"selector": map[string]any{"matchLabels": map[string]any{
			"machine.openshift.io/cluster-api-cluster": "c-x", "machine.openshift.io/cluster-api-machineset": "c-x-p-us-east-1a",
		}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{
				"rack": "r1", "machine.openshift.io/cluster-api-cluster": "c-x", "machine.openshift.io/cluster-api-machineset": "c-x-p-us-east-1a",
				"machine.openshift.io/cluster-api-machine-role": "worker", "machine.openshift.io/cluster-api-machine-type": "worker",
			}},
			"spec": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"team": "blue"}},
				"taints":   []any{map[string]any{"key": "gpu", "value": "a", "effect": "NoSchedule"}},
				"providerSpec": map[string]any{"value": map[string]any{
					"instanceType": "m6i.large", "placement": map[string]any{"availabilityZone": "us-east-1a", "region": "us-east-1"},
				}},
			},
		},
	}
	if diff := cmp.Diff(want, set("c-x-p-us-east-1a").Object["spec"]); diff != "" {
		t.Error(diff)
	}
	if l := set("c-x-p-us-east-1a").GetLabels(); l[hivev1.LabelMachinePool] != "p" || l[hivev1.LabelManaged] != "true" {
		t.Errorf("labels %v", l)
	}

	t.Run("autoscaled by the cluster", func(t *testing.T) {
		g.edit(func(mp *hivev1.MachinePool) {
			mp.Spec.Replicas, mp.Spec.Autoscaling = nil, &hivev1.MachinePoolAutoscaling{MinReplicas: 2, MaxReplicas: 5}
		})
		g.settle()
		g.workers.list = nil
		for _, what := range []string{"create ClusterAutoscaler default", "create MachineAutoscaler c-x-p-us-east-1a", "create MachineAutoscaler c-x-p-us-east-1b"} {
			if !slices.Contains(g.log, what) {
				t.Errorf("not done: %s: %v", what, g.log)
			}
		}
		g.log = nil
		if mp, result, err := g.pass(); err != nil || len(g.log) > 0 || result.RequeueAfter != 2*time.Minute || mp.Status.MachineSets[0].MaxReplicas != 3 {
			t.Errorf("%v, %v, %+v, %+v", err, g.log, result, mp.Status)
		}
	})
	t.Run("a setting that is not known changes nothing", func(t *testing.T) {
		g.edit(func(mp *hivev1.MachinePool) {
			mp.Spec.Platform = &runtime.RawExtension{Raw: []byte(`{"aws":"all"}`)}
		})
		mp, _, err := g.pass()
		c := condition.Find(mp.Status.Conditions, hivev1.MachinePoolUnsupported)
		if err != nil || c == nil || c.Reason != hivev1.ReasonUnsupportedSetting || len(g.log) > 0 || len(mp.Status.MachineSets) != 2 {
			t.Errorf("%v, %v, %+v", err, g.log, mp.Status)
		}
	})
	t.Run("deleted with the pool", func(t *testing.T) {
		g.delete()
		if g.settle() != nil {
			t.Error("it is there")
		}
		want := []string{
			"delete MachineAutoscaler c-x-p-us-east-1a", "delete MachineAutoscaler c-x-p-us-east-1b",
			"delete MachineSet c-x-p-us-east-1a", "delete MachineSet c-x-p-us-east-1b",
		}
		if diff := cmp.Diff(want, g.log); diff != "" {
			t.Error(diff)
		}
	})
}
