package cli

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/embedded/controlplane/flock"
)

// setHub is a hub that serves each ClaimSet with the clusters dev-1aaaa and dev-2bbbb when it has been seen to wait.
type setHub struct {
	interceptor.Funcs
	// created are the sets as they were created, and renewals the number of patches of sets.
	created  []v1alpha1.ClaimSet
	renewals int
}

func newSetHub(t *testing.T) *setHub {
	h := &setHub{}
	h.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := c.Get(ctx, key, o, opts...)
		if set, ok := o.(*v1alpha1.ClaimSet); ok && err == nil && len(set.Status.Claims) == 0 {
			bindSet(t, c, set.DeepCopy())
		}
		return err
	}
	h.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if set, ok := o.(*v1alpha1.ClaimSet); ok {
			h.created = append(h.created, *set.DeepCopy())
		}
		return c.Create(ctx, o, opts...)
	}
	h.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if _, ok := o.(*v1alpha1.ClaimSet); ok {
			h.renewals++ // by one process
		}
		return c.Patch(ctx, o, p, opts...)
	}
	return h
}

// bindSet does to a set what the controllers do.
func bindSet(t *testing.T, c client.Client, set *v1alpha1.ClaimSet) {
	t.Helper()
	var claims []v1alpha1.ClaimSetClaim
	for i, cluster := range []string{"dev-1aaaa", "dev-2bbbb"} {
		claim := claimOn("dev", fmt.Sprintf("%s-%d", set.Name, i), cluster)
		if err := c.Create(t.Context(), claim); err != nil {
			t.Error(err)
		}
		claims = append(claims, v1alpha1.ClaimSetClaim{Name: claim.Name, Cluster: cluster})
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error { // a heartbeat may come in between
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Status.ClusterPoolName, set.Status.Claims, set.Status.Assigned, set.Status.Running = "dev", claims, 2, 2
		meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{Type: v1alpha1.ClaimSetPending, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSetServed})
		meta.SetStatusCondition(&set.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ClaimSetClustersRunning, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonClustersRunning, Message: "All clusters are running",
		})
		return c.Update(t.Context(), set)
	})
	if err != nil {
		t.Error(err)
	}
}

