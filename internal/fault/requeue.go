package fault

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictDelay is the delay before a pass is retried after another client wrote first: long
// enough for the watch to deliver that write.
const conflictDelay = 50 * time.Millisecond

// Requeue converts the outcome of a pass into a reconcile result. next is the delay that the pass
// asks for (0: no timer). A conflict is retried silently, Wait and Capacity set a timer, Denied
// is logged and waits for a change, and any other error is returned for backoff.
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
