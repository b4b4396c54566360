package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

func TestAClusterThatCannotHibernateIsCalledRunning(t *testing.T) {
	old := newCluster("old", "", hivev1.PowerHibernating, hivev1.StatusRunning)
	old.Spec.ClusterPoolRef = nil
	condition.Set(&old.Status.Conditions, hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonUnsupported, "OpenShift 4.3.0 does not survive hibernation.", now)
	r := newRig(t, interceptor.Funcs{}, old, secret("old"), newNamespace())
	for _, step := range []struct{ command, want string }{
		{"cluster list -A", "  Running  "},
		{"cluster describe old", "should be hibernating, is Running, and cannot hibernate: OpenShift 4.3.0 does not survive hibernation\n"},
		{"cluster hibernate old", "cluster old keeps running until it can hibernate: OpenShift 4.3.0 does not survive hibernation.\n\nUndo:\n  hotspare cluster resume old\n"},
		{"cluster hibernate old --wait", "cluster old cannot hibernate: OpenShift 4.3.0 does not survive hibernation\n"},
		{"cluster kubeconfig old", secretKubeconfig},
		{"cluster resume old", "resuming cluster old\n"},
		{"cluster resume old --wait", "cluster old is running\n"},
	} {
		r.run(strings.Fields(step.command)...)
		if said := r.stdout.String() + r.stderr.String(); !strings.Contains(said, step.want) || strings.Contains(said, "Stopping") || strings.Contains(said, "not running") {
			t.Errorf("%s: %s", step.command, said)
		}
	}
}
