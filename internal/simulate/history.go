package simulate

import (
	"fmt"
	"slices"
	"time"

	"hotspare.io/hotspare/internal/sizing/demand"
)

// NewTrace returns the claims of a record. The record has no times within a quarter of an hour: as many
// claims as it says arrive in one minute, and the others are spread evenly. How long claims kept their
// clusters, it does not know.
//
// An error means that the record has more claims than a trace may have.
func NewTrace(h *demand.History) (Trace, error) { return newTrace(h.Bins(), len(h.Gaps())) }

func newTrace(bins []demand.Bin, gaps int) (Trace, error) {
	var out Trace
	for _, b := range bins {
		if len(out.Claims)+int(b.Claims) > maxClaims {
			return Trace{}, fmt.Errorf("the record has more than %d claims until %s: it cannot be replayed", maxClaims, b.Begin().Add(b.Length()).Format(time.RFC3339))
		}
		n, together := int(b.Claims), min(int(b.Peak), int(b.Claims))
		step := b.Length() / time.Duration(max(n-together+1, 1))
		for i := range n {
			at := b.Begin()
			if i >= together {
				at = at.Add(step * time.Duration(i-together+1))
			}
			out.Claims = append(out.Claims, Claim{Arrived: at.Unix()})
		}
	}
	slices.SortStableFunc(out.Claims, func(a, b Claim) int { return int(max(-1, min(1, a.Arrived-b.Arrived))) })
	out.addNote("the record has quarters of an hour, and hours of claims older than 28 days: claims within one were spread")
	if gaps > 0 {
		out.addNote("%d gaps in which hotspare did not run: they count as times without claims", gaps)
	}
	return out, nil
}
