package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

const (
	namespace = "default"
	// waitTimeout bounds every wait.
	waitTimeout = 30 * time.Minute
)

// bench is the hub that is measured.
type bench struct {
	binary, dir string
	// rounds is how often claims are measured.
	rounds int
	hub    client.WithWatch
	rest   rest.Interface
}

// runHotspare runs the hotspare binary.
func (b *bench) runHotspare(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, b.binary, append(args, "--data-dir", b.dir)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("hotspare %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (b *bench) stopHub(ctx context.Context) error {
	return b.runHotspare(ctx, "down")
}

// connectToHub creates the clients for the hub.
func (b *bench) connectToHub(kubeconfig []byte) (err error) {
	cfg, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return err
	}
	if b.hub, err = newBenchClient(cfg); err != nil {
		return err
	}
	plain, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	b.rest = plain.RESTClient()
	return nil
}

func newBenchClient(cfg *rest.Config) (client.WithWatch, error) {
	cfg.QPS, cfg.Burst = 5000, 5000
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, hivev1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(cfg, client.Options{Scheme: s})
}

// pollUntil polls every 20 ms, which is precise enough for these measurements.
func pollUntil(ctx context.Context, done func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, waitTimeout, true, done)
}

// measureStart measures the time from nothing to a usable hub.
func (b *bench) measureStart(ctx context.Context) ([]row, error) {
	began := time.Now()
	if err := b.runHotspare(ctx, "up", "--detach", "--containers=false"); err != nil {
		return nil, err
	}
	up := time.Since(began)
	raw, err := os.ReadFile(filepath.Join(b.dir, "kubeconfig"))
	if err != nil {
		return nil, err
	}
	if err := b.connectToHub(raw); err != nil {
		return nil, err
	}
	return []row{{"hotspare up, from nothing to ready", formatSeconds(up), ""}}, nil
}

// measureLocalPool measures the time until a pool has one running local cluster.
func (b *bench) measureLocalPool(ctx context.Context) ([]row, error) {
	began := time.Now()
	if err := b.runHotspare(ctx, "pool", "create", "local", "--size", "1", "--running", "1", "-n", namespace); err != nil {
		return nil, err
	}
	if err := b.waitForReady(ctx, "local", 1); err != nil {
		return nil, err
	}
	return []row{{"from a new pool to its first running local cluster", formatSeconds(time.Since(began)), ""}}, nil
}

func (b *bench) waitForReady(ctx context.Context, pool string, n int32) error {
	// Ten pools are waited for at a time: more frequent reads would slow down what is measured.
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		var p hivev1.ClusterPool
		err := b.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: pool}, &p)
		return p.Status.Ready == n, err
	})
}

func newClaim(pool, name string) *hivev1.ClusterClaim {
	return &hivev1.ClusterClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: pool},
	}
}

// measureLocalClaim measures a claim on a running spare.
func (b *bench) measureLocalClaim(ctx context.Context) ([]row, error) {
	began := time.Now()
	seen, err := b.createAndTimeClaims(ctx, []*hivev1.ClusterClaim{newClaim("local", "one")}, 1, nil)
	if err != nil {
		return nil, err
	}
	running := seen["one"]
	nodes, err := b.countNodes(ctx, "one")
	if err != nil {
		return nil, err
	}
	return []row{
		{"claim on a running spare, to ClusterRunning", formatMillis(running), "< 100 ms"},
		{fmt.Sprintf("… to %d nodes listed with its kubeconfig", nodes), formatSeconds(time.Since(began)), "< 2 s"},
	}, nil
}

// countNodes returns the number of nodes of a claim's cluster, with the kubeconfig that the claim's
// user gets.
func (b *bench) countNodes(ctx context.Context, claim string) (int, error) {
	cd, err := b.getClaimedCluster(ctx, claim)
	if err != nil {
		return 0, err
	}
	var secret corev1.Secret
	if err := b.hub.Get(ctx, types.NamespacedName{Namespace: cd.Name, Name: cd.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name}, &secret); err != nil {
		return 0, err
	}
	cfg, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[hivev1.SecretKeyKubeconfig])
	if err != nil {
		return 0, err
	}
	spoke, err := newBenchClient(cfg)
	if err != nil {
		return 0, err
	}
	var list corev1.NodeList
	err = spoke.List(ctx, &list)
	return len(list.Items), err
}

func (b *bench) getClaimedCluster(ctx context.Context, claim string) (*hivev1.ClusterDeployment, error) {
	var c hivev1.ClusterClaim
	if err := b.hub.Get(ctx, types.NamespacedName{Namespace: namespace, Name: claim}, &c); err != nil {
		return nil, err
	}
	var cd hivev1.ClusterDeployment
	return &cd, b.hub.Get(ctx, types.NamespacedName{Namespace: c.Spec.Namespace, Name: c.Spec.Namespace}, &cd)
}

// measureHibernation measures a hibernation and a resume of the claimed cluster.
func (b *bench) measureHibernation(ctx context.Context) ([]row, error) {
	if err := b.waitForReady(ctx, "local", 1); err != nil { // the replacement has been created: the machine is idle
		return nil, err
	}
	asleep, err := b.switchPower(ctx, hivev1.PowerHibernating)
	if err != nil {
		return nil, err
	}
	awake, err := b.switchPower(ctx, hivev1.PowerRunning)
	if err != nil {
		return nil, err
	}
	return []row{
		{"local cluster, running to hibernating", formatSeconds(asleep), ""},
		{"local cluster, hibernating to usable", formatSeconds(awake), "< 15 s"},
	}, nil
}

func (b *bench) switchPower(ctx context.Context, to hivev1.PowerState) (time.Duration, error) {
	cd, err := b.getClaimedCluster(ctx, "one")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"powerState":%q}}`, to))
	if err := b.hub.Patch(ctx, cd, patch); err != nil {
		return 0, err
	}
	err = pollUntil(ctx, func(ctx context.Context) (bool, error) {
		now, err := b.getClaimedCluster(ctx, "one")
		return now != nil && now.Status.PowerState == string(to), err
	})
	return time.Since(began), err
}
