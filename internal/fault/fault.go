// Package fault says what to do about an error.
//
// An error that crosses from a provider to a controller carries a Kind. The
// provider translates its SDK's codes, once; nobody else compares codes or
// texts. Requeue turns a kind into what controller-runtime wants to hear.
package fault

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind says what a caller should do about an error. The greater kind decides
// when errors are joined.
type Kind int

const (
	// Unknown: try again with back-off.
	Unknown Kind = iota
	// Gone: the thing does not exist. Success while deleting.
	Gone
	// Conflict: somebody else wrote first. Try again soon and say nothing.
	Conflict
	// Wait: nothing is wrong, it is too early. Look again after the given time.
	Wait
	// Capacity: the platform has no room now. Look again after the given time, and tell the user.
	Capacity
	// Denied: a person must act: credentials, permissions, an invalid request.
	// No retry until the specification changes.
	Denied
)

// String is the kind's name, as it stands in logs.
func (k Kind) String() string {
	return [...]string{"unknown", "gone", "conflict", "wait", "capacity", "denied"}[k]
}

type fault struct {
	kind  Kind
	after time.Duration
	err   error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// New marks err as being of kind k. A nil err stays nil.
func New(k Kind, err error) error {
	if err == nil {
		return nil
	}
	return &fault{kind: k, err: err}
}

// Denying is a Denied error with a message; format as for fmt.Errorf.
func Denying(format string, args ...any) error { return New(Denied, fmt.Errorf(format, args...)) }

// Waiting is a Wait error: look again after d.
func Waiting(d time.Duration, format string, args ...any) error {
	return &fault{kind: Wait, after: d, err: fmt.Errorf(format, args...)}
}

// NoCapacity is a Capacity error: look again after d.
func NoCapacity(d time.Duration, format string, args ...any) error {
	return &fault{kind: Capacity, after: d, err: fmt.Errorf(format, args...)}
}

// Of returns the gravest kind among err and everything it wraps or joins.
// API errors of the kinds conflict and not-found are recognised without a mark.
func Of(err error) Kind {
	k, _ := of(err)
	return k
}

func of(err error) (Kind, time.Duration) {
	switch e := err.(type) { //nolint:errorlint // it looks at one link of the chain at a time
	case nil:
		return Unknown, 0
	case *fault:
		return e.kind, e.after
	case interface{ Unwrap() []error }:
		worst, after := Gone, time.Duration(0)
		for i, one := range e.Unwrap() {
			k, d := of(one)
			if i == 0 || graver(k, worst) {
				worst, after = k, d
			}
		}
		return worst, after
	case apierrors.APIStatus:
		return ofStatus(e.Status().Reason), 0
	}
	if inner := errors.Unwrap(err); inner != nil {
		return of(inner)
	}
	return Unknown, 0
}

func ofStatus(reason metav1.StatusReason) Kind {
	switch reason {
	case metav1.StatusReasonConflict:
		return Conflict
	case metav1.StatusReasonNotFound:
		return Gone
	default:
		return Unknown
	}
}

// graver orders kinds for joined errors. Unknown comes just below Denied: an
// error nobody understands must not be hidden behind a wait.
func graver(a, b Kind) bool { return rank(a) > rank(b) }

func rank(k Kind) int {
	return map[Kind]int{Gone: 0, Conflict: 1, Wait: 2, Capacity: 3, Unknown: 4, Denied: 5}[k]
}

// After is how long to wait before looking again, for Wait and Capacity; else 0.
func After(err error) time.Duration {
	_, d := of(err)
	return d
}
