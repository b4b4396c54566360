package quiesce

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestAPartRestsWhileTheGateIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		var running, starts atomic.Int32
		ctx, stop := context.WithCancel(t.Context())
		returned := make(chan error, 1)
		go func() {
			returned <- g.Run(ctx, func(ctx context.Context) error {
				starts.Add(1)
				running.Add(1)
				defer running.Add(-1)
				<-ctx.Done()
				return errors.New("interrupted")
			})
		}()
		synctest.Wait()
		for round := range int32(3) {
			if running.Load() != 1 || starts.Load() != round+1 {
				t.Fatalf("round %d: %d parts run, after %d starts", round, running.Load(), starts.Load())
			}
			if err := g.Close(t.Context()); err != nil || running.Load() != 0 {
				t.Fatalf("after the gate was closed, %d parts run: %v", running.Load(), err)
			}
			synctest.Wait()
			if running.Load() != 0 {
				t.Fatal("it runs although the gate is closed")
			}
			g.Open()
			synctest.Wait()
		}
		stop()
		if err := <-returned; err == nil || err.Error() != "interrupted" {
			t.Errorf("got %v", err)
		}
	})
}

func TestClosingWaitsForAPartThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		finish, closed := make(chan bool), make(chan error, 1)
		go func() {
			_ = g.Run(t.Context(), func(ctx context.Context) error { // it ends with the test
				<-ctx.Done()
				<-finish
				return nil
			})
		}()
		synctest.Wait()
		go func() { closed <- g.Close(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("the gate was closed although a part runs: %v", err)
		default:
		}
		impatient, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Close(impatient); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		finish <- true
		if err := <-closed; err != nil {
			t.Error(err)
		}
		close(finish)
	})
}

func TestAPartMayEndByItself(t *testing.T) {
	var g Gate
	want := errors.New("broken")
	if err := g.Run(t.Context(), func(context.Context) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
}

func TestAPartThatWaitsForTheGateCanBeStopped(t *testing.T) {
	var g Gate
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := g.Run(ctx, func(context.Context) error { return errors.New("it was called") }); err != nil {
		t.Error(err)
	}
}
