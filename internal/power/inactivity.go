package power

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Activity is what a cluster's API server reports about the requests that show that somebody uses the cluster.
type Activity struct {
	// Idle is the time since the last such request ended, or, if there was none, since the API server started or woke
	// up, by the monotonic clock of its process. It is 0 while a request is open.
	Idle time.Duration
	// Open is the number of requests that are open, such as watches, and Requests the number of requests since the API
	// server started or woke up.
	Open, Requests int
}

// isUsed reports whether somebody has used the cluster since it started or woke up.
func (a Activity) isUsed() bool { return a.Open > 0 || a.Requests > 0 }

// InactivityState is what a cluster does because of inactivity.
type InactivityState string

// The states; the zero value is neither.
const (
	// InactiveHibernating: it hibernates because nobody used it.
	InactiveHibernating InactivityState = "Hibernating"
	// InactiveWoken: it runs because a client connected, and no request has shown yet that somebody uses it.
	InactiveWoken InactivityState = "Woken"
)

// InactivityRecord is the annotation hotspare.io/inactivity: what a cluster does because of inactivity. It is written
// together with spec.powerState, so that no crash separates the state from its cause.
type InactivityRecord struct {
	State InactivityState
	// UnusedWakes counts the connections in a row that have woken the cluster, and that no request has followed.
	UnusedWakes int
}

// ParseInactivityRecord reads the annotation. A value that hotspare does not write is the zero record.
func ParseInactivityRecord(text string) InactivityRecord {
	state, number, found := strings.Cut(text, " ")
	r := InactivityRecord{State: InactivityState(state)}
	if r.State != InactiveHibernating && r.State != InactiveWoken {
		return InactivityRecord{}
	}
	if n, err := strconv.Atoi(number); found && err == nil && n > 0 {
		r.UnusedWakes = min(n, maxUnusedWakes)
	}
	return r
}

// String returns the annotation; "" for none.
func (r InactivityRecord) String() string {
	if r.UnusedWakes == 0 {
		return string(r.State)
	}
	return fmt.Sprintf("%s %d", r.State, r.UnusedWakes)
}

const (
	// unusedWakeLimit is how long a cluster stays awake after a connection that no request follows, as that of a port
	// scan. The client of a connection that was held sends its request at once.
	unusedWakeLimit = time.Minute
	// After freeWakes such wakes in a row, connections do not wake the cluster for a while: for firstWakePause, and
	// twice as long each further time, up to longestWakePause.
	freeWakes        = 3
	firstWakePause   = time.Minute
	longestWakePause = time.Hour
	// maxUnusedWakes is where counting stops.
	maxUnusedWakes = 20
	// lastRequestPrecision is by how much the time of the last request changes before it is written again.
	lastRequestPrecision = 5 * time.Second
	// activityRetryInterval is when hotspare asks again an API server that did not say whether anybody uses the cluster.
	activityRetryInterval = maxInterval
)

// NeedsActivity reports whether to ask the cluster whether anybody uses it.
func (s Snapshot) NeedsActivity() bool {
	return s.inactivityApplies() && s.HasComeUp()
}

func (s Snapshot) inactivityApplies() bool {
	return s.Limits.Inactivity > 0 && !s.ClaimedAt.IsZero() && !s.Fake && s.mayHibernateItself()
}

// applyInactivity hibernates a cluster that nobody uses, and wakes it when a client connects.
func (s Snapshot) applyInactivity(d Plan, now time.Time) Plan {
	d.Inactivity = s.Inactivity
	switch {
	case s.Deleted, !s.Installed, s.Paused:
		return d
	case s.WantsRunning():
		return s.hibernateIfInactive(d, now)
	default:
		return s.wakeIfConnected(d, now)
	}
}

// hibernateIfInactive requests hibernation if nobody has used a running cluster for long enough, and otherwise schedules
// the pass in which that may be so. What is not known never causes sleep.
func (s Snapshot) hibernateIfInactive(d Plan, now time.Time) Plan {
	activity := s.Spoke.Activity
	if d.Inactivity.State == InactiveHibernating || activity != nil && activity.isUsed() {
		d.Inactivity = InactivityRecord{} // somebody has woken it, or uses it
	}
	d.HoldAddress = s.needsHeldAddress(d.Record)
	if !s.inactivityApplies() || d.Action.SetsPowerState() || d.Record == nil || d.Record.FinishedAt == nil {
		return d
	}
	switch {
	case !s.HasComeUp(): // this pass reports that it has; the next one asks for the activity
		d.Next = nextPassDelay
	case activity != nil:
		d.Record = recordLastRequest(d.Record, *activity, now)
		return s.hibernateWhenDue(d, now)
	case d.Hibernating.Reason == hivev1.ReasonRunning:
		d.Hibernating.Message += " " + s.unknownActivityMessage()
	}
	if s.Spoke.ActivityFailure != "" && (d.Next == 0 || activityRetryInterval < d.Next) {
		d.Next = activityRetryInterval
	}
	return d
}

