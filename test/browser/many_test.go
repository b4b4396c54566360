//go:build browser

package browser

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// staticHub is a hub without controllers: objects stay as the test writes them.
type staticHub struct {
	*hub
	client.Client
}

func startStaticHub(t *testing.T) staticHub {
	t.Helper()
	h := startOwnHub(t, "--hub-only")
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(h.dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	kinds := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(kinds), hivev1.AddToScheme(kinds)); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		t.Fatal(err)
	}
	return staticHub{h, api}
}

// createPool creates a pool.
func (s staticHub) createPool(t *testing.T, name string, size int32) {
	t.Helper()
	p := &hivev1.ClusterPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: hivev1.ClusterPoolSpec{
			Platform: hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1"}`)}},
			Size:     size, BaseDomain: "example.com", ImageSetRef: hivev1.ClusterImageSetReference{Name: "kubernetes"},
		},
	}
	if err := s.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// createCluster creates a cluster of a pool in the given state.
func (s staticHub) createCluster(ctx context.Context, pool, name, claim, state string) error {
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: name, BaseDomain: "example.com", Installed: state != "Installing" && state != "Failed",
			Platform:       hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(`{"region":"us-east-1"}`)}},
			ClusterPoolRef: &hivev1.ClusterPoolReference{Namespace: "default", PoolName: pool, ClaimName: claim},
			PowerState:     hivev1.PowerRunning,
		},
	}
	if cd.Spec.Installed {
		cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{ClusterID: name, InfraID: name, AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: name}}
	} else {
		cd.Spec.Provisioning = &hivev1.Provisioning{ImageSetRef: &hivev1.ClusterImageSetReference{Name: "kubernetes"}, InstallConfigSecretRef: &corev1.LocalObjectReference{Name: name}}
	}
	status := hivev1.ClusterDeploymentStatus{PowerState: hivev1.StatusRunning}
	switch state {
	case "Hibernating":
		cd.Spec.PowerState, status.PowerState = hivev1.PowerHibernating, hivev1.StatusHibernating
	case "Resuming":
		status.PowerState = hivev1.StatusHibernating
	case "Deleting":
		cd.Finalizers = []string{"hotspare.io/test"}
	case "Failed":
		status.Conditions = []hivev1.Condition{{
			Type: hivev1.ClusterProvisionStopped, Status: corev1.ConditionTrue, Reason: "InstallAttemptsLimitReached",
			Message: "Install attempts limit reached: 3 attempts have failed. The last said: level=fatal msg=failed to fetch Cluster: quota of vCPUs in us-east-1 exceeded",
		}}
	}
	if err := s.Create(ctx, cd); err != nil {
		return err
	}
	cd.Status = status
	if err := s.Status().Update(ctx, cd); err != nil {
		return err
	}
	if state == "Deleting" {
		return s.Delete(ctx, cd)
	}
	return nil
}

// createClusterInEachState creates a cluster in each state.
func (s staticHub) createClusterInEachState(t *testing.T) {
	t.Helper()
	s.createPool(t, "zoo", 7)
	for i, state := range []string{"Installing", "Hibernating", "Running", "Resuming", "Failed", "Deleting"} {
		if err := s.createCluster(t.Context(), "zoo", fmt.Sprintf("zoo-%d%s", i, "x7k2p"), "", state); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.createCluster(t.Context(), "zoo", "zoo-claimed", "release-4.19-e2e-aws", "Running"); err != nil {
		t.Fatal(err)
	}
}

// manyClusters is how many clusters a page must support.
const manyClusters = 1000

// createManyClusters creates as many clusters as a page must support.
func (s staticHub) createManyClusters(t *testing.T) {
	t.Helper()
	s.createPool(t, "crowd", manyClusters)
	states := []string{"Running", "Hibernating", "Hibernating", "Hibernating", "Installing", "Resuming", "Failed"}
	begun := time.Now()
	var all errgroup.Group
	all.SetLimit(8)
	for i := range manyClusters {
		all.Go(func() error {
			return s.createCluster(t.Context(), "crowd", fmt.Sprintf("crowd-%04d", i), "", states[i%len(states)])
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clusters are made after %s", manyClusters, time.Since(begun).Round(time.Second))
}

// Text and style show the state of each cluster.
func TestClustersInEveryState(t *testing.T) {
	h := startStaticHub(t)
	h.createClusterInEachState(t)
	p := signedIn(t, h.hub)
	p.checkPage("zoo", "/pools/default/zoo", "Installing", "Standby", "Assignable", "Claimed", "Broken", "Deleting", "quota of vCPUs")
	p.checkPage("overview-broken", "/", "Broken", "quota of vCPUs")
}

// The page of a pool with a thousand clusters is usable.
func TestAThousandTilesCanBeUsed(t *testing.T) {
	h := startStaticHub(t)
	h.createManyClusters(t)
	p := signedIn(t, h.hub)
	begun := time.Now()
	p.visit("/pools/default/crowd?all=1")
	p.waitUntil("all tiles are there", fmt.Sprintf(`document.querySelectorAll(".tile").length === %d`, manyClusters))
	t.Logf("the page is there after %s, and has %d bytes", time.Since(begun).Round(time.Millisecond), len(p.html()))
	p.runActions("looking for long tasks", chromedp.Evaluate(`window.tasks = []; new PerformanceObserver(l => tasks.push(...l.getEntries().map(e => e.duration))).observe({type: "longtask"})`, nil))
	p.click("button", "Resize")
	p.enter("#resize input[name=size]", "12")
	for i := range 10 {
		if err := h.Delete(t.Context(), &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("crowd-%04d", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	begun = time.Now()
	p.waitUntil("those that are deleted go", fmt.Sprintf(`document.querySelectorAll(".tile").length === %d`, manyClusters-10))
	t.Logf("those that are deleted are gone after %s; tasks of the browser that took long, in ms: %s", time.Since(begun).Round(time.Millisecond), evaluate[string](p, "tasks.map(Math.round).join()"))
	if got := evaluate[string](p, `document.querySelector("#resize input[name=size]").value`); got != "12" {
		t.Errorf("what was typed is now %q", got)
	}
	// An idle computer needs a fiftieth of this.
	if longest := evaluate[float64](p, "Math.max(0, ...tasks)"); longest > 10000 {
		t.Errorf("the browser did not answer for %.0f ms", longest)
	}
	p.checkWidth("a thousand tiles")
	p.setWindow(narrow)
	p.checkWidth("a thousand tiles, narrow")
}
