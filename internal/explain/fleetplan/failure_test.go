package fleetplan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
)

func TestAnInstanceThatFailsIsExplained(t *testing.T) {
	const edit, remove = "hotspare -n team-a kubectl edit serviceinstance x", "hotspare -n team-a kubectl delete serviceinstance x"
	for name, c := range map[string]struct {
		phase  v1alpha1.InstancePhase
		reason string
		want   string
	}{
		"refused by the API":               {v1alpha1.InstanceFailed, v1alpha1.ReasonNotApplied, "x: Correct its spec.parameters, or delete the instance. " + edit},
		"parameters that are no object":    {v1alpha1.InstanceFailed, v1alpha1.ReasonInvalidParameters, "x: Correct its spec.parameters, or delete the instance. " + edit},
		"a namespace of somebody else":     {v1alpha1.InstanceFailed, v1alpha1.ReasonNamespaceTaken, "x: Delete the namespace that the instance needs on its data plane, or delete the instance and create another. " + remove},
		"a data plane that does not exist": {v1alpha1.InstanceFailed, v1alpha1.ReasonDataPlaneGone, "x: Delete the instance, and create another. " + remove},
		"what its operator says":           {v1alpha1.InstanceFailed, "Broken", "x: Correct the problem that its data plane reports, or delete the instance and create another. " + edit},
		"refused, and retried": {
			v1alpha1.InstanceProvisioning, v1alpha1.ReasonNotApplied, "x: Its data plane refuses an object of the instance, and its agent retries: " +
				"correct the field that condition Ready names. hotspare -n team-a kubectl describe serviceinstance x",
		},
		"one that is being made is not": {v1alpha1.InstanceProvisioning, v1alpha1.ReasonInstanceProvisioning, ""},
		"one that is in use is not":     {v1alpha1.InstanceReady, v1alpha1.ReasonInstanceReady, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := small()
			h.plane("a", v1alpha1.PhaseReady, 4)
			i := h.instance("x", "x1", "a")
			i.Status.Phase, i.Status.Units = c.phase, 1
			i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.InstanceIsReady, Reason: c.reason, Message: "it is so."}}
			r := h.laptop()
			var got []string
			act, _ := r.ListTasks()
			for _, do := range act {
				got = append(got, fmt.Sprintf("%s: %s %s", strings.TrimPrefix(do.For[0], "team-a/"), do.Text, do.Command))
			}
			if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
			if c.want != "" && (len(r.Failures) != 1 || r.Failures[0].Message != "it is so" || r.Failures[0].DataPlane != "a") {
				t.Errorf("the failures are %+v", r.Failures)
			}
		})
	}
}

func TestAFailureOfAnotherRegionIsNotExplained(t *testing.T) {
	h := small()
	i := h.instance("x", "x1", "a")
	i.Spec.Region, i.Status.Phase = "elsewhere", v1alpha1.InstanceFailed
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.InstanceIsReady, Reason: "Broken"}}
	if r := h.laptop(); len(r.Failures) != 0 {
		t.Errorf("the failures are %+v", r.Failures)
	}
}
