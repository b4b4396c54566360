package pool

import (
	"testing"
	"time"

	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/sizing/report"
)

// A frozen spare resumes within a second. Most clusters of its pool do not.
func TestAnEstimateTakesResumesFromStop(t *testing.T) {
	install, resume := findMedians([]pool.Member{
		{InstallTook: 40 * time.Minute, ResumeTook: 5 * time.Minute, ResumedFrom: pool.DepthStop},
		{ResumeTook: 4 * time.Minute}, // from before depths were recorded
		{ResumeTook: time.Second, ResumedFrom: pool.DepthFreeze},
		{ResumeTook: time.Second, ResumedFrom: pool.DepthFreeze},
		{ResumeTook: time.Minute, ResumedFrom: pool.DepthSuspend},
	})
	if install != 40*time.Minute || resume != 5*time.Minute {
		t.Errorf("install %s, resume %s", install, resume)
	}
}

func TestAReportSaysOfHowManyClaimsTheWaitsAreKnown(t *testing.T) {
	for want, c := range map[string]report.Claims{
		"7":                             {Total: 7},
		"10: 9 at once (90%), 1 waited": {Total: 10, Served: 10, AtOnce: 9, AtOnceShare: 0.9},
		"900, of which the waits of 10 are known: 9 at once (90%), 1 waited": {Total: 900, Served: 10, AtOnce: 9, AtOnceShare: 0.9},
		"10: 8 at once (80%), 1 waited, 1 deleted before they got a cluster": {Total: 10, Served: 9, Unserved: 1, AtOnce: 8, AtOnceShare: 0.8},
	} {
		if got := describeClaims(c); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
