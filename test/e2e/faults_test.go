package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// resumeLimit is short, so that what does not come up is soon given up, and long
// enough for what does, on a computer that many tests share.
const resumeLimit = hivev1.Duration("25s")

// What does not come up in a pool is replaced, whatever is wrong with it.
func TestBrokenStandbysAreReplaced(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	faults := []machine.Injection{machine.DiskLost, machine.HangOnStart, machine.APISilent, machine.ControllerManagerDead, machine.NodeNeverReady}
	pool := localPool(ns, "faulty", int32(len(faults)), 0)
	pool.Spec.PowerstateTransitionToRunningTimeout = ptr.To(resumeLimit)
	h.create(t, pool)
	var asleep []hivev1.ClusterDeployment
	eventually(t, "all sleep", func(context.Context) error {
		asleep = h.clusters(t, pool)
		if power := byPower(asleep); len(power[hivev1.StatusHibernating]) != len(faults) {
			return fmt.Errorf("clusters by power state: %v", power)
		}
		return nil
	})
	broken := map[string]machine.Injection{}
	for i, cd := range asleep {
		h.hurt(t, ns, cd.Name, faults[i])
		broken[cd.Name] = faults[i]
	}

	h.hotspare(t, "pool", "scale", "faulty", "-n", ns, "--running", fmt.Sprint(len(faults)))
	eventually(t, "all are replaced", func(context.Context) error {
		var left []string
		for _, cd := range h.clusters(t, pool) {
			if f := broken[cd.Name]; f != "" {
				left = append(left, fmt.Sprintf("%s (%s) is %s", cd.Name, f, cd.Status.PowerState))
			}
		}
		if len(left) > 0 {
			return errors.New(strings.Join(left, ", "))
		}
		return nil
	})
	before := pool.DeepCopy()
	pool.Spec.PowerstateTransitionToRunningTimeout = nil // a busy computer may take longer to start the new ones
	if err := h.Patch(t.Context(), pool, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	h.settled(t, pool)
}

// Without the token by which nodes join, a control plane could run, and wait for nodes for ever.
func TestAClusterWithADamagedDiskIsReplaced(t *testing.T) {
	h := shared(t)
	pool := localPool(h.namespace(t), "damaged", 1, 0)
	h.create(t, pool)
	var cd hivev1.ClusterDeployment
	eventually(t, "it sleeps", func(context.Context) error {
		all := h.clusters(t, pool)
		if len(all) != 1 || all[0].Status.PowerState != hivev1.StatusHibernating {
			return fmt.Errorf("there are %d clusters: %v", len(all), byPower(all))
		}
		cd = all[0]
		return nil
	})
	infraID := cd.Spec.ClusterMetadata.InfraID
	tokens := filepath.Join(machine.PKIPath(filepath.Join(h.machines(), infraID, infraID+"-master-0")), "tokens.csv")
	if err := os.Truncate(tokens, 0); err != nil {
		t.Fatal(err)
	}
	h.hotspare(t, "pool", "scale", pool.Name, "-n", pool.Namespace, "--running", "1")
	eventually(t, "the file is named", func(context.Context) error {
		r := h.run(t, "", "explain", "cluster", cd.Name, "-n", cd.Namespace)
		if !strings.Contains(r.all(), "tokens.csv is damaged") {
			return errors.New(r.all())
		}
		return nil
	})
	eventually(t, "it is replaced by one that runs", func(context.Context) error {
		all := h.clusters(t, pool)
		if len(all) != 1 || all[0].Name == cd.Name || all[0].Status.PowerState != hivev1.StatusRunning {
			return fmt.Errorf("there are %d clusters: %v", len(all), byPower(all))
		}
		return nil
	})
}

// A cluster that runs gets a fault, and then the next.
func TestARunningClusterGetsOverItsFaults(t *testing.T) {
	h := shared(t)
	cd := h.standalone(t, "runner", hivev1.PowerRunning)
	h.conditioned(t, cd, hivev1.ClusterReady, corev1.ConditionTrue)

	t.Log("a machine that crashed is started again")
	before := h.transition(t, cd)
	h.hurt(t, cd.Namespace, cd.Name, machine.MachineCrash)
	eventually(t, "it has resumed", func(context.Context) error {
		if now := h.transition(t, cd); now.StartedAt.Equal(&before.StartedAt) || now.FinishedAt == nil {
			return fmt.Errorf("its transition is %+v", now)
		}
		return nil
	})

	t.Log("controllers that are dead act again when they are healed")
	h.withoutControllers(t, cd)

	t.Log("one that hangs on its stop is given up, and asleep in the end")
	h.hurt(t, cd.Namespace, cd.Name, machine.HangOnStop)
	h.hotspare(t, "cluster", "hibernate", cd.Name, "-n", cd.Namespace)
	eventually(t, "it fails to stop", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil || cd.Status.PowerState == hivev1.ReasonFailedToStop ||
			h.countEvents(t, cd, hivev1.ReasonFailedToStop) > 0 { // it is killed ten seconds later
			return err
		}
		return errors.New("it is " + cd.Status.PowerState)
	})
	h.conditioned(t, cd, hivev1.ClusterHibernating, corev1.ConditionTrue)
	if left, err := processesOf(filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID)); err != nil || len(left) > 0 {
		t.Errorf("its processes run: %v, %v", left, err)
	}
}

