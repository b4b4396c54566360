package capi

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	cloudcapi "hotspare.io/hotspare/internal/cloud/capi"
	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/install"
	installcapi "hotspare.io/hotspare/internal/install/capi"
	controllers "hotspare.io/hotspare/internal/manager"
)

const (
	poolNamespace = "pools"
	poolName      = "capi"
	// poolClass is the ClusterClass of the pool: a copy, which the test changes.
	poolClass = "of-the-pool"
)

// poolLab is a lab with hotspare's controllers, which have the rights of hotspare-manager only.
type poolLab struct {
	*lab
	client client.Client
}

func newPoolLab(t *testing.T, l *lab) *poolLab {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	cfg, err := clientcmd.BuildConfigFromFlags("", filepath.Join(filepath.Dir(l.kubeconfig), "manager.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := controllers.New(t.Context(), cfg, controllers.Platforms{
		Executors: install.Registry{"capi": &completedExecutor{Executor: installcapi.New(hub, installcapi.Options{}), t: t, kubeconfigs: map[string][]byte{}}},
		Actuators: cloud.Registry{"capi": cloudcapi.New(hub, []cloudcapi.Provider{{Scheme: "in-memory", Actuator: inMemoryPower{hub: hub}}}, nil)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("running the controllers: %v", err)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	admin, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	p := &poolLab{lab: l}
	if p.client, err = client.New(admin, client.Options{Scheme: controllers.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return p
}

// cluster returns the ClusterDeployment of the pool that is accepted; nil if there is none.
func (p *poolLab) cluster(accept func(*hivev1.ClusterDeployment) bool) *hivev1.ClusterDeployment {
	p.t.Helper()
	var list hivev1.ClusterDeploymentList
	if err := p.client.List(p.t.Context(), &list); err != nil {
		p.t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(cd hivev1.ClusterDeployment) bool { return accept(&cd) })
	if i < 0 {
		return nil
	}
	return &list.Items[i]
}

// untilCluster waits for a ClusterDeployment, and returns it with its Machines and their UIDs.
func (p *poolLab) untilCluster(what string, accept func(*hivev1.ClusterDeployment) bool) (cd *hivev1.ClusterDeployment, uids string) {
	p.t.Helper()
	p.waitFor(what, 5*time.Minute, func() error {
		if cd = p.cluster(accept); cd == nil {
			out, _ := p.run("explain", "pool", poolName) // for the message only
			return fmt.Errorf("there is no such cluster; the pool: %s", out)
		}
		return nil
	})
	return cd, p.uids(&member{req: install.Request{ClusterTarget: install.ClusterTarget{Cluster: client.ObjectKeyFromObject(cd)}}})
}

// isIn accepts the ClusterDeployment of a claim in a power state; without a claim, a spare.
func isIn(claim string, state hivev1.PowerState) func(*hivev1.ClusterDeployment) bool {
	return func(cd *hivev1.ClusterDeployment) bool {
		ref := cd.Spec.ClusterPoolRef
		return ref != nil && ref.ClaimName == claim && cd.DeletionTimestamp == nil && cd.Status.PowerState == string(state)
	}
}

// isPaused reports whether the Cluster of a ClusterDeployment is paused by hotspare.
func (p *poolLab) isPaused(cd *hivev1.ClusterDeployment) bool {
	p.t.Helper()
	o, err := p.Resource(clusterapi.Clusters).Namespace(cd.Namespace).Get(p.t.Context(), cd.Spec.ClusterMetadata.InfraID, metav1.GetOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return clusterapi.IsPausedByHotspare(o)
}

// hotspare runs a command in the namespace of the pool and returns its output. It fails the test if
// the command fails.
func (p *poolLab) hotspare(args ...string) string {
	p.t.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.t.Fatalf("hotspare %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (p *poolLab) run(args ...string) (string, error) {
	args = append(args, "-n", poolNamespace, "--kubeconfig", p.kubeconfig)
	out, err := exec.CommandContext(p.t.Context(), p.program("HOTSPARE", "../../bin/hotspare"), args...).CombinedOutput()
	return string(out), err
}

func (p *poolLab) createPool() {
	p.t.Helper()
	one := int32(1)
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: poolNamespace}},
		&hivev1.ClusterImageSet{ObjectMeta: metav1.ObjectMeta{Name: "k8s-1-36"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "registry.example.com/kubernetes:v1.36.0"}},
		&hivev1.ClusterPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: poolNamespace, Name: poolName},
			Spec: hivev1.ClusterPoolSpec{
				Size: 1, BaseDomain: "ci.example.com", ImageSetRef: hivev1.ClusterImageSetReference{Name: "k8s-1-36"},
				Platform: hivev1.Platform{CAPI: &hivev1.CAPIPlatform{
					ClassRef: &hivev1.CAPIClassReference{Name: poolClass, Namespace: classNamespace},
					Workers:  []hivev1.CAPIWorkers{{Class: "default-worker", Name: "md-0", Replicas: &one}},
				}},
			},
		},
	} {
		if err := p.client.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
	}
}

// testPool takes clusters of a pool from their creation to their deletion, under hotspare's controllers
// and those of Cluster API: one is claimed, hibernates, resumes and is released, another is deleted with
// the pool while it hibernates.
func testPool(t *testing.T, l *lab) {
	p := newPoolLab(t, l)
	p.createPool()
	var spare *hivev1.ClusterDeployment
	var before string
	p.phase("pool: a spare is created and hibernates", func() {
		spare, before = p.untilCluster("a hibernated spare", isIn("", hivev1.PowerHibernating))
	})
	if !p.isPaused(spare) || strings.Count(before, "=") != 2 {
		t.Errorf("the spare hibernates; paused %t, Machines %s", p.isPaused(spare), before)
	}
	t.Logf("hotspare pool list:\n%s", p.hotspare("pool", "list"))
	t.Logf("hotspare explain pool:\n%s", p.hotspare("explain", "pool", poolName))

	const claim = "job"
	p.phase("pool: a claim resumes the spare", func() {
		t.Logf("hotspare claim create:\n%s", p.hotspare("claim", "create", poolName, "--name", claim, "--wait", "--timeout", "5m"))
	})
	p.confirmPower(spare, claim, hivev1.PowerRunning, before)
	for _, state := range []hivev1.PowerState{hivev1.PowerHibernating, hivev1.PowerRunning} {
		p.phase("pool: the claimed cluster becomes "+string(state), func() {
			cd := p.cluster(func(cd *hivev1.ClusterDeployment) bool { return cd.Name == spare.Name })
			old := client.MergeFrom(cd.DeepCopy())
			cd.Spec.PowerState = state
			if err := p.client.Patch(t.Context(), cd, old); err != nil {
				t.Fatal(err)
			}
			p.untilCluster("the claimed cluster in state "+string(state), isIn(claim, state))
		})
		p.confirmPower(spare, claim, state, before)
	}
	p.phase("pool: the claim is released, and its cluster deleted", func() {
		t.Logf("hotspare claim release:\n%s", p.hotspare("claim", "release", claim))
		p.untilGone("the released cluster", spare.Namespace)
	})
	p.phase("pool: the next spare hibernates", func() { p.untilCluster("the next spare", isIn("", hivev1.PowerHibernating)) })

	p.confirmStale()
	pool := &hivev1.ClusterPool{ObjectMeta: metav1.ObjectMeta{Namespace: poolNamespace, Name: poolName}}
	if err := p.client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	p.phase("pool: the pool is deleted with its spares", func() { p.untilGone("the pool's clusters", "") })
}

// confirmPower fails the test unless the cluster of a claim is in a power state, with the Machines that it
// had, and its Cluster is paused exactly while it hibernates.
func (p *poolLab) confirmPower(spare *hivev1.ClusterDeployment, claim string, state hivev1.PowerState, before string) {
	p.t.Helper()
	cd, uids := p.untilCluster("the claimed cluster", isIn(claim, state))
	if want := state == hivev1.PowerHibernating; cd.Name != spare.Name || p.isPaused(cd) != want || uids != before {
		p.t.Errorf("the claim has cluster %s, paused %t, Machines %s; it must be %s, paused %t, Machines %s", cd.Name, p.isPaused(cd), uids, spare.Name, want, before)
	}
}

// confirmStale changes the ClusterClass of the pool, and fails the test if the pool does not report its
// spare as stale: Cluster API would replace its machines after the resume.
func (p *poolLab) confirmStale() {
	p.t.Helper()
	class := p.Resource(clusterapi.ClusterClasses).Namespace(classNamespace)
	change := []byte(`{"spec":{"variables":[{"name":"added","required":false,"schema":{"openAPIV3Schema":{"type":"string"}}}]}}`)
	if _, err := class.Patch(p.t.Context(), poolClass, types.MergePatchType, change, metav1.PatchOptions{}); err != nil {
		p.t.Fatal(err)
	}
	p.waitFor("the stale spare", 2*time.Minute, func() error {
		var pool hivev1.ClusterPool
		if err := p.client.Get(p.t.Context(), types.NamespacedName{Namespace: poolNamespace, Name: poolName}, &pool); err != nil {
			return err
		}
		if c := condition.Find(pool.Status.Conditions, hivev1.PoolAllClustersCurrent); c == nil || c.Status != corev1.ConditionFalse {
			return fmt.Errorf("condition AllClustersCurrent is %+v", c)
		}
		return nil
	})
	p.t.Logf("hotspare explain pool, after a change of the ClusterClass:\n%s", p.hotspare("explain", "pool", poolName))
}

// untilGone waits until a namespace has no Cluster, and without a namespace, until no namespace of
// the pool has one.
func (p *poolLab) untilGone(what, namespace string) {
	p.t.Helper()
	p.waitFor("the deletion of "+what, 3*time.Minute, func() error {
		list, err := p.Resource(clusterapi.Clusters).Namespace(namespace).List(p.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if strings.HasPrefix(o.GetNamespace(), poolName+"-") {
				return fmt.Errorf("Cluster %s exists", o.GetName())
			}
		}
		return nil
	})
}
