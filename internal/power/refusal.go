package power

import (
	"strings"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

// maxRefusalDelay bounds the pauses between attempts that a platform refuses.
const maxRefusalDelay = 5 * time.Minute

// Failure is an error of a platform, as a value. Its message holds no secrets:
// platforms see to that.
type Failure struct {
	Kind    fault.Kind
	After   time.Duration
	Message string
}

// NewFailure describes err, in one line; nil for nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{Kind: fault.KindOf(err), After: fault.RetryAfter(err), Message: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

func (f Failure) unobservedMessage() string {
	return "The machines cannot be observed: " + f.Message + "."
}

// AfterRefusal is the decision after the platform has refused to start or stop the
// machines. Being too early is no refusal: platforms want a machine to have
// stopped before it is started.
func (d Plan) AfterRefusal(f Failure, now time.Time) Plan {
	r := record{PowerTransition: *d.Record.DeepCopy()}
	if f.Kind == fault.Wait {
		d.Next = r.capAtDeadline(f.retryDelay(d.Next), now)
		return d
	}
	r.Attempts++
	r.LastError = f.Message
	d.Record, d.Next = r.toTransition(), r.capAtDeadline(f.retryDelay(minGraveInterval<<min(r.Attempts-1, 6)), now)

	g := gap{reason: d.Ready.Reason, message: d.Ready.Message}
	if d.Act == Start {
		d.State = failedToStartState(g, r.refusalMessage("Resuming", "start", now))
		return d
	}
	d.State = failedToStopState(r.refusalMessage("Stopping", "stop", now))
	return d
}

// refusalMessage tells of the last error, and that time is up if it is.
func (r record) refusalMessage(doing, verb string, now time.Time) string {
	why := "The machines do not " + verb + ": " + r.LastError + "."
	if !r.isOverdue(now) {
		return why
	}
	return timedOutMessage(doing, r.Deadline.Sub(r.StartedAt.Time), why)
}

// retryDelay is how long to wait after f: as the platform says, or as long as otherwise.
func (f Failure) retryDelay(otherwise time.Duration) time.Duration {
	switch {
	case f.Kind == fault.Denied:
		return maxRefusalDelay
	case f.After > 0:
		return min(f.After, maxRefusalDelay)
	default:
		return min(otherwise, maxRefusalDelay)
	}
}
