package base

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestQueuePosition(t *testing.T) {
	at := func(d time.Duration) *metav1.Time { out := metav1.NewTime(now.Add(d)); return &out }
	tests := map[string]struct {
		position int32
		ready    *metav1.Time
		want     string
	}{
		"a claim without a position in its status": {0, nil, "-"},
		"a position without an estimated time":     {2, nil, "2nd"},
		"a cluster is expected":                    {1, at(3 * time.Minute), "1st, in 3m"},
		"the expected time has passed":             {11, at(-20 * time.Second), "11th, overdue by 20s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &hivev1.ClusterClaim{Status: hivev1.ClusterClaimStatus{EstimatedReadyTime: tc.ready}}
			if tc.position > 0 {
				c.Status.Position = &tc.position
			}
			if got := formatQueuePosition(c, now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
