package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

func (a *app) claimCommand() *cobra.Command {
	cmd := a.group("claim", "Claims on clusters of pools",
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
		RunE: a.on(func(ctx context.Context, h *hub, _ []string) error {
			var list hivev1.ClusterClaimList
			if err := h.List(ctx, &list, client.InNamespace(scope(h, everywhere))); err != nil {
				return err
			}
			return a.show(&list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.nothing("claims", h, everywhere, "claim create POOL --wait")
				}
				return a.claimTable(list.Items, everywhere).write(w, a.palette(w))
			})
		}),
	}
	allNamespaces(cmd, &everywhere)
	return cmd
}

func (a *app) claimTable(claims []hivev1.ClusterClaim, namespaces bool) *table {
	t := newTable("CLAIM", "POOL", "STATE", "CLUSTER", "AGE", "EXPIRES")
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for i := range claims {
		c := &claims[i]
		row := []string{
			c.Name, c.Spec.ClusterPoolName, claimState(c), orNone(c.Spec.Namespace),
			a.age(c.CreationTimestamp.Time), expiry(c, a.Clock.Now()),
		}
		if namespaces {
			row = append([]string{c.Namespace}, row...)
		}
		t.add(row...)
	}
	return t
}

// expiry is in how long a claim's lifetime ends. It counts from when the claim
// got its cluster, which is when it ceased to be pending.
func expiry(c *hivev1.ClusterClaim, now time.Time) string {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if pending == nil || pending.Status != corev1.ConditionFalse {
		return none
	}
	if c.Status.Lifetime == nil {
		return "never"
	}
	lifetime, err := c.Status.Lifetime.Parse()
	if err != nil || lifetime == 0 {
		return "never"
	}
	left := pending.LastTransitionTime.Add(lifetime).Sub(now)
	if left <= 0 {
		return "now"
	}
	return "in " + duration.HumanDuration(left)
}
