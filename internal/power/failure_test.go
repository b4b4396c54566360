package power

import (
	"errors"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

func TestRefused(t *testing.T) {
	starting := seen(going("Running", time.Minute), machines("m0:Stopped"))
	stopping := seen(hibernate, going("Hibernating", time.Minute))
	for name, c := range map[string]struct {
		in      Snapshot
		err     error
		want    string
		message string
		next    time.Duration
	}{
		"a refused start has failed to start": {
			starting, errors.New("no"), "start, FailedToStart, FailedToStart", "The machines do not start: no.", 5 * time.Second,
		},
		"a refused stop has failed to stop (D10)": {
			stopping, errors.New("no"), "stop, FailedToStop, FailedToStop", "The machines do not stop: no.", 5 * time.Second,
		},
		"each machine's error is told in one line": {
			starting, errors.Join(errors.New("a"), errors.New("b")), "start, FailedToStart, FailedToStart", "The machines do not start: a; b.", 5 * time.Second,
		},
		"too early is no refusal": {
			starting, fault.NewWait(7*time.Second, "m0 is stopping"), "start, StartingMachines, Resuming", seeReady, 7 * time.Second,
		},
		"no room is told, and tried again when the platform says": {
			starting, fault.NewCapacity(time.Minute, "zone full"), "start, FailedToStart, FailedToStart", "The machines do not start: zone full.", time.Minute,
		},
		"a platform cannot ask for hours": {
			starting, fault.NewCapacity(time.Hour, "zone full"), "start, FailedToStart, FailedToStart", "The machines do not start: zone full.", maxRetryDelay,
		},
		"D17: a denial is told, whatever numbers its text holds": {
			starting, fault.NewDenied("403 on 401"), "start, FailedToStart, FailedToStart", "The machines do not start: 403 on 401.", maxRetryDelay,
		},
		"a number in an error is no denial (D17)": {
			starting, errors.New("disk 401"), "start, FailedToStart, FailedToStart", "The machines do not start: disk 401.", 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(c.in, now).AfterFailedRequest(*NewFailure(c.err), now)
			if got := brief(d); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if d.Hibernating.Message != c.message {
				t.Errorf("message %q, want %q", d.Hibernating.Message, c.message)
			}
			if d.Next != c.next {
				t.Errorf("next look in %s, want %s", d.Next, c.next)
			}
			agree(t, d)
		})
	}
}

func TestRefusedAgain(t *testing.T) {
	s := seen(going("Running", time.Hour), machines("m0:Stopped"), limits(Limits{ToRunning: time.Hour}))
	s.Record.Attempts = 20
	d := Decide(s, now).AfterFailedRequest(*NewFailure(errors.New("no")), now)

	t.Run("pauses grow to five minutes", func(t *testing.T) {
		if d.Next != maxRetryDelay {
			t.Errorf("next look in %s", d.Next)
		}
	})
	t.Run("attempts are counted and the error is kept", func(t *testing.T) {
		if d.Record.Attempts != 21 || d.Record.LastError != "no" {
			t.Errorf("record %+v", *d.Record)
		}
	})
	t.Run("the stored record is not written to", func(t *testing.T) {
		if s.Record.Attempts != 20 {
			t.Errorf("record %+v", *s.Record)
		}
	})
	t.Run("a timeout shows beside the error", func(t *testing.T) {
		if want := "Resuming timed out after 1h0m0s. The machines do not start: no."; d.Hibernating.Message != want {
			t.Errorf("message %q, want %q", d.Hibernating.Message, want)
		}
	})
}
