package simulate

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/sizing/demand"
)

func TestATraceOfARecordHasItsClaims(t *testing.T) {
	var h demand.History
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 8 {
		h.Add(fmt.Sprint(i), now.Add(time.Duration(i/4)*7*time.Minute), false, now)
	}
	h.Add("early", now.AddDate(0, 0, -60), false, now)
	h.AddGap(now.Add(-9*time.Hour), now.Add(-6*time.Hour))
	trace, err := NewTrace(&h)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trace.Claims); n != 9 {
		t.Fatalf("%d claims, want 9", n)
	}
	for i, c := range trace.Claims[1:] {
		together := i < 4 // four arrived within a minute
		if at := time.Unix(c.Arrived, 0); at.Equal(now) != together || at.Before(now) || !at.Before(now.Add(15*time.Minute)) {
			t.Errorf("claim %d at %s", i, at.UTC())
		}
	}
	if len(trace.Notes) != 2 {
		t.Errorf("notes %v", trace.Notes)
	}
}

// A ConfigMap that somebody has written may claim anything.
func TestARecordHasALargestNumberOfClaims(t *testing.T) {
	if _, err := newTrace([]demand.Bin{{Claims: 1}, {Start: 1, Claims: math.MaxUint32}}, 0); err == nil || !strings.Contains(err.Error(), "more than 50000000 claims") {
		t.Errorf("4,294,967,295 claims: %v", err)
	}
}
