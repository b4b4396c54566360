package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

// fleet is a hub with the region of docs/examples/fleet.yaml.
type fleet struct {
	*hub
	began time.Time
}

// note puts a moment of the story into the log.
func (f *fleet) note(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("%5.1f s  %s", time.Since(f.began).Seconds(), fmt.Sprintf(format, args...))
}

// The story of docs/fleet.md, on local clusters: a region fills up and grows before it is
// full, real instances take the warm nodes and more are made, what is not needed goes,
// and what fails is told of.
func TestAFleetGrowsBeforeItIsFull(t *testing.T) { //nolint:tparallel // its parts are one story
	f := &fleet{hub: own(t), began: time.Now()}
	f.hotspare(t, "kubectl", "apply", "-f", filepath.Join("..", "..", "docs", "examples", "fleet.yaml"))
	first := f.plane(t, nil)
	f.note(t, "%s is Ready: an empty region gets a data plane", first.Name)
	f.warm(t, first, 1)
	f.note(t, "one node is kept warm")

	f.order(t, "k1", "x1")
	f.ready(t, "k1", first)
	f.note(t, "k1 is Ready, on the node that was warm")
	f.warm(t, first, 2)
	f.note(t, "the placeholder was pushed away, and has a node of its own again: 2 nodes")

	f.order(t, "k2", "x1")
	f.order(t, "k3", "x1")
	second := f.plane(t, first)
	f.note(t, "%s is Ready out of the warm pool; %d of 4 units of %s are used", second.Name, f.used(t, first), first.Name)
	if used := f.used(t, first); used > 3 {
		t.Errorf("%d units were used before the second data plane was there", used)
	}
	f.ready(t, "k2", first)
	f.ready(t, "k3", first)
	f.order(t, "k4", "x1")
	f.ready(t, "k4", first)
	f.order(t, "k5", "x2")
	f.ready(t, "k5", second)
	f.note(t, "6 units are used, 4 on %s and 2 on %s", first.Name, second.Name)

	t.Run("a full region says so", f.full)
	t.Run("an agent that is killed comes back", func(t *testing.T) { f.killed(t, first) })
	t.Run("a claim that finds no cluster fails, and is tried again later", f.failed)

	f.cancel(t, "k5")
	f.note(t, "k5 is deleted, %s is empty: it stays while the rest is not enough", second.Name)
	f.stays(t, second)
	f.cancel(t, "k1", "k2")
	f.gone(t, second)
	f.gone(t, &hivev1.ClusterClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: second.Name}})
	f.note(t, "k1 and k2 are deleted: the rest is enough, %s and its cluster are gone", second.Name)
	t.Logf("then:\n%s", f.hotspare(t, "kubectl", "get", "fleetregions,dataplanes,serviceinstances,clusterpools", "-A"))
	t.Run("a data plane that a person deletes is kept until it is empty", func(t *testing.T) { f.kept(t, first) })
}

// plane waits for a Ready data plane that is not the one before.
func (f *fleet) plane(t *testing.T, before *v1alpha1.DataPlane) (out *v1alpha1.DataPlane) {
	t.Helper()
	eventually(t, "a data plane is Ready", func(ctx context.Context) error {
		var list v1alpha1.DataPlaneList
		if err := f.List(ctx, &list, client.InNamespace("fleet")); err != nil {
			return err
		}
		var seen []string
		for i := range list.Items {
			dp := &list.Items[i]
			if before != nil && dp.Name == before.Name {
				continue
			}
			if dp.Status.Phase == v1alpha1.PhaseReady && dp.Status.Capacity["standard"].MaxUnits == 4 && meta.IsStatusConditionTrue(dp.Status.Conditions, v1alpha1.DataPlaneAgentLive) {
				out = dp
				return nil
			}
			seen = append(seen, fmt.Sprintf("%s %s %+v", dp.Name, dp.Status.Phase, dp.Status.Conditions))
		}
		return fmt.Errorf("there are %q", seen)
	})
	return out
}

func (f *fleet) used(t *testing.T, dp *v1alpha1.DataPlane) int32 {
	t.Helper()
	var list v1alpha1.ServiceInstanceList
	if err := f.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var sum int32
	for _, i := range list.Items {
		if i.Status.DataPlaneName == dp.Name {
			sum += i.Status.Units
		}
	}
	return sum
}

