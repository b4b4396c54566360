package base

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"k8s.io/apimachinery/pkg/util/duration"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// describeQueuePosition returns the position of a waiting claim in the queue, such as "2nd", and
// the time until its cluster is expected, such as "in 3m". Both may be empty.
func describeQueuePosition(c *hivev1.ClusterClaim, now time.Time) (nth, when string) {
	if c.Status.Position == nil {
		return "", ""
	}
	nth = humanize.Ordinal(int(*c.Status.Position))
	ready := c.Status.EstimatedReadyTime
	switch {
	case ready == nil:
		return nth, ""
	case ready.After(now):
		return nth, "in " + duration.HumanDuration(ready.Sub(now))
	case now.Sub(ready.Time) < time.Second:
		return nth, "now"
	default:
		return nth, "overdue by " + duration.HumanDuration(now.Sub(ready.Time))
	}
}

// formatQueuePosition returns the queue position of a claim for tables, such as "2nd, in 3m".
func formatQueuePosition(c *hivev1.ClusterClaim, now time.Time) string {
	nth, when := describeQueuePosition(c, now)
	if when == "" {
		return ValueOrNone(nth)
	}
	return nth + ", " + when
}

// DescribeClaimProgress returns the state of a claim and the reason for it.
func DescribeClaimProgress(c *hivev1.ClusterClaim, now time.Time) string {
	state, typ := clusterstate.OfClaim(c), hivev1.ClaimClusterRunning
	switch state {
	case clusterstate.Running:
		return state + " on " + c.Spec.Namespace
	case clusterstate.Waiting:
		typ = hivev1.ClaimPending
		switch nth, when := describeQueuePosition(c, now); {
		case when != "":
			return fmt.Sprintf("%s (%s in line, cluster expected: %s)", state, nth, when)
		case nth != "":
			return fmt.Sprintf("%s (%s in line)", state, nth)
		}
	}
	if found := condition.Find(c.Status.Conditions, typ); found != nil && found.Message != "" {
		return fmt.Sprintf("%s (%s)", state, found.Message)
	}
	return state
}

// DescribePower returns the desired and the actual power state of a cluster.
func DescribePower(cd *hivev1.ClusterDeployment) string {
	wanted := cd.Spec.PowerState
	if wanted == "" {
		wanted = hivev1.PowerRunning
	}
	words := "should be " + strings.ToLower(string(wanted))
	switch is := cd.Status.PowerState; is {
	case "":
		words += ", current state not known yet"
	case string(wanted):
		words += ", and is"
	default:
		words += ", is " + is
	}
	if depth := clusterstate.SleepDepth(cd); depth != "" && wanted == hivev1.PowerHibernating {
		words += ", at depth " + depth
	}
	if why := CannotHibernateReason(cd); why != "" && wanted == hivev1.PowerHibernating {
		return words + ", and cannot hibernate: " + strings.TrimSuffix(why, ".")
	}
	if t := cd.Status.PowerTransition; t != nil && t.FinishedAt == nil && t.LastError != "" {
		words += ": " + t.LastError
	}
	return words
}

// CannotHibernateReason returns why the cluster cannot hibernate; "" if it can.
func CannotHibernateReason(cd *hivev1.ClusterDeployment) string {
	if !clusterstate.IsHibernationUnsupported(cd) {
		return ""
	}
	return condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating).Message
}
