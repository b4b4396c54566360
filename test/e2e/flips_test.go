package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

var (
	flips    = flag.Int("flips", 8, "how often local clusters are told to hibernate or to run, at random moments")
	flipSeed = flag.Uint64("flips.seed", uint64(time.Now().UnixNano()), "where the moments come from")
)

const (
	// flippers is how many clusters are flipped side by side.
	flippers = 2
	// hurry is the longest wait between two flips: a resume takes seven seconds, so
	// most come in the middle of something.
	hurry = 8 * time.Second
)

// Clusters are told to hibernate and to run at random moments, mostly in the middle
// of the one or the other. What is said of them never contradicts itself, and when
// nobody flips any more they are what they were told last, in fact.
func TestFlips(t *testing.T) {
	h := shared(t)
	t.Logf("-flips=%d -flips.seed=%d", *flips, *flipSeed)
	pool := localPool(h.namespace(t), "flips", 0, 0)
	h.create(t, pool)
	for i := range flippers {
		claim := claimOn(pool, fmt.Sprintf("flipped-%d", i))
		h.create(t, claim)
		t.Run(claim.Name, func(t *testing.T) {
			parallelSubtest(t)
			f := &flipper{hub: h, Rand: rand.New(rand.NewPCG(*flipSeed, uint64(i))), cd: h.served(t, claim)}
			var watching sync.WaitGroup
			watching.Go(func() { f.watch(t) })
			t.Cleanup(watching.Wait)
			for n := range *flips / flippers {
				f.flip(t)
				if n%5 == 4 {
					f.arrive(t)
				}
			}
			f.arrive(t)
			t.Logf("%d states seen", f.seen.Load())
		})
	}
}

type flipper struct {
	*hub
	*rand.Rand
	cd   *hivev1.ClusterDeployment
	seen atomic.Int64
}

// flip waits for a random moment and asks for the other power state.
func (f *flipper) flip(t *testing.T) {
	t.Helper()
	select {
	case <-t.Context().Done():
		t.Fatal("the test ends")
	case <-time.After(time.Duration(f.Int64N(int64(hurry)))):
	}
	want := hivev1.PowerHibernating
	if f.cd.Spec.PowerState == want {
		want = hivev1.PowerRunning
	}
	diff := fmt.Sprintf(`{"spec":{"powerState":%q}}`, want)
	if err := f.Patch(t.Context(), f.cd, client.RawPatch(types.MergePatchType, []byte(diff))); err != nil {
		t.Fatal(err)
	}
}

// arrive waits until the cluster is as it was told last, and looks whether that is true.
func (f *flipper) arrive(t *testing.T) {
	t.Helper()
	want := string(f.cd.Spec.PowerState)
	eventually(t, fmt.Sprintf("%s is %s", f.cd.Name, want), func(ctx context.Context) error {
		now := cluster(f.cd.Name)
		if err := f.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
			return err
		}
		if p := now.Status.PowerTransition; now.Status.PowerState != want || p == nil || string(p.Target) != want {
			return fmt.Errorf("it is %s: %s", now.Status.PowerState, condition.Find(now.Status.Conditions, hivev1.ClusterReady).Message)
		}
		return nil
	})
	if want == hivev1.StatusRunning { // a node of a busy computer may miss a heartbeat for a moment
		eventually(t, f.cd.Name+" runs indeed", func(context.Context) error { return f.truly(t, want) })
		return
	}
	if err := f.truly(t, want); err != nil {
		t.Errorf("%s says that it is %s: %v", f.cd.Name, want, err)
	}
}

// truly looks at the cluster itself.
func (f *flipper) truly(t *testing.T, want string) error {
	t.Helper()
	if want == hivev1.StatusHibernating {
		left, err := processesOf(filepath.Join(f.machines(), f.cd.Spec.ClusterMetadata.InfraID))
		if len(left) > 0 {
			return fmt.Errorf("its machines run: %v", left)
		}
		return err
	}
	secret := get(t, f.hub, secretOf(f.cd.Namespace, f.cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name, "", ""))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[hivev1.SecretKeyKubeconfig])
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := api.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	var errs []error
	if len(nodes.Items) != 2 {
		errs = append(errs, fmt.Errorf("it has %d nodes", len(nodes.Items)))
	}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				errs = append(errs, fmt.Errorf("node %s is not ready: %s", n.Name, c.Message))
			}
		}
	}
	return errors.Join(errs...)
}

// watch checks everything that is ever said of the cluster.
func (f *flipper) watch(t *testing.T) {
	w, err := f.Watch(t.Context(), &hivev1.ClusterDeploymentList{}, client.InNamespace(f.cd.Namespace))
	if err != nil {
		t.Errorf("watching %s: %v", f.cd.Name, err)
		return
	}
	defer w.Stop()
	for {
		select {
		case <-t.Context().Done():
			return
		case e, open := <-w.ResultChan():
			cd, ok := e.Object.(*hivev1.ClusterDeployment)
			if !open || !ok {
				return
			}
			f.seen.Add(1)
			if err := contradiction(cd); err != nil {
				t.Error(err)
			}
		}
	}
}

// contradiction is what in a cluster's status says one thing and another.
func contradiction(cd *hivev1.ClusterDeployment) error {
	is := func(typ string) bool { return condition.IsTrue(cd.Status.Conditions, typ) }
	word := cd.Status.PowerState
	asleep, ready := is(hivev1.ClusterHibernating), is(hivev1.ClusterReady)
	unreachable := condition.Find(cd.Status.Conditions, hivev1.ClusterUnreachable)
	switch {
	case asleep && ready:
		return fmt.Errorf("%s is Hibernating and Ready", cd.Name)
	case ready != (word == hivev1.StatusRunning), asleep != (word == hivev1.StatusHibernating):
		return fmt.Errorf("%s is %s; Ready: %t, Hibernating: %t", cd.Name, word, ready, asleep)
	case asleep && (unreachable == nil || unreachable.Reason != hivev1.ReasonHibernating):
		return fmt.Errorf("%s hibernates, and Unreachable says %v", cd.Name, unreachable)
	case ready && (unreachable == nil || unreachable.Status != corev1.ConditionFalse):
		return fmt.Errorf("%s is Ready, and Unreachable says %v", cd.Name, unreachable)
	}
	return nil
}
