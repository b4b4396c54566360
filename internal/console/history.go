package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/console/page"
	"hotspare.io/hotspare/internal/console/userclient"
	"hotspare.io/hotspare/internal/sizing/policy"
	"hotspare.io/hotspare/internal/sizing/record"
)

// readHistory reads the record of a pool with the viewer's permissions, and describes it.
func readHistory(ctx context.Context, l *PageReader, pool string, p *v1alpha1.PoolPolicy, word string, now time.Time) (page.History, error) {
	name := record.ConfigMapName(pool)
	if yes, err := l.IsAllowedIn(ctx, "get", "", "configmaps", l.Namespace); err != nil || !yes {
		return page.History{Note: fmt.Sprintf("You do not have permission to get ConfigMaps in namespace %s. ConfigMap %s has the record that charts are drawn from.",
			l.Namespace, name)}, err
	}
	cm, err := l.ReadRecord(ctx, types.NamespacedName{Namespace: l.Namespace, Name: pool})
	switch {
	case apierrors.IsNotFound(err) && p != nil:
		return page.History{Note: "The PoolPolicy has recorded nothing yet. Charts begin some minutes after it was created."}, nil
	case apierrors.IsNotFound(err):
		return page.History{
			Note:   "Charts need a record of the pool. A PoolPolicy of the same name keeps one, and changes nothing unless you set its mode to Auto:",
			Remedy: emptyPolicy(l.Namespace, pool),
		}, nil
	case errors.Is(err, userclient.ErrNotRecord):
		return page.History{Note: fmt.Sprintf("ConfigMap %s is not a record of claims: it has no label %s=%s.", name, v1alpha1.LabelDemandRecord, pool)}, nil
	case err != nil:
		return page.History{}, err
	}
	r, _, err := record.Read(cm.BinaryData, cm.Data, now)
	if err != nil {
		// What is in it is not repeated: it is not hotspare's.
		const text = "The record in ConfigMap %s cannot be used. Condition RecordUsable of the PoolPolicy explains it."
		return page.History{Note: fmt.Sprintf(text, name)}, nil //nolint:nilerr // the page shows it
	}
	o := page.HistoryOptions{Word: word, Zone: time.UTC}
	if p != nil {
		if parsed, faults := policy.Parse(p.Spec, policy.HubDefaults.WithEstimate(p.Status.EstimatedPrices)); len(faults) == 0 {
			o.Zone, o.Prices, o.Promised, o.Estimate = parsed.Zone, parsed.Limits.Prices, parsed.Objective.Share, parsed.Estimate
		}
	}
	return page.NewHistory(r, o, now), nil
}

// emptyPolicy returns a command that creates a policy which only records.
func emptyPolicy(namespace, pool string) string {
	return fmt.Sprintf(`hotspare kubectl apply -f - <<'END'
apiVersion: hotspare.io/v1alpha1
kind: PoolPolicy
metadata: {namespace: %s, name: %s}
spec: {}
END`, namespace, pool)
}
