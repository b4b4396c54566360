package claim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// beats runs a heartbeat of 90 s for a time. It returns the seconds of the renewals, of which answer
// decides the result, and the number of warnings. declared is as in renewer.
func beats(t *testing.T, last time.Duration, declared bool, answer func(n int) error) (at []int, warnings int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), last)
		defer cancel()
		renewer{
			timeout: 90 * time.Second, declared: declared,
			renew: func(context.Context) error {
				at = append(at, int(time.Since(start).Seconds()))
				return answer(len(at))
			},
			warn: func(error) { warnings++ },
		}.run(ctx)
	})
	return at, warnings
}

func TestHeartbeatIsRenewed(t *testing.T) {
	claims := schema.GroupResource{Group: "hive.openshift.io", Resource: "clusterclaims"}
	forbidden := apierrors.NewForbidden(claims, "x", errors.New("no"))
	for name, c := range map[string]struct {
		answer   func(n int) error
		want     []int
		warnings int
	}{
		"four times in its timeout": {func(int) error { return nil }, []int{0, 22, 45, 67, 90}, 0},
		"again soon while the hub is away": {func(n int) error {
			if n == 2 || n == 3 {
				return errors.New("connection refused")
			}
			return nil
		}, []int{0, 22, 30, 37, 60, 82}, 0},
		"until the claim is gone": {func(n int) error {
			if n == 2 {
				return apierrors.NewNotFound(claims, "x")
			}
			return nil
		}, []int{0, 22}, 0},
		"a user without the right is warned once": {func(int) error { return forbidden }, []int{0, 22, 45, 67, 90}, 1},
		"a claim that would end is renewed again soon": {func(n int) error {
			if n < 3 {
				return forbidden
			}
			return nil
		}, []int{0, 7, 15, 37, 60, 82}, 1},
		"a hub that has just started denies": {func(n int) error {
			if n == 2 {
				return forbidden
			}
			return nil
		}, []int{0, 22, 30, 52, 75, 97}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			at, warnings := beats(t, 100*time.Second, strings.Contains(name, "would end"), c.answer)
			if fits := min(len(at), len(c.want)); !slices.Equal(at[:fits], c.want[:fits]) || len(at) < len(c.want) || warnings != c.warnings {
				t.Errorf("renewed at %v with %d warnings, want %v and %d", at, warnings, c.want, c.warnings)
			}
		})
	}
}

// A renewal that the hub does not answer is given up in time for the next one.
func TestAHangingRenewalIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		tried := 0
		renewer{timeout: 90 * time.Second, renew: func(ctx context.Context) error {
			tried++
			<-ctx.Done()
			return ctx.Err()
		}}.run(ctx)
		if tried != 2 { // after 22.5 s, and after another 7.5 s
			t.Errorf("%d renewals in a minute, want 2", tried)
		}
	})
}

func TestHeartbeatPatchNamesItsClaim(t *testing.T) {
	raw, err := heartbeatPatch("uid", 90*time.Second, now).Data(nil)
	want := `{"metadata":{"annotations":{"hotspare.io/heartbeat":"2026-11-21T12:00:00Z","hotspare.io/heartbeat-timeout":"1m30s"},"uid":"uid"}}`
	if got := fmt.Sprint(string(raw)); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}
