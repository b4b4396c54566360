package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/pool"
)

func (a *app) poolDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe POOL",
		Short:             "Show all there is to know of a pool",
		Args:              requireOneName("pool"),
		ValidArgsFunction: a.completePools,
		RunE: a.withHub(func(ctx context.Context, h *hub, args []string) error {
			p, err := a.getPool(ctx, h, args[0])
			if err != nil {
				return err
			}
			s, err := h.readSnapshot(ctx, h.namespace)
			if err != nil {
				return err
			}
			return a.printObject(p, func(w io.Writer) error { return a.writePoolDescription(w, p, s.selectPool(p)) })
		}),
	}
}

// writePoolDescription writes the pool's facts, then its conditions, inventory, clusters and claims.
func (a *app) writePoolDescription(w io.Writer, p *hivev1.ClusterPool, s *hubSnapshot) error {
	facts := newTable()
	facts.addRow("Pool", p.Namespace+"/"+p.Name)
	facts.addRow("Age", a.formatAge(p.CreationTimestamp.Time))
	facts.addRow("Platform", describePlatform(p.Spec))
	facts.addRow("Image set", valueOrNone(p.Spec.ImageSetRef.Name))
	facts.addRow("Base domain", valueOrNone(p.Spec.BaseDomain))
	facts.addRow("Keeps", describeSize(p.Spec))
	facts.addRow("Limits", describeLimits(p.Spec))
	facts.addRow("Claims live", describeLifetime(p.Spec.ClaimLifetime))
	facts.addRow("Has", describeTally(s.countMembers(p, a.Clock.Now())))
	facts.addRow("Plan", valueOrNone(p.Status.Plan))
	return a.writeSections(w, facts,
		a.buildConditionTable(p.Status.Conditions), a.buildPoolInventoryTable(p), a.buildMemberTable(p, s), a.buildClaimTable(s.claims.Items, false))
}

// writeSections writes tables with a blank line between them; those without rows are left out.
func (a *app) writeSections(w io.Writer, tables ...*table) error {
	for i, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := t.writeTo(w, a.paletteFor(w)); err != nil {
			return err
		}
	}
	return nil
}

func describePlatform(spec hivev1.ClusterPoolSpec) string {
	words := valueOrNone(spec.Platform.Name())
	if l := spec.Platform.Local; l != nil && l.Workers != nil {
		words += ", " + humanize.FormatCount(int(*l.Workers), "worker")
	}
	if hivev1.IsTrue(spec.Annotations, hivev1.AnnotationFake) {
		words += ", fake"
	}
	return words
}

func describeLimits(spec hivev1.ClusterPoolSpec) string {
	var parts []string
	if spec.MaxSize != nil {
		parts = append(parts, fmt.Sprintf("at most %s", humanize.FormatCount(int(*spec.MaxSize), "cluster")))
	}
	if spec.MaxConcurrent != nil {
		parts = append(parts, fmt.Sprintf("%d installed or destroyed at a time", *spec.MaxConcurrent))
	}
	return valueOrNone(strings.Join(parts, ", "))
}

func describeLifetime(l *hivev1.ClusterPoolClaimLifetime) string {
	if l == nil || l.Default == nil && l.Maximum == nil {
		return "until released"
	}
	var parts []string
	if l.Default != nil {
		parts = append(parts, formatDuration(l.Default))
	}
	if l.Maximum != nil {
		parts = append(parts, "at most "+formatDuration(l.Maximum))
	}
	return strings.Join(parts, ", ")
}

// describeTally is "2 assignable, 1 claim waiting".
func describeTally(t clusterstate.Tally) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{t.Assignable, string(pool.Assignable)},
		{t.Standby, string(pool.Standby)},
		{t.Installing, string(pool.Installing)},
		{t.Broken, string(pool.Broken)},
		{t.Unreadable, string(pool.Unreadable)},
		{t.Claimed, string(pool.Claimed)},
		{t.Marked, string(pool.Removed)},
		{t.Deleting, string(pool.Deleting)},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if t.Waiting > 0 {
		parts = append(parts, humanize.FormatCount(t.Waiting, "claim")+" waiting")
	}
	if len(parts) == 0 {
		return "no clusters"
	}
	return strings.Join(parts, ", ")
}

func (a *app) buildConditionTable(conditions []hivev1.Condition) *table {
	t := newTable("CONDITION", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range conditions {
		if c.Reason == hivev1.ReasonInitialized {
			continue
		}
		t.addRow(c.Type, string(c.Status), c.Reason, a.formatAge(c.LastTransitionTime.Time), c.Message)
	}
	return t
}

// buildMemberTable lists the clusters of one pool.
func (a *app) buildMemberTable(p *hivev1.ClusterPool, s *hubSnapshot) *table {
	t := newTable("CLUSTER", "PHASE", "STATE", "AGE", "CLAIM")
	phases := clusterstate.ComputePhases([]hivev1.ClusterPool{*p}, s.clusters.Items, s.claims.Items, a.Clock.Now())
	for i := range s.clusters.Items {
		cd := &s.clusters.Items[i]
		t.addRow(cd.Name, string(phases[client.ObjectKeyFromObject(cd)]), clusterstate.OfCluster(cd), a.formatAge(cd.CreationTimestamp.Time),
			valueOrNone(clusterstate.PoolReference(cd).ClaimName))
	}
	return t
}
