package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// poolManifest is a pool as a user writes it, with these lines in its spec.
func poolManifest(namespace, name string, spec ...string) string {
	return fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterPool
metadata: {name: %s, namespace: %s}
spec:
  baseDomain: example.com
  imageSetRef: {name: kubernetes}
  %s
`, name, namespace, strings.Join(spec, "\n  "))
}

// claimManifest is a claim as a user writes it.
func claimManifest(namespace, name, spec string) string {
	return fmt.Sprintf(`
apiVersion: hive.openshift.io/v1
kind: ClusterClaim
metadata: {name: %s, namespace: %s}
spec: {%s}
`, name, namespace, spec)
}

const (
	onAWS = "platform: {aws: {region: us-east-1}}"
	one   = "size: 1"
	paper = `annotations: {hive.openshift.io/fake-cluster: "true"}`
)

func TestBadManifestsAreRefusedWithARemedy(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := func(spec ...string) string { return poolManifest(ns, "bad", spec...) }
	claim := func(spec string) string { return claimManifest(ns, "bad", spec) }
	for name, tt := range map[string]struct {
		manifest string
		says     []string
		flags    []string
	}{
		"an unknown platform": {
			manifest: pool("platform: {digitalocean: {}}", one),
			says:     []string{"ClusterPool", `unknown field "spec.platform.digitalocean"`},
		},
		"an unknown platform, by a client that lets unknown fields pass": {
			manifest: pool("platform: {digitalocean: {}}", one),
			flags:    []string{"--validate=false"},
			says:     []string{`ClusterPool "bad"`, "spec.platform", "set exactly one platform", "aws", "gcp", "local"},
		},
		"an unknown platform, applied by the server": {
			manifest: pool("platform: {digitalocean: {}}", one),
			flags:    []string{"--server-side"},
			says:     []string{"ClusterPool", "/bad", ".spec.platform.digitalocean", "not declared"},
		},
		"two platforms": {
			manifest: pool("platform: {aws: {}, gcp: {}}", one),
			says:     []string{`ClusterPool "bad"`, "spec.platform", "set exactly one platform"},
		},
		"a negative size": {
			manifest: pool(onAWS, "size: -1"),
			says:     []string{`ClusterPool "bad"`, "spec.size", "-1", "should be greater than or equal to 0"},
		},
		"a negative maxSize": { // B35
			manifest: pool(onAWS, one, "maxSize: -2"),
			says:     []string{`ClusterPool "bad"`, "spec.maxSize", "-2", "should be greater than or equal to 0"},
		},
		"a negative maxConcurrent": { // B35
			manifest: pool(onAWS, one, "maxConcurrent: -3"),
			says:     []string{`ClusterPool "bad"`, "spec.maxConcurrent", "-3", "should be greater than or equal to 0"},
		},
		"a pool with a claimLifetime in days": {
			manifest: pool(onAWS, one, "claimLifetime: {default: 1d}"),
			says:     []string{`ClusterPool "bad"`, "spec.claimLifetime.default", `"1d"`, "a day is 24h"},
		},
		"a claim with a lifetime in weeks": {
			manifest: claim("clusterPoolName: good, lifetime: 1w"),
			says:     []string{`ClusterClaim "bad"`, "spec.lifetime", `"1w"`, "a week 168h"},
		},
		"a claim that chooses its cluster": { // B15
			manifest: claim("clusterPoolName: good, namespace: mine"),
			says:     []string{`"bad"`, "spec.namespace", `"mine"`, "remove it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallelSubtest(t)
			refused(t, h.apply(t, tt.manifest, tt.flags...), tt.says...)
		})
	}
}

func TestMoreRunningClustersThanClustersAreAllowedAndSaid(t *testing.T) { // B35
	h := shared(t)
	ns := h.namespace(t)
	r := h.apply(t, poolManifest(ns, "eager", onAWS, one, paper, "runningCount: 3"))
	if r.code != 0 {
		t.Fatalf("it was refused:\n%s", r.all())
	}
	says(t, r.err, "Warning", "spec.runningCount 3", "spec.size 1", "no more than 1 will be kept running")
	pool := fakePool(ns, "eager", 1, 3)
	h.settled(t, pool)
	says(t, pool.Status.Plan, "runningCount 3 is above size")
}

func TestAPoolSaysWhatIsMissingAndHealsWhenItAppears(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	for name, tt := range map[string]struct {
		pool string
		spec func(*hivev1.ClusterPoolSpec)
		says []string
		cure client.Object
	}{
		"an image set": {
			pool: "no-image-set",
			spec: func(s *hivev1.ClusterPoolSpec) { s.ImageSetRef.Name = "e2e-late" },
			says: []string{`ClusterImageSet "e2e-late" does not exist`, "create it", "change spec.imageSetRef"},
			cure: &hivev1.ClusterImageSet{
				ObjectMeta: metav1.ObjectMeta{Name: "e2e-late"}, Spec: hivev1.ClusterImageSetSpec{ReleaseImage: "registry.example/release:1"},
			},
		},
		"an install-config template": {
			pool: "no-template",
			spec: func(s *hivev1.ClusterPoolSpec) {
				s.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: "late-template"}
			},
			says: []string{`Secret "late-template" does not exist`, "create it", "change spec.installConfigSecretTemplateRef"},
			cure: secretOf(ns, "late-template", hivev1.SecretKeyInstallConfig, "apiVersion: v1\n"),
		},
		"a pull secret": {
			pool: "no-pull-secret",
			spec: func(s *hivev1.ClusterPoolSpec) { s.PullSecretRef = &corev1.LocalObjectReference{Name: "late-pull"} },
			says: []string{`Secret "late-pull" does not exist`, "create it", "change spec.pullSecretRef"},
			cure: secretOf(ns, "late-pull", hivev1.SecretKeyPullSecret, `{"auths":{}}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallelSubtest(t)
			pool := localPool(ns, tt.pool, 0, 0)
			tt.spec(&pool.Spec)
			h.create(t, pool)
			says(t, h.conditioned(t, pool, hivev1.PoolMissingDependencies, corev1.ConditionTrue).Message, tt.says...)
			h.create(t, tt.cure)
			began := time.Now()
			h.conditioned(t, pool, hivev1.PoolMissingDependencies, corev1.ConditionFalse)
			t.Logf("it healed after %.1fs", time.Since(began).Seconds())
		})
	}
	t.Run("other pools are none the worse", func(t *testing.T) {
		parallelSubtest(t)
		broken := localPool(ns, "broken", 3, 0)
		broken.Spec.ImageSetRef.Name = "e2e-never"
		h.create(t, broken)
		says(t, h.conditioned(t, broken, hivev1.PoolMissingDependencies, corev1.ConditionTrue).Message, `"e2e-never"`)
		says(t, broken.Status.Plan, "3 short", `"e2e-never" does not exist`)
		good := fakePool(ns, "good", 2, 1)
		h.create(t, good)
		h.settled(t, good)
		claim := claimOn(good, "mine")
		h.create(t, claim)
		h.served(t, claim)
	})
}

