package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
)

// unpackBundle returns the files of a bundle, by their names in its folder.
func unpackBundle(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out, archive := map[string]string{}, tar.NewReader(unpacked)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		out[name] = string(raw)
	}
}

// A spare whose gate stays red is diagnosed before the pool replaces it, without the value of a Secret that appears
// in conditions; a bundle that is too old is deleted.
func TestABrokenSpareLeavesABundle(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	const password = "opensesame-4711"
	folder := filepath.Join(h.dir, "diagnostics")
	old := filepath.Join(folder, "old-gate-20200101T000000Z-0a1b2c3d.tar.gz")
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(old, nil, 0o600), os.Chtimes(old, time.Time{}, time.Now().Add(-8*24*time.Hour))); err != nil {
		t.Fatal(err)
	}
	pool := localPool(ns, "dev", 1, 1)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "exposed"}, StringData: map[string]string{
		"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: exposed, namespace: default}\nstringData: {a: " + password + "}\n",
	}}
	gated := &v1alpha1.ClusterBootstrap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gated"}, Spec: v1alpha1.ClusterBootstrapSpec{
		CheckInterval: "1s", GateTimeout: "2m",
		Steps: []v1alpha1.BootstrapStep{{Name: "s", Manifests: &v1alpha1.BootstrapManifests{From: []v1alpha1.ManifestSource{{SecretRef: &v1alpha1.ManifestReference{Name: "exposed"}}}}}},
		Gates: []v1alpha1.Gate{{Name: "web", Type: v1alpha1.GateObject, Object: &v1alpha1.GateObjectCheck{
			APIVersion: "v1", Kind: "Namespace", Name: "default", Expression: "has(object.data)", Message: "the site refuses " + password,
		}}},
	}}
	policy := &v1alpha1.PoolPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "dev"},
		Spec:       v1alpha1.PoolPolicySpec{BootstrapRef: &v1alpha1.BootstrapReference{Name: "gated"}},
	}
	h.create(t, secret, gated, policy, pool)
	spare := h.gatesAre(t, pool, "", corev1.ConditionFalse, "the site refuses")
	h.kubectl(t, "annotate", "clusterdeployment", spare.Name, "-n", spare.Namespace, hivev1.AnnotationProtectedDelete+"=true") // until the bundle is read

	t.Log("the condition names the bundle")
	idle(func() {
		eventually(t, "the cluster has a bundle", func(ctx context.Context) error {
			if err := h.Get(ctx, client.ObjectKeyFromObject(spare), spare); err != nil {
				return err
			}
			c := condition.Find(spare.Status.Conditions, hivev1.ClusterDiagnosed)
			if c == nil || c.Reason != hivev1.ReasonBundleWritten {
				return fmt.Errorf("the condition is %+v", c)
			}
			return nil
		})
	})
	uid, _, _ := strings.Cut(string(spare.UID), "-")
	found, err := filepath.Glob(filepath.Join(folder, spare.Name+"-gate-*-"+uid+".tar.gz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("bundles: %v, %v", found, err)
	}
	says(t, condition.Find(spare.Status.Conditions, hivev1.ClusterDiagnosed).Message, path.Base(found[0]))
	files := unpackBundle(t, found[0])
	says(t, files["summary.txt"], "Cause:     a gate failed: ", "the site refuses REDACTED", "nodes are ready")
	says(t, files["hub/clusterdeployment.yaml"], "kind: ClusterDeployment", spare.Name)
	for _, name := range []string{"conditions.txt", "hub/pool.yaml", "hub/bootstrap.yaml", "hub/events.txt", "logs/install.log", "cluster/nodes.yaml"} {
		if files[name] == "" {
			t.Errorf("the bundle lacks %s", name)
		}
	}
	secrets := h.credentials(t, spare)
	secrets["the Secret of the bootstrap"], secrets["the same, encoded"] = password, base64.StdEncoding.EncodeToString([]byte(password))
	for name, content := range files {
		for what, value := range secrets {
			if strings.Contains(content, value) {
				t.Errorf("%s contains %s", name, what)
			}
		}
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the bundle of eight days ago remains: %v", err)
	}

	t.Log("diagnose writes the same on request, and overwrites nothing")
	file := filepath.Join(t.TempDir(), "now.tar.gz")
	says(t, h.hotspare(t, "cluster", "diagnose", spare.Name, "-o", file), file+" written", "Diagnostics of cluster "+spare.Namespace+"/"+spare.Name)
	for name, content := range unpackBundle(t, file) {
		if strings.Contains(content, password) {
			t.Errorf("%s contains the password", name)
		}
	}
	if r := h.run(t, "", "cluster", "diagnose", spare.Name, "-o", file); r.code != 1 || !strings.Contains(r.all(), "exists already") {
		t.Errorf("exit code %d: %s", r.code, r.all())
	}

	t.Log("the pool replaces the cluster, and the bundle remains")
	h.kubectl(t, "annotate", "clusterdeployment", spare.Name, "-n", spare.Namespace, hivev1.AnnotationProtectedDelete+"-")
	idle(func() { h.gone(t, spare) })
	if _, err := os.Stat(found[0]); err != nil {
		t.Error(err)
	}
	h.eventsSay(t, ns, "BundleWritten", path.Base(found[0]))
	h.hotspare(t, "pool", "delete", "dev", "-n", ns)
}

// The user of a claim whose job failed releases it with --diagnose: the cluster is destroyed when its bundle is stored.
func TestAReleaseLeavesABundleOnRequest(t *testing.T) {
	h := shared(t)
	ns := h.namespace(t)
	pool := fakePool(ns, "dev", 2, 2)
	h.create(t, pool)
	h.hotspare(t, "claim", "create", "dev", "--name", "mine", "--wait", "-n", ns)
	var claim hivev1.ClusterClaim
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "mine"}, &claim); err != nil {
		t.Fatal(err)
	}
	cluster := &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Spec.Namespace, Name: claim.Spec.Namespace}}
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	h.hotspare(t, "claim", "release", "mine", "--diagnose", "-n", ns)
	h.gone(t, cluster)
	uid, _, _ := strings.Cut(string(cluster.UID), "-")
	found, err := filepath.Glob(filepath.Join(h.dir, "diagnostics", cluster.Name+"-release-*-"+uid+".tar.gz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("bundles: %v, %v", found, err)
	}
	says(t, unpackBundle(t, found[0])["hub/claim.yaml"], "kind: ClusterClaim", "name: mine")
	h.eventsSay(t, ns, "BundleWritten", "clusterclaim/mine", "clusterpool/dev", path.Base(found[0]))
	h.hotspare(t, "claim", "create", "dev", "--count", "2", "--all-or-none", "--name", "both", "--wait", "-n", ns)
	var set v1alpha1.ClaimSet
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "both"}, &set); err != nil {
		t.Fatal(err)
	}
	h.hotspare(t, "claimset", "release", "both", "--diagnose", "--wait", "-n", ns)
	for _, c := range set.Status.Claims {
		if found, err := filepath.Glob(filepath.Join(h.dir, "diagnostics", c.Cluster+"-release-*.tar.gz")); err != nil || len(found) != 1 {
			t.Errorf("bundles of cluster %s of the set: %v, %v", c.Cluster, found, err)
		}
	}
	h.hotspare(t, "pool", "delete", "dev", "-n", ns)
}