// withoutControllers kills a cluster's controllers and brings them to life again. A
// namespace that is made in between has its service account only after that.
func (h *hub) withoutControllers(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	admin := kubernetes.NewForConfigOrDie(h.spoke(t, cd)).CoreV1()
	h.hurt(t, cd.Namespace, cd.Name, machine.ControllerManagerDead)
	h.logs(t, cd, "All controllers terminated")
	lonely := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lonely"}}
	if _, err := admin.Namespaces().Create(patient(t), lonely, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account := func(ctx context.Context) error {
		_, err := admin.ServiceAccounts(lonely.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	if err := account(patient(t)); !apierrors.IsNotFound(err) {
		t.Errorf("somebody has made an account in the namespace: %v", err)
	}
	h.hotspare(t, "local", "heal", cd.Name, "-n", cd.Namespace)
	eventually(t, "the namespace has its account", account)
}

// Certificates that have expired are renewed by requests that the hub judges.
func TestExpiredCertificatesAreRenewed(t *testing.T) {
	h := shared(t)
	cd := h.standalone(t, "sleeper", hivev1.PowerHibernating)
	h.conditioned(t, cd, hivev1.ClusterHibernating, corev1.ConditionTrue)
	h.hurt(t, cd.Namespace, cd.Name, machine.CertificatesExpired)
	h.hotspare(t, "cluster", "resume", cd.Name, "-n", cd.Namespace, "--wait")
	nodes, err := foldersIn(filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID))
	if err != nil {
		t.Fatal(err)
	}
	if granted := readmitted(t, h.spoke(t, cd)); len(granted) != 2 || !slices.Equal(granted, nodes) {
		t.Errorf("let in again by the hub: %v, want %v", granted, nodes)
	}
	for _, m := range nodes {
		if left := machine.ListInjections(filepath.Join(h.machines(), cd.Spec.ClusterMetadata.InfraID, m)); len(left) > 0 {
			t.Errorf("machine %s still has %v", m, left)
		}
	}
}

// standalone makes a cluster that is in no pool.
func (h *hub) standalone(t *testing.T, name string, power hivev1.PowerState) *hivev1.ClusterDeployment {
	t.Helper()
	cd := shortLived(h.namespace(t), name)
	cd.Spec.Platform.Local.CertificateDuration = ""
	cd.Spec.PowerState = power
	cd.Spec.PowerstateTransitionToHibernatingTimeout = ptr.To(hivev1.Duration("5s"))
	h.create(t, cd)
	t.Cleanup(func() { _ = h.Delete(context.Background(), cd) }) // its namespace goes, too
	return cd
}

// hurt gives a cluster a fault.
func (h *hub) hurt(t *testing.T, namespace, cluster string, f machine.Injection) {
	t.Helper()
	h.hotspare(t, "local", "break", cluster, string(f), "-n", namespace)
}

// transition is that of a cluster which had one.
func (h *hub) transition(t *testing.T, cd *hivev1.ClusterDeployment) hivev1.PowerTransition {
	t.Helper()
	if get(t, h, cd).Status.PowerTransition == nil {
		t.Fatalf("cluster %s has no transition", cd.Name)
	}
	return *cd.Status.PowerTransition
}

// logs waits until the control plane's log holds a text.
func (h *hub) logs(t *testing.T, cd *hivev1.ClusterDeployment, text string) {
	t.Helper()
	infraID := cd.Spec.ClusterMetadata.InfraID
	path := machine.LogPath(filepath.Join(h.machines(), infraID, infraID+"-master-0"))
	eventually(t, path+" says "+text, func(context.Context) error {
		raw, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(raw), text) {
			err = errors.New("it does not")
		}
		return err
	})
}
