package base

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/sizing"
	"hotspare.io/hotspare/internal/sizing/record"
)

// ErrNoRecord is the error of a pool that has no record of claims.
var ErrNoRecord = errors.New("the hub has no record of claims")

// ReadRecord reads the record of claims of a pool. Without one the error wraps ErrNoRecord.
func ReadRecord(ctx context.Context, h *Hub, pool types.NamespacedName, now time.Time) (*record.Record, error) {
	var cm corev1.ConfigMap
	err := h.Get(ctx, types.NamespacedName{Namespace: pool.Namespace, Name: record.ConfigMapName(pool.Name)}, &cm)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w of pool %s in namespace %s: create a PoolPolicy of that name to record claims, and repeat the command in a few days",
			ErrNoRecord, pool.Name, pool.Namespace)
	case err != nil:
		return nil, fmt.Errorf("reading the record of claims of pool %s: %w", pool.Name, err)
	case cm.Labels[v1alpha1.LabelDemandRecord] != pool.Name:
		return nil, fmt.Errorf("ConfigMap %s is not a record of claims: it has no label %s=%s", cm.Name, v1alpha1.LabelDemandRecord, pool.Name)
	}
	r, _, err := record.Read(cm.BinaryData, cm.Data, now)
	if err != nil {
		return nil, fmt.Errorf("the record of claims in ConfigMap %s cannot be used: %w", cm.Name, err)
	}
	return r, nil
}

// ParsePrices parses the prices of cluster-hours, such as running=1.2,hibernating=0.1,frozen=0.4. An empty text sets none; any other
// has a price of running clusters, above 0.
func ParsePrices(text string) (p sizing.Prices, set bool, err error) {
	if text == "" {
		return p, false, nil
	}
	const example = "write running=1.2,hibernating=0.1"
	known := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		price, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(price >= 0) || price > 1e9 {
			return p, false, fmt.Errorf("--prices: %q has no price from 0 to 1000000000: %s", part, example)
		}
		if known[name] {
			return p, false, fmt.Errorf("--prices: %s has two prices: keep one", name)
		}
		known[name] = true
		switch name {
		case "running":
			p.Running = price
		case "hibernating":
			p.Hibernating = price
		case "frozen":
			p.Frozen = &price
		case "suspended":
			p.Suspended = &price
		case "stopped":
			p.Stopped = &price
		default:
			return p, false, fmt.Errorf("--prices: %q is not running, hibernating, frozen, suspended or stopped: %s", name, example)
		}
	}
	if p.Running <= 0 {
		return p, false, fmt.Errorf("--prices: %q has no price of running clusters above 0: %s", text, example)
	}
	return p, true, nil
}
