package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// What is told of a failure is read when the cluster and its log are gone.
func TestAFailureIsToldWithoutItsLog(t *testing.T) {
	for message, want := range map[string]string{
		"Attempt 0 failed: port 6443 is taken; ClusterProvision p-1-0-abcde has the log.":                  "port 6443 is taken",
		"Attempt 12 failed: it failed: ask; ClusterProvision x says so; ClusterProvision p-1 has the log.": "it failed: ask; ClusterProvision x says so",
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
