package power

import (
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// maxRetryDelay is the longest delay between attempts that a platform refuses.
const maxRetryDelay = 5 * time.Minute

// Failure is a platform's error as a value. Platforms make sure that its message contains no
// secrets.
type Failure struct {
	Kind    fault.Kind
	After   time.Duration
	Message string
}

// NewFailure returns err as a Failure with a one-line message; nil for nil.
func NewFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	return &Failure{Kind: fault.KindOf(err), After: fault.RetryAfter(err), Message: fault.OneLine(err)}
}

func (f Failure) unobservedMessage() string {
	return "The machines cannot be observed: " + f.Message + "."
}

// AfterFailedRequest returns the plan after the platform has refused to start or stop the machines. A
// request that came too early is not a refusal: platforms require that a machine has stopped
// before it is started.
func (p Plan) AfterFailedRequest(f Failure, now time.Time) Plan {
	r := record{PowerTransition: *p.Record.DeepCopy()}
	if f.Kind == fault.Wait {
		p.Next = r.capAtDeadline(f.retryDelay(p.Next), now)
		return p
	}
	r.Attempts++
	r.LastError = f.Message
	p.Record, p.Next = r.toTransition(), r.capAtDeadline(f.retryDelay(minGraveInterval<<min(r.Attempts-1, 6)), now)

	g := gap{reason: p.Ready.Reason, message: p.Ready.Message}
	if p.Action == Start {
		p.State = failedToStartState(g, r.failureMessage("Resuming", "start", now))
		return p
	}
	p.State = failedToStopState(r.failureMessage("Stopping", "stop", now))
	return p
}

// failureMessage describes the last error, and says if the time limit has passed.
func (r record) failureMessage(doing, verb string, now time.Time) string {
	why := "The machines do not " + verb + ": " + r.LastError + "."
	if !r.isOverdue(now) {
		return why
	}
	return timedOutMessage(doing, r.Deadline.Sub(r.StartedAt.Time), why)
}

// retryDelay returns the delay that the platform asks for, or otherwise if it asks for none.
func (f Failure) retryDelay(otherwise time.Duration) time.Duration {
	switch {
	case f.After > 0:
		return min(f.After, maxRetryDelay)
	case f.Kind == fault.Denied:
		return maxRetryDelay
	default:
		return min(otherwise, maxRetryDelay)
	}
}

// AfterIncompleteResume returns the plan after the platform has not resumed its controllers: the
// transition is not finished, and the next pass completes it.
func (p Plan) AfterIncompleteResume(f Failure, now time.Time) Plan {
	r := record{PowerTransition: *p.Record.DeepCopy()}
	r.FinishedAt = nil
	r.Attempts++
	r.LastError = f.Message
	p.CompleteResume, p.DeleteProbe = false, false
	p.Record, p.Next = r.toTransition(), r.capAtDeadline(f.retryDelay(minGraveInterval<<min(r.Attempts-1, 6)), now)
	g := gap{reason: hivev1.ReasonWaitingForControllers, message: "The nodes are ready, and the controllers of the machines are not resumed yet: " + f.Message + "."}
	if f.Kind == fault.Wait {
		p.State = resumingState(g)
		return p
	}
	p.State = failedToStartState(g, g.message)
	return p
}
