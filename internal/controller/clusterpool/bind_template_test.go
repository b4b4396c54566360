package clusterpool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// B22: an edit that makes no cluster stale reaches the clusters that exist.
func TestAClusterFollowsItsPool(t *testing.T) {
	cd := clusterBuilder{pool: readPool(t, everything), version: "v9"}.newClusterDeployment("p-1")
	cd.Labels["theirs"], cd.Annotations["theirs"] = "kept", "kept"
	before := asYAML(t, cd)

	p := readPool(t, everything)
	syncTemplate(p, cd)
	if diff := cmp.Diff(before, asYAML(t, cd)); diff != "" {
		t.Errorf("nothing was edited: %s", diff)
	}

	edited := readPool(t, `
metadata: {namespace: pools, name: p}
spec:
  labels: {team: b, more: x, hive.openshift.io/clusterpool-namespace: others, bad: "no label", "bad key": x}
  annotations: {note: c, hive.openshift.io/fake-cluster: "true", hive.openshift.io/cluster-pool-spec-hash: x, "bad key": x}
  pullSecretRef: {name: another}
  hibernateAfter: 9h
  powerstateTransitionToRunningTimeout: 20m
  powerstateTransitionToHibernatingTimeout: 1w
  installAttemptsLimit: 9
`)
	syncTemplate(edited, cd)
	want := clusterBuilder{pool: readPool(t, everything), version: "v9"}.newClusterDeployment("p-1")
	want.Labels["theirs"], want.Annotations["theirs"] = "kept", "kept"
	want.Labels["team"], want.Labels["more"], want.Annotations["note"] = "b", "x", "c"
	*want.Spec.HibernateAfter, *want.Spec.PowerstateTransitionToRunningTimeout = "9h", "20m"
	if diff := cmp.Diff(asYAML(t, want), asYAML(t, cd)); diff != "" {
		t.Error(diff)
	}
	if edited.Spec.HibernateAfter == cd.Spec.HibernateAfter {
		t.Error("the cluster shares a value with its pool")
	}
}
