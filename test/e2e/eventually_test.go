package e2e

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience is how long anything may take. The machine may be busy with builds.
	patience = 5 * time.Minute
	// glance is the time between two looks.
	glance = 200 * time.Millisecond
	// farewell is what cleaning up may take before go test ends the process.
	farewell = 20 * time.Second
)

// eventually looks until nothing is wrong any more. What was wrong last is the
// test's failure.
func eventually(t *testing.T, what string, look func(ctx context.Context) error) {
	t.Helper()
	var wrong error
	err := wait.PollUntilContextCancel(patient(t), glance, true, func(ctx context.Context) (bool, error) {
		if now := look(ctx); now == nil || ctx.Err() == nil { // a look that was cut short found nothing
			wrong = now
		}
		return wrong == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: waited in vain: %v", what, wrong)
	}
}

// patient returns a context for one thing to happen. It ends in time for the
// test's cleanup.
func patient(t *testing.T) context.Context {
	t.Helper()
	limit := time.Now().Add(patience)
	if end, ok := t.Deadline(); ok && end.Add(-farewell).Before(limit) {
		limit = end.Add(-farewell)
	}
	ctx, cancel := context.WithDeadline(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}
