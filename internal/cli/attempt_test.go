package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

func failingInstall(name string) *hivev1.ClusterDeployment {
	cd := &hivev1.ClusterDeployment{ObjectMeta: aged("default", name, time.Hour)}
	condition.Set(&cd.Status.Conditions, hivev1.ClusterProvisionFailed, corev1.ConditionTrue, "RecipeFailed", "create exited with code 1.", now)
	return cd
}

func failedAttempt(cluster string, n int, ago time.Duration) *hivev1.ClusterProvision {
	cp := attempt(cluster, n, "")
	cp.Spec.Stage = hivev1.StageFailed
	condition.Set(&cp.Status.Conditions, hivev1.ProvisionFailed, corev1.ConditionTrue, "RecipeFailed", "", now.Add(-ago))
	return cp
}

func TestTheTimeOfTheNextAttemptIsPrinted(t *testing.T) {
	stopped := failingInstall("bare")
	condition.Set(&stopped.Status.Conditions, hivev1.ClusterProvisionStopped, corev1.ConditionTrue, hivev1.ReasonInstallAttemptsUsedUp, "", now)
	installed := failingInstall("bare")
	installed.Spec.Installed = true
	running := attempt("bare", 1, "")
	running.Spec.Stage = hivev1.StageProvisioning
	for name, c := range map[string]struct {
		cluster  *hivev1.ClusterDeployment
		attempts []client.Object
		want     string // of the row; "" for none
	}{
		"after the first attempt":    {failingInstall("bare"), []client.Object{failedAttempt("bare", 0, 20*time.Second)}, "in 40s"},
		"after the third attempt":    {failingInstall("bare"), []client.Object{failedAttempt("bare", 1, time.Hour), failedAttempt("bare", 2, time.Minute)}, "in 3m"},
		"the attempt is overdue":     {failingInstall("bare"), []client.Object{failedAttempt("bare", 0, time.Hour)}, "as soon as the last one is cleaned up and all requirements are met"},
		"of another cluster":         {failingInstall("bare"), []client.Object{failedAttempt("other", 0, 0)}, ""},
		"an attempt is in progress":  {failingInstall("bare"), []client.Object{failedAttempt("bare", 0, 0), running}, ""},
		"no further attempt follows": {stopped, []client.Object{failedAttempt("bare", 0, 0)}, ""},
		"it is installed":            {installed, []client.Object{failedAttempt("bare", 0, 0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, interceptor.Funcs{}, append(c.attempts, c.cluster)...)
			for _, command := range []string{"cluster describe bare", "explain cluster bare"} {
				code, got := r.run(strings.Fields(command)...), ""
				for line := range strings.Lines(r.stdout.String()) {
					if rest, found := strings.CutPrefix(line, "Next attempt"); found {
						got = strings.TrimSpace(rest)
					}
				}
				if code != 0 || got != c.want {
					t.Errorf("%s: exit code %d, next attempt %q, want %q\n%s%s", command, code, got, c.want, r.stdout.String(), r.stderr.String())
				}
			}
		})
	}
}

func TestAClaimWhoseClusterDoesNotStopIsExplained(t *testing.T) {
	for state, c := range map[string]struct{ reason, power, remedy string }{
		"Stopping": {hivev1.ReasonStopping, hivev1.ReasonWaitingToStop, "It hibernates when its machines have stopped."},
		"Failed":   {hivev1.ReasonFailedToStop, hivev1.ReasonFailedToStop, "See why its cluster does not stop."},
	} {
		t.Run(state, func(t *testing.T) {
			cl := claimOn("dev", "eve", "dev-5eeee")
			condition.Set(&cl.Status.Conditions, hivev1.ClaimClusterRunning, corev1.ConditionFalse, c.reason, "Cluster does not run", now)
			cd := newCluster("dev-5eeee", "eve", hivev1.PowerHibernating, c.power)
			condition.Set(&cd.Status.Conditions, hivev1.ClusterHibernating, corev1.ConditionFalse, c.reason, "The machines do not stop.", now)
			r := newRig(t, interceptor.Funcs{}, append(world(), cl, cd)...)
			if code := r.run("explain", "claim", "eve"); code != 0 {
				t.Fatalf("exit code %d: %s", code, r.stderr.String())
			}
			out := r.stdout.String()
			if !strings.Contains(out, c.remedy) || strings.Contains(out, "Resuming") || strings.Contains(out, "served automatically") {
				t.Errorf("got:\n%s", out)
			}
			lines := map[string]string{}
			for line := range strings.Lines(out) {
				key, value, _ := strings.Cut(line, " ")
				lines[key] = strings.TrimSpace(value)
			}
			if lines["State"] != state {
				t.Errorf("the state is %q, want %q:\n%s", lines["State"], state, out)
			}
		})
	}
}
