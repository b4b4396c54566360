package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/simulate"
	"hotspare.io/hotspare/internal/sizing/record"
)

// runFromHub plays the record that the hub has of a pool.
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
		}{{"resume", &q.resume, measured.Resume}, {"install", &q.install, measured.Install}} {
			if !cmd.Flags().Changed(d.flag) && d.is > 0 {
				*d.to = d.is.String()
			}
		}
		q.trace = "pool " + h.Namespace + "/" + pool
		return a.run(q, func() (simulate.Trace, error) { return simulate.NewTrace(&r.Demand), nil })
	})(cmd, nil)
}

// readRecord reads the record of claims of a pool.
func readRecord(ctx context.Context, h *base.Hub, pool string, now time.Time) (*record.Record, error) {
	var cm corev1.ConfigMap
	err := h.Get(ctx, h.ObjectKey(record.ConfigMapName(pool)), &cm)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the hub has no record of claims of pool %s in namespace %s: create a PoolPolicy of that name, which records them, and repeat this in some days",
			pool, h.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading the record of claims of pool %s: %w", pool, err)
	case cm.Labels[v1alpha1.LabelDemandRecord] != pool:
		return nil, fmt.Errorf("ConfigMap %s is not a record of claims: it has no label %s=%s", cm.Name, v1alpha1.LabelDemandRecord, pool)
	}
	r, err := record.Decode(cm.BinaryData[record.ClaimsKey], cm.Data[record.DetailsKey], now)
	if err != nil {
		return nil, fmt.Errorf("the record of claims in ConfigMap %s cannot be used: %w", cm.Name, err)
	}
	if r.Demand.Claims() == 0 {
		return nil, fmt.Errorf("no claim on pool %s was recorded since %s: repeat this when there were some", pool, r.Since.UTC().Format(time.RFC3339))
	}
	return r, nil
}
