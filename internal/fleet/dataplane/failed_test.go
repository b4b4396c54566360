package dataplane_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/dataplane"
)

// A restored hub may have a data plane as Failed that has live instances.
func TestAFailedDataPlaneThatIsKeptSaysWhoCanEndThat(t *testing.T) {
	s := seen(edits(ready, failed, answered, later(2*time.Minute))...)
	p := dataplane.Decide(s)
	for kind, words := range map[string]string{
		v1alpha1.DataPlaneReady: "Its cluster is kept: see condition InstancesListed.", v1alpha1.DataPlaneInstancesListed: "spec.discardUnlisted",
	} {
		if c := meta.FindStatusCondition(p.Status.Conditions, kind); c == nil || !strings.Contains(c.Message, words) {
			t.Errorf("condition %s is %+v, without %q", kind, c, words)
		}
	}
	s.Plane = s.Plane.DeepCopy()
	s.Plane.Status, s.Plane.Spec.DiscardUnlisted = p.Status, true
	p = dataplane.Decide(s)
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.DataPlaneReady); c == nil || c.Reason != "ProvisionTimedOut" || strings.Contains(c.Message, "kept") {
		t.Errorf("when it is given up, condition Ready is %+v", c)
	}
}
