package informerloop

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fcache "k8s.io/client-go/tools/cache/testing"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

// An answer is the result of the reconcile function's nth call; last ends the loop.
type answer func(source *fcache.FakeControllerSource, n int) (again time.Duration, last bool, err error)

// play runs a loop over source and returns the names that it reconciled.
func play(t *testing.T, source *fcache.FakeControllerSource, f answer) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var calls []string
	Run(ctx, source, &corev1.Pod{}, func(_ context.Context, p *corev1.Pod) (time.Duration, error) {
		calls = append(calls, p.Name)
		again, last, err := f(source, len(calls))
		if last {
			cancel()
		}
		return again, err
	})
	return calls
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		f    answer
		want []string
	}{
		"what is there is looked at once": {
			func(_ *fcache.FakeControllerSource, n int) (time.Duration, bool, error) { return 0, n == 1, nil },
			[]string{"a"},
		},
		"what comes later is looked at": {
			func(s *fcache.FakeControllerSource, n int) (time.Duration, bool, error) {
				if n == 1 {
					s.Add(pod("b"))
				}
				return 0, n == 2, nil
			},
			[]string{"a", "b"},
		},
		"what changes is looked at again": {
			func(s *fcache.FakeControllerSource, n int) (time.Duration, bool, error) {
				if n == 1 {
					s.Modify(pod("a"))
				}
				return 0, n == 2, nil
			},
			[]string{"a", "a"},
		},
		"what wants to be looked at again is": {
			func(_ *fcache.FakeControllerSource, n int) (time.Duration, bool, error) {
				return time.Millisecond, n == 3, nil
			},
			[]string{"a", "a", "a"},
		},
		"what failed is tried again": {
			func(_ *fcache.FakeControllerSource, n int) (time.Duration, bool, error) {
				return 0, n == 2, broken
			},
			[]string{"a", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := fcache.NewFakeControllerSource()
			source.Add(pod("a"))
			got := play(t, source, c.f)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUntil(t *testing.T) {
	calls := 0
	err := RetryUntilSuccess(t.Context(), time.Millisecond, func(context.Context) error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = RetryUntilSuccess(ctx, time.Millisecond, func(context.Context) error {
		cancel()
		return errors.New("never")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with its context: %v", err)
	}
}