func TestAClaimOnAPoolThatDoesNotExistSaysSoAndIsServedWhenItDoes(t *testing.T) { // B13
	h := shared(t)
	pool := fakePool(h.namespace(t), "late", 1, 1)
	claim := claimOn(pool, "early")
	h.create(t, claim)
	c := h.conditioned(t, claim, hivev1.ClaimPending, corev1.ConditionTrue)
	if c.Reason != hivev1.ReasonPoolNotFound {
		t.Errorf("reason %q, want %q", c.Reason, hivev1.ReasonPoolNotFound)
	}
	says(t, c.Message, "spec.clusterPoolName", "does not exist", "create it, or delete the claim")
	refused(t, h.run(t, "", "claim", "create", "late", "-n", pool.Namespace), "no pool", `"late"`)

	h.create(t, pool)
	h.served(t, claim)
}

func TestWhatIsSetForGoodCannotBeChanged(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 1, 1)
	claim := claimOn(pool, "mine")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	for name, tt := range map[string]struct {
		patch string
		says  []string
	}{
		"the claim of a cluster":       {`{"spec":{"clusterPoolRef":{"claimName":"other"}}}`, []string{"spec.clusterPoolRef", "claimName cannot be changed once it is set"}},
		"when a cluster was claimed":   {`{"spec":{"clusterPoolRef":{"claimedTimestamp":"2026-01-01T00:00:00Z"}}}`, []string{"spec.clusterPoolRef", "claimedTimestamp cannot be changed once it is set"}},
		"since it is claimed":          {`{"spec":{"clusterPoolRef":{"claimedTimestamp":null}}}`, []string{"spec.clusterPoolRef", "claimedTimestamp cannot be changed once it is set"}},
		"that a cluster is claimed":    {`{"spec":{"clusterPoolRef":{"claimName":null}}}`, []string{"spec.clusterPoolRef", "claimName cannot be changed once it is set"}},
		"the pool of a cluster":        {`{"spec":{"clusterPoolRef":{"poolName":"other"}}}`, []string{"spec.clusterPoolRef", "a cluster stays in its pool"}},
		"that a cluster is of a pool":  {`{"spec":{"clusterPoolRef":null}}`, []string{"clusterPoolRef cannot be added or removed"}},
		"that a cluster is installed":  {`{"spec":{"installed":false}}`, []string{"installed cannot be set back to false", "delete the ClusterDeployment"}},
		"the name of a cluster":        {`{"spec":{"clusterName":"other"}}`, []string{"spec.clusterName", "clusterName cannot be changed", "create another"}},
		"the base domain of a cluster": {`{"spec":{"baseDomain":"other.example"}}`, []string{"spec.baseDomain", "baseDomain cannot be changed", "create another"}},
	} {
		t.Run(name, func(t *testing.T) {
			parallelSubtest(t)
			r := h.run(t, "", "kubectl", "patch", "cd", cd.Name, "-n", cd.Namespace, "--type=merge", "-p", tt.patch)
			refused(t, r, append(tt.says, cd.Name)...)
		})
	}
	t.Run("the cluster of a claim", func(t *testing.T) {
		parallelSubtest(t)
		refused(t, h.run(t, "", "kubectl", "patch", "clusterclaim", claim.Name, "-n", claim.Namespace, "--type=merge", "-p", `{"spec":{"namespace":"other"}}`),
			"spec.namespace", `"other"`, "remove it")
	})
}