// api is that of a data plane's cluster.
func (f *fleet) api(t *testing.T, dp *v1alpha1.DataPlane) client.Client {
	t.Helper()
	return planeOf(t, f.kubeconfigOf(t, "fleet", dp.Name))
}

// warm waits until the data plane has so many nodes for the type, and a placeholder that runs.
func (f *fleet) warm(t *testing.T, dp *v1alpha1.DataPlane, nodes int) {
	t.Helper()
	api := f.api(t, dp)
	eventually(t, fmt.Sprintf("%d nodes, and one of them warm", nodes), func(ctx context.Context) error {
		var list corev1.NodeList
		var pods corev1.PodList
		err := errors.Join(api.List(ctx, &list, client.MatchingLabels{v1alpha1.LabelInstanceType: "standard"}),
			api.List(ctx, &pods, client.InNamespace("reserved-kafka-standard-1")))
		if err != nil {
			return err
		}
		runs := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		if len(list.Items) != nodes || !runs {
			return fmt.Errorf("%d nodes, a placeholder runs: %t (%d pods)", len(list.Items), runs, len(pods.Items))
		}
		return nil
	})
}

func (f *fleet) order(t *testing.T, name, size string) {
	t.Helper()
	f.create(t, &v1alpha1.ServiceInstance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.ServiceInstanceSpec{Type: "standard", Size: size, Provider: "local", Region: "laptop"},
	})
}

func (f *fleet) instance(ctx context.Context, name string) (*v1alpha1.ServiceInstance, error) {
	var i v1alpha1.ServiceInstance
	return &i, f.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &i)
}

// ready waits until an instance can be used, where it should be.
func (f *fleet) ready(t *testing.T, name string, on *v1alpha1.DataPlane) {
	t.Helper()
	began := time.Now()
	eventually(t, name+" is Ready", func(ctx context.Context) error {
		i, err := f.instance(ctx, name)
		if err != nil {
			return err
		}
		if i.Status.Phase != v1alpha1.InstanceReady || i.Status.DataPlaneName != on.Name {
			return fmt.Errorf("it is %s on %q, and should be Ready on %s: %+v", i.Status.Phase, i.Status.DataPlaneName, on.Name, i.Status.Conditions)
		}
		return nil
	})
	f.note(t, "%s is Ready on %s (waited for %.1f s)", name, on.Name, time.Since(began).Seconds())
}