// needsHeldAddress reports whether connections to the API of a cluster that resumes are held until it runs.
func (s Snapshot) needsHeldAddress(r *hivev1.PowerTransition) bool {
	return s.HoldsAddresses && r != nil && r.FinishedAt == nil && (s.inactivityApplies() || s.Inactivity.State != "")
}

// hibernateWhenDue requests hibernation if the cluster was not used for long enough, and otherwise schedules the pass in
// which that may be so.
func (s Snapshot) hibernateWhenDue(d Plan, now time.Time) Plan {
	left := s.timeUntilInactive(d, now)
	switch {
	case left <= 0:
		d.Action = HibernateInactive
		unused := d.Inactivity.UnusedWakes
		if d.Inactivity.State == InactiveWoken {
			unused = min(unused+1, maxUnusedWakes)
		}
		d.Inactivity = InactivityRecord{State: InactiveHibernating, UnusedWakes: unused}
	case d.Next == 0 || left < d.Next:
		d.Next = left
	}
	return d
}

// timeUntilInactive returns how long the cluster must still be unused until it hibernates. It counts from the last
// request, by the clock of the cluster's API server, and from the claim and the resume, by the clock of the hub: one
// that jumps cannot make a cluster sleep that is used.
func (s Snapshot) timeUntilInactive(d Plan, now time.Time) time.Duration {
	limit := s.Limits.Inactivity
	if d.Inactivity.State == InactiveWoken {
		limit = min(limit, unusedWakeLimit)
	}
	activity := s.Spoke.Activity
	if activity.Open > 0 {
		return limit
	}
	return max(limit-activity.Idle, s.runningSince(d.Record).Add(limit).Sub(now))
}

func (s Snapshot) unknownActivityMessage() string {
	why := fmt.Sprintf("the platform %s does not report requests", s.Platform)
	switch {
	case s.Spoke.ActivityFailure != "":
		why = "hotspare could not ask its API server whether anybody uses it: " + s.Spoke.ActivityFailure
	case s.HoldsAddresses && s.Spoke.Reachable:
		why = "its API server does not report requests"
	case s.HoldsAddresses:
		why = "its API does not answer"
	}
	return fmt.Sprintf("It does not hibernate for inactivity: %s.", why)
}

// recordLastRequest records when the last request ended. A change of less than lastRequestPrecision is imprecision.
func recordLastRequest(old *hivev1.PowerTransition, a Activity, now time.Time) *hivev1.PowerTransition {
	if !a.isUsed() {
		return old
	}
	at := apiTime(now.Add(-a.Idle))
	if old.LastRequestAt != nil && at.Sub(old.LastRequestAt.Time).Abs() < lastRequestPrecision {
		return old
	}
	out := old.DeepCopy()
	out.LastRequestAt = &metav1.Time{Time: at.Time}
	return out
}

// wakeIfConnected wakes a cluster that hibernates because nobody used it, if a client connects. It does not end a
// hibernation that a user, a schedule or hibernateAfter wanted.
func (s Snapshot) wakeIfConnected(d Plan, now time.Time) Plan {
	if s.Inactivity.State != InactiveHibernating {
		d.Inactivity = InactivityRecord{}
		return d
	}
	if !s.HoldsAddresses {
		return d
	}
	isAsleep := d.Hibernating.Reason == hivev1.ReasonHibernating
	if pause := s.wakePauseLeft(d.Record, now); pause > 0 {
		if d.Next == 0 || pause < d.Next {
			d.Next = pause
		}
		if isAsleep {
			d.Hibernating.Message += fmt.Sprintf(" Nobody used it. Connections do not wake it for a while, because no request followed the last %d that did. "+
				"To wake it, set spec.powerState to Running.", s.Inactivity.UnusedWakes)
		}
		return d
	}
	d.HoldAddress = true
	if isAsleep {
		d.Hibernating.Message += " Nobody used it. A connection to its API wakes it."
	}
	if s.WaitingConnections > 0 {
		d.Action, d.Inactivity.State = Wake, InactiveWoken
	}
	return d
}

// wakePauseLeft returns for how long connections still do not wake the cluster; 0 if they do.
func (s Snapshot) wakePauseLeft(r *hivev1.PowerTransition, now time.Time) time.Duration {
	further := s.Inactivity.UnusedWakes - freeWakes
	if further < 0 || r == nil || r.Target != hivev1.PowerHibernating {
		return 0
	}
	pause := longestWakePause
	if further < 6 {
		pause = min(firstWakePause<<further, longestWakePause)
	}
	passed := now.Sub(r.StartedAt.Time)
	if passed < -time.Second { // the clock was set back: the record may start one second late, and no more
		return 0
	}
	return max(pause-passed, 0)
}

// AfterAddressFailure returns the plan after the address of the cluster could not be held.
func (p Plan) AfterAddressFailure(reason string) Plan {
	if p.Hibernating.Reason == hivev1.ReasonHibernating {
		p.Hibernating.Message += " Connections cannot wake it: " + reason + "."
	}
	return p
}
