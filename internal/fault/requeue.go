package fault

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictDelay is how soon a pass is tried again after somebody else wrote
// first: long enough for the watch to bring their write.
const conflictDelay = 50 * time.Millisecond

// Requeue turns the outcome of a pass into a reconcile result. next is when
// the pass itself wants to look again (0: when woken). A conflict is a quiet
// retry, waiting is a timer, Denied waits for a change and is logged, anything
// else is returned and backed off.
func Requeue(next time.Duration, err error) (ctrl.Result, error) {
	if err == nil {
		return ctrl.Result{RequeueAfter: next}, nil
	}
	switch KindOf(err) {
	case Conflict:
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case Wait, Capacity:
		return ctrl.Result{RequeueAfter: soonerDelay(next, RetryAfter(err))}, nil
	case Gone:
		return ctrl.Result{RequeueAfter: next}, nil
	case Denied:
		if next > 0 {
			return ctrl.Result{RequeueAfter: next}, nil
		}
		return ctrl.Result{}, reconcile.TerminalError(err)
	default:
		return ctrl.Result{}, err
	}
}

func soonerDelay(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
