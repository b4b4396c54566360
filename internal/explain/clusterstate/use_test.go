package clusterstate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestTheUseOfACluster(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(span time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-span)} }
	runs := func(last *metav1.Time) *hivev1.ClusterDeployment {
		cd := &hivev1.ClusterDeployment{}
		cd.Spec.ClusterPoolRef = &hivev1.ClusterPoolReference{PoolName: "dev", ClaimName: "mine", ClaimedTimestamp: ago(20 * time.Minute)}
		cd.Status.PowerTransition = &hivev1.PowerTransition{Target: hivev1.PowerRunning, StartedAt: *ago(time.Hour), FinishedAt: ago(time.Hour), LastRequestAt: last}
		return cd
	}
	asleep := runs(nil)
	asleep.Spec.PowerState, asleep.Annotations = hivev1.PowerHibernating, map[string]string{hivev1.AnnotationInactivity: "Hibernating 2"}
	byHand := runs(nil)
	byHand.Spec.PowerState, byHand.Status.PowerTransition.Target = hivev1.PowerHibernating, hivev1.PowerHibernating
	unclaimed := runs(nil)
	unclaimed.Spec.ClusterPoolRef.ClaimName = ""
	for name, tc := range map[string]struct {
		cd    *hivev1.ClusterDeployment
		limit time.Duration
		want  string
	}{
		"used":                  {runs(ago(12 * time.Minute)), 30 * time.Minute, "last request seen 12m ago; hibernates in 18m if no other follows"},
		"not used yet":          {runs(nil), 30 * time.Minute, "no request seen since it has started; hibernates in 10m if no other follows"},
		"used before its claim": {runs(ago(50 * time.Minute)), 30 * time.Minute, "last request seen 50m ago; hibernates in 10m if no other follows"},
		"overdue":               {runs(ago(40 * time.Minute)), time.Minute, "last request seen 40m ago; hibernates in 0s if no other follows"},
		"asleep":                {asleep, 0, "hibernates because nobody used it"},
		"asleep by hand":        {byHand, 30 * time.Minute, ""},
		"without a limit":       {runs(ago(time.Minute)), 0, ""},
		"unclaimed":             {unclaimed, 30 * time.Minute, ""},
	} {
		if got := UseOf(tc.cd, tc.limit).InWords(now); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
