package up

import (
	"context"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestAnObstacleIsConfirmed(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	answers := []string{}
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	ask := confirmObstacle(ctx, c, func() string {
		first := answers[0]
		answers = slices.Delete(answers, 0, 1)
		return first
	})
	for _, step := range []struct {
		after   time.Duration
		answers []string
		want    string
	}{
		{0, []string{"slow", ""}, ""}, // one slow answer is none
		{time.Second, nil, ""},        // it is young enough
		{time.Minute, []string{"runc is missing", "runc is missing"}, "runc is missing"},
		{time.Minute, []string{"runc is missing"}, "runc is missing"}, // it is known
		{time.Minute, []string{""}, ""},
	} {
		c.SetTime(c.Now().Add(step.after))
		answers = step.answers
		if got := ask(); got != step.want || len(answers) != 0 {
			t.Errorf("after %s: got %q, want %q; %d answers are left", step.after, got, step.want, len(answers))
		}
	}
	end()
	c.SetTime(c.Now().Add(time.Hour))
	if got := ask(); got != "" {
		t.Errorf("when the hub stops: %q", got)
	}
}
