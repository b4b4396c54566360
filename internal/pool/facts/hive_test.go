package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
)

// What the faults of Hive's power controller do to its pools, by the codes of
// docs/hive-parity.md.
var patient = pool.Settings{ResumeTimeout: 20 * time.Minute}

// D3: after a flip, no resume is ever broken to Hive's pool. To ours it is,
// whatever the condition says by then.
func TestD3AResumeThatTakesTooLongIsBrokenWhateverCameBefore(t *testing.T) {
	for _, reason := range []string{hivev1.ReasonResuming, hivev1.ReasonFailedToStart, hivev1.ReasonStopping, hivev1.ReasonFailedToStop} {
		cd := running(resuming(time.Hour), told(hivev1.ClusterHibernating, corev1.ConditionFalse, reason))
		for past, want := range map[time.Duration]pool.Phase{19 * time.Minute: pool.Standby, 20 * time.Minute: pool.Broken} {
			cd.Status.PowerTransition.StartedAt = metav1.NewTime(noon.Add(-past))
			if got := new(ReadMember(cd, noon)).Phase(&patient, noon); got != want {
				t.Errorf("with reason %s, after %s it is %s, want %s", reason, past, got, want)
			}
		}
	}
}

// D4: to Hive's pool a cluster whose node fails hours after its resume has timed
// out resuming, at once. To ours it has as long as a resume, from when it fails.
func TestD4LateTroubleCountsFromWhenItBegins(t *testing.T) {
	failed := told(hivev1.ClusterReady, corev1.ConditionFalse, hivev1.ReasonWaitingForNodes) // 20 minutes before noon
	cd := running(func(cd *hivev1.ClusterDeployment) {
		cd.Status.PowerState = hivev1.ReasonWaitingForNodes
		at := metav1.NewTime(noon.Add(-5 * time.Hour))
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: at, FinishedAt: &at}
	}, told(hivev1.ClusterHibernating, corev1.ConditionFalse, hivev1.ReasonRunning), failed)
	for now, want := range map[time.Time]pool.Phase{
		noon.Add(-20 * time.Minute): pool.Standby, noon.Add(-time.Second): pool.Standby, noon: pool.Broken,
	} {
		if got := new(ReadMember(cd, now)).Phase(&patient, now); got != want {
			t.Errorf("at %s it is %s, want %s", now.Format(time.TimeOnly), got, want)
		}
	}
}
