package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"hotspare.io/hotspare/internal/fault"
)

var (
	errPlain    = errors.New("boom")
	errConflict = apierrors.NewConflict(schema.GroupResource{Resource: "pools"}, "p", errPlain)
	gone        = apierrors.NewNotFound(schema.GroupResource{Resource: "pools"}, "p")
	denied      = fault.NewDenied("no access")
	waiting     = fault.NewWait(time.Minute, "still booting")
	full        = fault.NewCapacity(time.Hour, "no room")
)

func TestOf(t *testing.T) {
	tests := map[string]struct {
		err  error
		want fault.Kind
	}{
		"an error without a mark is unknown":        {errPlain, fault.Unknown},
		"a conflict of the API is one":              {errConflict, fault.Conflict},
		"not found is gone":                         {gone, fault.Gone},
		"wrapping keeps the kind":                   {fmt.Errorf("stopping a: %w", denied), fault.Denied},
		"the mark counts, not what it wraps":        {fault.New(fault.Wait, errConflict), fault.Wait},
		"of joined errors the gravest decides":      {errors.Join(waiting, full), fault.Capacity},
		"what nobody understands outranks a wait":   {errors.Join(waiting, errPlain), fault.Unknown},
		"denied outranks everything":                {errors.Join(errPlain, full, denied), fault.Denied},
		"joined errors may be wrapped":              {fmt.Errorf("two: %w", errors.Join(gone, errConflict)), fault.Conflict},
		"a join of things that are gone is gone":    {errors.Join(gone, gone), fault.Gone},
		"no error has no kind worth speaking of":    {nil, fault.Unknown},
		"several wrapped ones count like a joining": {fmt.Errorf("%w and %w", waiting, denied), fault.Denied},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := fault.KindOf(tc.err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAfterIsThatOfTheGravest(t *testing.T) {
	if got := fault.RetryAfter(errors.Join(waiting, full)); got != time.Hour {
		t.Errorf("got %s", got)
	}
}

func TestRequeue(t *testing.T) {
	tests := map[string]struct {
		next time.Duration
		err  error
		want ctrl.Result
		fail bool
	}{
		"done is done":                               {0, nil, ctrl.Result{}, false},
		"a pass may ask for another":                 {time.Minute, nil, ctrl.Result{RequeueAfter: time.Minute}, false},
		"a conflict is tried again soon, quietly":    {0, errConflict, ctrl.Result{RequeueAfter: 50 * time.Millisecond}, false},
		"waiting is a timer":                         {0, waiting, ctrl.Result{RequeueAfter: time.Minute}, false},
		"the sooner timer counts":                    {time.Second, full, ctrl.Result{RequeueAfter: time.Second}, false},
		"denied is logged and waits for a change":    {0, denied, ctrl.Result{}, true},
		"denied may be looked at again all the same": {time.Minute, denied, ctrl.Result{RequeueAfter: time.Minute}, false},
		"texts decide nothing (Hive B27)":            {0, errors.New("cluster x-403-y: 401 Unauthorized"), ctrl.Result{}, true},
		"an unknown error is returned, to back off":  {time.Minute, errPlain, ctrl.Result{}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := fault.Requeue(tc.next, tc.err)
			if got != tc.want || (err != nil) != tc.fail {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