// newSetRig has the kubeconfigs of two clusters. The entries of both have the same names.
func newSetRig(t *testing.T, h *setHub) *rig {
	t.Helper()
	objects := world()
	for _, o := range objects {
		if s, ok := o.(*corev1.Secret); ok {
			s.Data[hivev1.SecretKeyKubeconfig] = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"admin",
"clusters":[{"name":"cluster","cluster":{"server":"https://%[1]s"}}],"users":[{"name":"admin","user":{"token":"of-%[1]s"}}],
"contexts":[{"name":"admin","context":{"cluster":"cluster","user":"admin","namespace":"tests"}}]}`, s.Namespace)
		}
	}
	return newRig(t, h.Funcs, objects...)
}

// setReleased fails unless no set is left, and no file.
func (r *rig) setReleased() {
	r.t.Helper()
	var list v1alpha1.ClaimSetList
	if err := r.hub.List(r.t.Context(), &list); err != nil {
		r.t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "hotspare-*"))
	if len(list.Items) > 0 || err != nil || len(left) > 0 {
		r.t.Errorf("%d sets and the folders %v are left, %v", len(list.Items), left, err)
	}
}

func TestRunGivesTheCommandSeveralClusters(t *testing.T) {
	h := newSetHub(t)
	r := newSetRig(t, h)
	code := r.run("claim", "run", "dev", "--count", "2", "--priority", "5", "--", "sh", "-c", `stat -c %a "$KUBECONFIG"; echo "$HOTSPARE_CLAIMS"; cat "$KUBECONFIG"; exit 7`)
	if code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	lines := strings.SplitN(r.stdout.String(), "\n", 3)
	if lines[0] != "600" || tidy(lines[1]) != "dev-12345-0 dev-12345-1" {
		t.Errorf("the command sees %q", lines[:2])
	}
	config, err := clientcmd.Load([]byte(lines[2]))
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(lines[1])
	if config.CurrentContext != names[0] || len(config.Contexts) != 2 {
		t.Errorf("the current one of %d contexts is %q, want %q", len(config.Contexts), config.CurrentContext, names[0])
	}
	for i, cluster := range []string{"dev-1aaaa", "dev-2bbbb"} {
		c := config.Contexts[names[i]]
		if c == nil || c.Namespace != "tests" || config.Clusters[c.Cluster].Server != "https://"+cluster || config.AuthInfos[c.AuthInfo].Token != "of-"+cluster {
			t.Errorf("context %s: %+v of %q", names[i], c, lines[2])
		}
	}
	want := `ClaimSet dev-12345: waiting for hotspare
ClaimSet dev-12345: All clusters are running
ClaimSet dev-12345 has 2 clusters of pool dev after 0s
ClaimSet dev-12345 released
`
	if got := tidy(r.stderr.String()); got != want {
		t.Errorf("stderr is %q, want %q", got, want)
	}
	if len(h.created) != 1 || h.renewals == 0 {
		t.Fatalf("%d sets, and %d heartbeats", len(h.created), h.renewals)
	}
	set := h.created[0]
	if set.Spec.Size != 2 || *set.Spec.Lifetime != "4h" || set.Spec.Priority != 5 || set.Annotations[hivev1.AnnotationHeartbeatTimeout] != "1m30s" {
		t.Errorf("%v %+v", set.Annotations, set.Spec)
	}
	r.setReleased()
}

// The hub releases the set of a runner that it does not hear of, and an administrator can: the command loses its clusters.
func TestRunStopsItsCommandWhenItsSetIsReleased(t *testing.T) {
	r := newSetRig(t, newSetHub(t))
	r.stdin = reader(func([]byte) (int, error) { // read once the command runs
		if err := r.hub.DeleteAllOf(t.Context(), &v1alpha1.ClaimSet{}, client.InNamespace("default")); err != nil {
			t.Error(err)
		}
		return 0, errors.New("no more")
	})
	if code := r.run("claim", "run", "dev", "--count", "2", "--", "sh", "-c", `trap "exit 5" TERM; while :; do :; done`); code != 5 && code != 143 {
		t.Errorf("exit code %d, want 5, or 143 before the trap was set", code)
	}
	want := "error: ClaimSet dev-12345 was released by another user or process and its clusters are being destroyed; stopping the command\n"
	if got := tidy(r.stderr.String()); !strings.HasSuffix(got, want) {
		t.Errorf("stderr is %q, want it to end in %q", got, want)
	}
	r.setReleased()
}

func TestRunRequestsABundleOfEachClusterUnlessItsCommandSucceeds(t *testing.T) {
	for script, want := range map[string]string{"true": "", "exit 3": "true"} {
		r := newSetRig(t, newSetHub(t))
		r.run("claim", "run", "dev", "--count", "2", "--diagnose-on-failure", "--", "sh", "-c", script)
		var claims hivev1.ClusterClaimList
		if err := r.hub.List(t.Context(), &claims); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range claims.Items {
			if strings.HasPrefix(c.Name, "dev-") {
				got = append(got, c.Annotations[hivev1.AnnotationDiagnoseAtRelease])
			}
		}
		if !slices.Equal(got, []string{want, want}) {
			t.Errorf("%s: the claims have %q, want %q; stderr: %s", script, got, want, r.stderr.String())
		}
	}
}

func TestRunReleasesTheSetOfOneThatWasKilled(t *testing.T) {
	r := newSetRig(t, newSetHub(t))
	set := &v1alpha1.ClaimSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "killed", UID: "uid-of-killed"}}
	if err := r.hub.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hotspare-claim-run-") //nolint:usetesting // claim run looks for leftovers directly below the temporary folder
	if err != nil {
		t.Fatal(err)
	}
	lock, err := flock.Acquire(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "claim.json"), `{"hub":"https://127.0.0.1:36443","kind":"ClaimSet","namespace":"default","name":"killed","uid":"uid-of-killed"}`)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if code := r.run("claim", "run", "dev", "--count", "2", "--", "true"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, r.stderr.String())
	}
	if want := "released ClaimSet killed of a killed claim run\n"; !strings.HasPrefix(r.stderr.String(), want) {
		t.Errorf("stderr is %q, want %q first", r.stderr.String(), want)
	}
	r.setReleased()
}

func TestRunRefusesACountThatNoSetHas(t *testing.T) {
	r := newSetRig(t, newSetHub(t))
	for _, count := range []string{"0", "101"} {
		if code := r.run("claim", "run", "dev", "--count", count, "--", "true"); code != 2 || !strings.Contains(r.stderr.String(), "--count must be from 1 to 100") {
			t.Errorf("--count %s: exit code %d, %s", count, code, r.stderr.String())
		}
	}
}
