package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestAnInstallFailureIsItsConditionWhileItIsTrue(t *testing.T) {
	for message, want := range map[string]string{
		"Quota is exceeded.": "Quota is exceeded",
		"":                   "",
	} {
		cd := &hivev1.ClusterDeployment{}
		cd.Status.Conditions = []hivev1.Condition{{Type: hivev1.ClusterProvisionFailed, Status: corev1.ConditionTrue, Message: message}}
		if got := installFailure(cd); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
		cd.Status.Conditions[0].Status = corev1.ConditionFalse
		if got := installFailure(cd); got != "" {
			t.Errorf("%q: of a success it says %q", message, got)
		}
	}
}
