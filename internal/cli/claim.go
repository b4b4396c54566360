package cli

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

func (a *app) claimCommand() *cobra.Command {
	cmd := a.newCommandGroup("claim", "Claims on clusters of pools",
		a.claimListCommand(), a.claimCreateCommand(), a.claimReleaseCommand(), a.claimRunCommand())
	cmd.Aliases = []string{"claims"}
	return cmd
}

func (a *app) claimListCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List claims and their clusters",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withHub(func(ctx context.Context, h *hub, _ []string) error {
			var list hivev1.ClusterClaimList
			if err := h.List(ctx, &list, client.InNamespace(listNamespace(h, everywhere))); err != nil {
				return err
			}
			return a.printObject(&list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.reportEmptyList("claims", h, everywhere, "claim create POOL --wait")
				}
				return a.buildClaimTable(list.Items, everywhere).writeTo(w, a.paletteFor(w))
			})
		}),
	}
	addAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a *app) buildClaimTable(claims []hivev1.ClusterClaim, namespaces bool) *table {
	t := newTable("CLAIM", "POOL", "STATE", "CLUSTER", "AGE", "EXPIRES")
	places := slices.ContainsFunc(claims, func(c hivev1.ClusterClaim) bool { return c.Status.Position != nil })
	if places {
		t.header = append(t.header, "PLACE")
	}
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for i := range claims {
		c, now := &claims[i], a.Clock.Now()
		row := []string{
			c.Name, c.Spec.ClusterPoolName, clusterstate.OfClaim(c), valueOrNone(c.Spec.Namespace),
			a.formatAge(c.CreationTimestamp.Time), valueOrNone(clusterstate.DescribeExpiry(c, now)),
		}
		if places {
			row = append(row, formatQueuePosition(c, now))
		}
		if namespaces {
			row = append([]string{c.Namespace}, row...)
		}
		t.addRow(row...)
	}
	return t
}

// describeQueuePosition tells where a claim stands that waits, "2nd", and when a cluster for it
// is expected, "in 3m". Both may be empty.
func describeQueuePosition(c *hivev1.ClusterClaim, now time.Time) (nth, when string) {
	if c.Status.Position == nil {
		return "", ""
	}
	nth = humanize.Ordinal(int(*c.Status.Position))
	ready := c.Status.EstimatedReadyTime
	switch {
	case ready == nil:
		return nth, ""
	case ready.After(now):
		return nth, "in " + duration.HumanDuration(ready.Sub(now))
	case now.Sub(ready.Time) < time.Second:
		return nth, "now"
	default:
		return nth, "overdue for " + duration.HumanDuration(now.Sub(ready.Time))
	}
}

// formatQueuePosition is the place of a claim as tables have it: "2nd, in 3m".
func formatQueuePosition(c *hivev1.ClusterClaim, now time.Time) string {
	nth, when := describeQueuePosition(c, now)
	if when == "" {
		return valueOrNone(nth)
	}
	return nth + ", " + when
}
