package remote

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"hotspare.io/hotspare/internal/activity"
	"hotspare.io/hotspare/internal/power"
)

// longestIdle is the longest time of inactivity that is distinguished.
const longestIdle = 10 * 365 * 24 * time.Hour

// readActivity returns what the API server reports about the use of the cluster; nil if it reports nothing, or nothing
// sensible.
func (a *spokeClient) readActivity(ctx context.Context) *power.Activity {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := a.core.RESTClient().Get().AbsPath(activity.Path).DoRaw(ctx)
	if err != nil {
		return nil
	}
	var r *activity.Report
	if json.Unmarshal(raw, &r) != nil || r == nil || r.IdleSeconds < 0 || r.OpenRequests < 0 || r.Requests < 0 {
		return nil
	}
	return &power.Activity{
		Idle:     time.Duration(math.Min(r.IdleSeconds, longestIdle.Seconds()) * float64(time.Second)),
		Open:     r.OpenRequests,
		Requests: int(min(r.Requests, math.MaxInt32)),
	}
}
