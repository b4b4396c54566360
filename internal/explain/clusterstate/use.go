package clusterstate

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Use is when a claimed cluster was used, and when it hibernates because nobody uses it. It is part of the output of
// explain -o json.
type Use struct {
	// LastRequest is when the last request was seen; nil if none was seen since the cluster runs.
	LastRequest *time.Time `json:"lastRequest,omitempty"`
	// HibernateAfterInactivity is how long nobody uses the cluster before it hibernates, such as 30m0s.
	HibernateAfterInactivity string `json:"hibernateAfterInactivity,omitempty"`
	// HibernatesAt is when the cluster hibernates at the earliest; nil unless it runs.
	HibernatesAt *time.Time `json:"hibernatesAt,omitempty"`
	// HibernatesForInactivity is set while the cluster hibernates because nobody used it.
	HibernatesForInactivity bool `json:"hibernatesForInactivity,omitempty"`
}

// UseOf returns the use of a cluster whose pool has a limit of inactivity; nil if there is nothing to say.
func UseOf(cd *hivev1.ClusterDeployment, limit time.Duration) *Use {
	asleep := cd.Spec.PowerState == hivev1.PowerHibernating && strings.HasPrefix(cd.Annotations[hivev1.AnnotationInactivity], string(hivev1.PowerHibernating))
	ref, r := PoolReference(cd), cd.Status.PowerTransition
	if asleep {
		return &Use{HibernatesForInactivity: true, HibernateAfterInactivity: formatLimit(limit)}
	}
	if limit == 0 || ref.ClaimName == "" || r == nil || r.Target != hivev1.PowerRunning || r.FinishedAt == nil {
		return nil
	}
	u := &Use{HibernateAfterInactivity: formatLimit(limit)}
	since := r.FinishedAt.Time
	if t := ref.ClaimedTimestamp; t != nil && t.After(since) {
		since = t.Time
	}
	if r.LastRequestAt != nil {
		u.LastRequest = &r.LastRequestAt.Time
		if r.LastRequestAt.After(since) {
			since = r.LastRequestAt.Time
		}
	}
	at := since.Add(limit)
	u.HibernatesAt = &at
	return u
}

func formatLimit(limit time.Duration) string {
	if limit == 0 {
		return ""
	}
	return limit.String()
}

// InWords says it: "last request seen 12m ago; hibernates in 18m if no other follows".
func (u *Use) InWords(now time.Time) string {
	switch {
	case u == nil:
		return ""
	case u.HibernatesForInactivity:
		return "hibernates because nobody used it"
	}
	last := "no request seen since it has started"
	if u.LastRequest != nil {
		last = "last request seen " + duration.HumanDuration(max(now.Sub(*u.LastRequest), 0)) + " ago"
	}
	return last + "; hibernates in " + duration.HumanDuration(max(u.HibernatesAt.Sub(now), 0)) + " if no other follows"
}
