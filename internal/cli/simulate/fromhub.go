package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing/record"
)

// runFromHub replays the record that the hub has of a pool.
func (a commands) runFromHub(cmd *cobra.Command, q *options) error {
	return a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
		pool := base.StripKindPrefix(q.fromHub)
		r, err := readRecord(ctx, h, pool, a.Clock.Now())
		if err != nil {
			return err
		}
		measured := r.Measured()
		for _, d := range []struct {
			flag string
			to   *string
			is   time.Duration
		}{
			{"resume", &q.resume, measured.Resume},
			{"resume-freeze", &q.resumeFreeze, measured.Shallow.Freeze},
			{"resume-suspend", &q.resumeSuspend, measured.Shallow.Suspend},
			{"install", &q.install, measured.Install},
		} {
			if !cmd.Flags().Changed(d.flag) && d.is > 0 {
				*d.to = d.is.String()
			}
		}
		q.trace = "pool " + h.Namespace + "/" + pool
		return a.run(q, func() (simulate.Trace, error) { return simulate.NewTrace(&r.Demand), nil })
	})(cmd, nil)
}

// readRecord reads the record of claims of a pool, which has some.
func readRecord(ctx context.Context, h *base.Hub, pool string, now time.Time) (*record.Record, error) {
	r, err := base.ReadRecord(ctx, h, h.ObjectKey(pool), now)
	if err != nil {
		return nil, err
	}
	if r.Demand.Claims() == 0 {
		return nil, fmt.Errorf("no claims on pool %s have been recorded since %s: repeat the command after some claims", pool, r.Since.UTC().Format(time.RFC3339))
	}
	return r, nil
}