// cancel deletes instances, and waits until they are gone.
func (f *fleet) cancel(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		f.hub.delete(t, &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	for _, name := range names {
		f.gone(t, &v1alpha1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
}

// full orders more than the region may have.
func (f *fleet) full(t *testing.T) {
	f.order(t, "k6", "x1")
	eventually(t, "k6 is told of the limit", func(ctx context.Context) error {
		i, err := f.instance(ctx, "k6")
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.InstancePlaced)
		if c == nil || c.Reason != "LimitReached" || i.Status.Phase != v1alpha1.InstancePending {
			return fmt.Errorf("it says %+v", i.Status)
		}
		f.note(t, "k6 waits: %s", c.Message)
		return nil
	})
	f.cancel(t, "k6")
}

// killed ends the agent of a data plane as the kernel does.
func (f *fleet) killed(t *testing.T, dp *v1alpha1.DataPlane) {
	pid := f.agentOf(t, dp)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	eventually(t, "it reports again", func(ctx context.Context) error {
		var a v1alpha1.DataPlaneAgent
		if err := f.Get(ctx, client.ObjectKeyFromObject(dp), &a); err != nil {
			return err
		}
		if a.Status.Report == nil || !a.Status.Report.At.After(at) {
			return fmt.Errorf("the last report is %+v", a.Status.Report)
		}
		return nil
	})
	f.note(t, "the agent of %s was killed, and reported again after %.1f s", dp.Name, time.Since(at).Seconds())
	f.ready(t, "k1", dp)
}

// agentOf is the process of a data plane's agent.
func (f *fleet) agentOf(t *testing.T, dp *v1alpha1.DataPlane) (pid int) {
	t.Helper()
	all, err := processesOf(f.machines())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range all {
		if strings.Contains(line, " agent --hub-kubeconfig=") && strings.Contains(line, "--name="+dp.Name+" ") {
			if _, err := fmt.Sscanf(line, "%d", &pid); err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no agent of %s among %q", dp.Name, all)
	return 0
}

// failed has a region whose pool has no clusters.
func (f *fleet) failed(t *testing.T) {
	dry := localPool("fleet", "dry", 0, 0)
	empty := int32(0)
	dry.Spec.MaxSize = &empty
	region := &v1alpha1.FleetRegion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "desert"},
		Spec: v1alpha1.FleetRegionSpec{
			Provider: "local", Region: "desert", InstanceTypes: []v1alpha1.RegionType{{Name: "standard"}},
			ClusterSource: v1alpha1.ClusterSource{Claim: &v1alpha1.ClaimSource{Pools: []v1alpha1.PoolSource{{PoolRef: v1alpha1.PoolReference{Name: "dry"}}}}},
			ScaleUp:       v1alpha1.ScaleUp{Mode: v1alpha1.ScalingAuto, MaxInFlight: 1, ProvisionTimeout: "3s", Backoff: "1h"},
		},
	}
	f.create(t, dry, region)
	eventually(t, "the region backs off", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(region), region); err != nil {
			return err
		}
		if st := region.Status; len(st.InstanceTypes) != 1 || st.InstanceTypes[0].Decision.Reason != "BackingOff" {
			return fmt.Errorf("it says %+v", st)
		}
		return nil
	})
	f.note(t, "region desert: %s", region.Status.InstanceTypes[0].Decision.Message)
	var claims hivev1.ClusterClaimList
	eventually(t, "its claim is given back", func(ctx context.Context) error {
		if err := f.List(ctx, &claims, client.InNamespace("fleet")); err != nil {
			return err
		}
		for _, c := range claims.Items {
			if c.Spec.ClusterPoolName == "dry" {
				return fmt.Errorf("there is claim %s", c.Name)
			}
		}
		return nil
	})
	f.hub.delete(t, region)
	f.gone(t, region)
	for _, dp := range f.failures(t) {
		f.hub.delete(t, dp)
		f.gone(t, dp)
	}
}

// failures are the data planes that failed.
func (f *fleet) failures(t *testing.T) (out []*v1alpha1.DataPlane) {
	t.Helper()
	var list v1alpha1.DataPlaneList
	if err := f.List(t.Context(), &list, client.InNamespace("fleet")); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Status.Phase == v1alpha1.PhaseFailed {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

// kept has a person delete a data plane on which instances are.
func (f *fleet) kept(t *testing.T, dp *v1alpha1.DataPlane) {
	f.hotspare(t, "kubectl", "delete", "dataplane", dp.Name, "-n", "fleet", "--wait=false")
	eventually(t, "it says why it is kept", func(context.Context) error {
		get(t, f.hub, dp)
		c := meta.FindStatusCondition(dp.Status.Conditions, v1alpha1.DataPlaneReady)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "default/k3, default/k4 (2)") {
			return fmt.Errorf("it says %+v", c)
		}
		f.note(t, "%s is deleted by hand: %s", dp.Name, c.Message)
		return nil
	})
	third := f.plane(t, dp)
	f.note(t, "%s is made in its place", third.Name)
	f.ready(t, "k3", dp)
	f.cancel(t, "k3", "k4")
	f.gone(t, dp)
	f.note(t, "k3 and k4 are deleted, and then %s is gone", dp.Name)
}

// stays is that a data plane is not removed, and that its region says why.
func (f *fleet) stays(t *testing.T, dp *v1alpha1.DataPlane) {
	t.Helper()
	said := f.hotspare(t, "fleet", "explain", "laptop", "-n", "fleet")
	f.note(t, "hotspare fleet explain laptop:\n%s", said)
	get(t, f.hub, dp)
	if dp.DeletionTimestamp != nil || dp.Status.ReleasedAt != nil || !strings.Contains(said, "without it") {
		t.Errorf("%s goes, or nobody says why it stays: %+v", dp.Name, dp.Status)
	}
}
