package power

import (
	"strings"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

// maxRefusalWait bounds the pauses between attempts that a platform refuses.
const maxRefusalWait = 5 * time.Minute

// Failure is an error of a platform, as a value. Its message holds no secrets:
// platforms see to that.
type Failure struct {
	Kind    fault.Kind
	After   time.Duration
	Message string
}

// FailureOf describes err, in one line; nil for nil.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{Kind: fault.Of(err), After: fault.After(err), Message: strings.ReplaceAll(err.Error(), "\n", "; ")}
}

func (f Failure) unobserved() string { return "The machines cannot be observed: " + f.Message + "." }

// Refused is the decision after the platform has refused to start or stop the
// machines. Being too early is no refusal: platforms want a machine to have
// stopped before it is started.
func (d Decision) Refused(f Failure, now time.Time) Decision {
	r := record{PowerTransition: *d.Record.DeepCopy()}
	if f.Kind == fault.Wait {
		d.Next = r.within(f.pause(d.Next), now)
		return d
	}
	r.Attempts++
	r.LastError = f.Message
	d.Record, d.Next = r.stored(), r.within(f.pause(graveFastest<<min(r.Attempts-1, 6)), now)

	g := gap{reason: d.Ready.Reason, message: d.Ready.Message}
	if d.Act == Start {
		d.State = failedToStart(g, r.refusal("Resuming", "start", now))
		return d
	}
	d.State = failedToStop(r.refusal("Stopping", "stop", now))
	return d
}

// refusal tells of the last error, and that time is up if it is.
func (r record) refusal(doing, verb string, now time.Time) string {
	why := "The machines do not " + verb + ": " + r.LastError + "."
	if !r.overdue(now) {
		return why
	}
	return timedOut(doing, r.Deadline.Sub(r.StartedAt.Time), why)
}

// pause is how long to wait after f: as the platform says, or as long as otherwise.
func (f Failure) pause(otherwise time.Duration) time.Duration {
	switch {
	case f.Kind == fault.Denied:
		return maxRefusalWait
	case f.After > 0:
		return min(f.After, maxRefusalWait)
	default:
		return min(otherwise, maxRefusalWait)
	}
}
