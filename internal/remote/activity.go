package remote

import (
	"context"
	"encoding/json"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hotspare.io/hotspare/internal/activity"
	"hotspare.io/hotspare/internal/power"
)

// longestIdle is the longest time of inactivity that is distinguished.
const longestIdle = 10 * 365 * 24 * time.Hour

// readActivity returns what the API server reports about the use of the cluster, except by service accounts of ignored
// namespaces; nil if it reports nothing, or nothing sensible. failure says why it could not be asked, in a few stable words.
func (sc *spokeClient) readActivity(ctx context.Context, ignored []string) (a *power.Activity, failure string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	raw, err := sc.core.RESTClient().Get().AbsPath(activity.Path).DoRaw(ctx)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, ""
	case err != nil:
		return nil, describeNoAnswer(err)
	}
	var r *activity.Report
	if json.Unmarshal(raw, &r) != nil || r == nil || !r.IsSensible() {
		return nil, ""
	}
	c := r.Without(ignored)
	return &power.Activity{
		Idle:     time.Duration(math.Min(c.IdleSeconds, longestIdle.Seconds()) * float64(time.Second)),
		Open:     c.OpenRequests,
		Requests: int(min(c.Requests, math.MaxInt32)),
	}, ""
}