func TestAProtectedClusterStaysUntilItsProtectionIsTakenAway(t *testing.T) {
	h := shared(t)
	pool := fakePool(h.namespace(t), "ci", 2, 1)
	claim, next := claimOn(pool, "mine"), claimOn(pool, "next")
	h.create(t, pool, claim)
	cd := h.served(t, claim)
	protect := func(value string) {
		h.kubectl(t, "annotate", "cd", cd.Name, "-n", cd.Namespace, "--overwrite", hivev1.AnnotationProtectedDelete+value)
	}
	protect("=true")
	refused(t, h.run(t, "", "kubectl", "delete", "cd", cd.Name, "-n", cd.Namespace),
		cd.Name+" is protected", "remove its annotation "+hivev1.AnnotationProtectedDelete)

	t.Log("its claim is released; the pool goes on serving others")
	h.delete(t, claim)
	h.create(t, next)
	h.served(t, next)
	h.settled(t, pool)
	if get(t, h, cd).DeletionTimestamp != nil {
		t.Error("the protected cluster is being deleted")
	}
	if get(t, h, claim).DeletionTimestamp == nil {
		t.Error("the claim is not being deleted")
	}

	protect("-")
	h.gone(t, claim)
	h.gone(t, cd)
}

func TestASecondHubOnAFolderIsRefused(t *testing.T) {
	h := shared(t)
	refused(t, h.run(t, "", "up", "--data-dir", h.dir), h.dir, "already", "pid "+strconv.Itoa(h.up.Process.Pid), "hotspare down --data-dir "+h.dir, "--data-dir")
	says(t, h.hotspare(t, "status"), h.url, "reachable")
}

func TestAPortThatIsTakenIsRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	h := &hub{dir: filepath.Join(t.TempDir(), "data")}
	for _, detach := range []string{"--detach=false", "--detach"} {
		refused(t, h.run(t, "", "up", "--port", port, detach), "port "+port+" is taken", "--port")
	}
	if err := h.silent(); err != nil {
		t.Error(err)
	}
}

func TestAPoolSaysThatItsInstallConfigIsNoYAMLAndHealsWhenItIs(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	const planted = "planted-template-value"
	template := secretOf(ns, "template", hivev1.SecretKeyInstallConfig, "pullSecret: "+planted+"\n  broken: [")
	bad, good := fakePool(ns, "bad", 1, 0), fakePool(ns, "good", 1, 0)
	bad.Spec.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: template.Name}
	h.create(t, template, bad, good)
	h.settled(t, good)
	eventually(t, "the pool says what is wrong", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(bad), bad); err != nil {
			return err
		}
		told := bad.Status.Plan
		for _, c := range bad.Status.Conditions {
			told += "\n" + c.Message
		}
		if strings.Contains(told, planted) {
			t.Errorf("a value of the Secret is told:\n%s", told)
		}
		for _, part := range []string{hivev1.SecretKeyInstallConfig, `"template"`} {
			if !strings.Contains(told, part) {
				return fmt.Errorf("nothing in the pool's status says %s:\n%s", part, told)
			}
		}
		return nil
	})

	get(t, h, template).StringData = map[string]string{hivev1.SecretKeyInstallConfig: "apiVersion: v1\n"}
	if err := h.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	h.settled(t, bad)
}
