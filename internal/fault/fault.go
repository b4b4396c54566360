// Package fault says what to do about an error.
//
// An error that crosses from a provider to a controller carries a Kind. The provider translates
// its SDK's codes, once; nothing else compares codes or texts. Requeue converts a kind into the
// result that controller-runtime expects.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kind says what a caller should do about an error. If errors are joined, the more serious kind
// decides.
type Kind int

const (
	// Unknown: retry with backoff.
	Unknown Kind = iota
	// Gone: the object does not exist. Success while deleting.
	Gone
	// Conflict: another client wrote first. Retry soon and do not report it.
	Conflict
	// Wait: nothing is wrong, but it is too early. Look again after the given time.
	Wait
	// Capacity: the platform has no capacity now. Look again after the given time, and report it
	// to the user.
	Capacity
	// Denied: a person must act, because of credentials, permissions, or an invalid request. No
	// retry until the specification changes.
	Denied
)

// String returns the kind's name, as it appears in logs.
func (k Kind) String() string {
	return [...]string{"unknown", "gone", "conflict", "wait", "capacity", "denied"}[k]
}

type kindError struct {
	kind  Kind
	after time.Duration
	err   error
}

func (e *kindError) Error() string { return e.err.Error() }
func (e *kindError) Unwrap() error { return e.err }

// New marks err as being of kind k. It returns nil if err is nil.
func New(k Kind, err error) error {
	if err == nil {
		return nil
	}
	return &kindError{kind: k, err: err}
}

// NewDenied returns a Denied error with a message; format is as for fmt.Errorf.
func NewDenied(format string, args ...any) error { return New(Denied, fmt.Errorf(format, args...)) }

// NewWait returns a Wait error: look again after d.
func NewWait(d time.Duration, format string, args ...any) error {
	return &kindError{kind: Wait, after: d, err: fmt.Errorf(format, args...)}
}

// NewCapacity returns a Capacity error: look again after d.
func NewCapacity(d time.Duration, format string, args ...any) error {
	return &kindError{kind: Capacity, after: d, err: fmt.Errorf(format, args...)}
}

// WithRetry returns err with its kind, and with the delay after which to look again. It returns nil if err
// is nil.
func WithRetry(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &kindError{kind: KindOf(err), after: d, err: err}
}

// OneLine returns the text of err in one line, as conditions and tables need it.
func OneLine(err error) string { return lineBreaks.Replace(err.Error()) }

var lineBreaks = strings.NewReplacer(":\n", ": ", "\n", "; ")

// KindOf returns the most serious kind among err and everything it wraps or joins. API errors of
// the kinds conflict and not-found are recognized without a mark.
func KindOf(err error) Kind {
	k, _ := kindAndDelay(err)
	return k
}

func kindAndDelay(err error) (Kind, time.Duration) {
	switch e := err.(type) { //nolint:errorlint // it inspects one error of the chain at a time
	case nil:
		return Unknown, 0
	case *kindError:
		return e.kind, e.after
	case interface{ Unwrap() []error }:
		worst, after := Gone, time.Duration(0)
		for i, one := range e.Unwrap() {
			k, d := kindAndDelay(one)
			if i == 0 || isGraver(k, worst) {
				worst, after = k, d
			}
		}
		return worst, after
	case apierrors.APIStatus:
		return kindOfStatus(e.Status().Reason), 0
	}
	if inner := errors.Unwrap(err); inner != nil {
		return kindAndDelay(inner)
	}
	return Unknown, 0
}

func kindOfStatus(reason metav1.StatusReason) Kind {
	switch reason {
	case metav1.StatusReasonConflict:
		return Conflict
	case metav1.StatusReasonNotFound:
		return Gone
	default:
		return Unknown
	}
}

// isGraver orders kinds for joined errors. Unknown comes just below Denied: an unknown error must
// not be hidden behind a wait.
func isGraver(a, b Kind) bool { return kindRank(a) > kindRank(b) }

func kindRank(k Kind) int {
	return map[Kind]int{Gone: 0, Conflict: 1, Wait: 2, Capacity: 3, Unknown: 4, Denied: 5}[k]
}

// RetryAfter returns the delay before looking again; 0 if err names none.
func RetryAfter(err error) time.Duration {
	_, d := kindAndDelay(err)
	return d
}

// conflictDelay is the delay before a pass is retried after another client wrote first: long
// enough for the watch to deliver that write.
const conflictDelay = 50 * time.Millisecond

// Requeue converts the outcome of a pass into a reconcile result. next is the delay that the pass
// asks for (0: no timer). A conflict is retried silently, Wait and Capacity set a timer, Denied
// is logged and waits for a change, and any other error is returned for backoff.
func Requeue(next time.Duration, err error) (reconcile.Result, error) {
	if err == nil {
		return reconcile.Result{RequeueAfter: next}, nil
	}
	switch kind, delay := kindAndDelay(err); kind {
	case Conflict:
		return reconcile.Result{RequeueAfter: conflictDelay}, nil
	case Wait, Capacity:
		return reconcile.Result{RequeueAfter: SoonerDelay(next, delay)}, nil
	case Gone:
		return reconcile.Result{RequeueAfter: next}, nil
	case Denied:
		if next > 0 {
			return reconcile.Result{RequeueAfter: next}, nil
		}
		return reconcile.Result{}, reconcile.TerminalError(err)
	default:
		return reconcile.Result{}, err
	}
}

// SoonerDelay returns the shorter of two delays; 0 means never.
func SoonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
