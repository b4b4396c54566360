package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/prose"
	"hotspare.io/hotspare/internal/standing"
)

func (a *app) poolDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe POOL",
		Short:             "Show all there is to know of a pool",
		Args:              one("pool"),
		ValidArgsFunction: a.completePools,
		RunE: a.on(func(ctx context.Context, h *hub, args []string) error {
			p, err := a.pool(ctx, h, args[0])
			if err != nil {
				return err
			}
			s, err := h.see(ctx, h.namespace)
			if err != nil {
				return err
			}
			return a.show(p, func(w io.Writer) error { return a.describePool(w, p, s.of(p)) })
		}),
	}
}

// describePool writes the pool's facts, then its conditions, inventory, clusters and claims.
func (a *app) describePool(w io.Writer, p *hivev1.ClusterPool, s *scene) error {
	facts := newTable()
	facts.add("Pool", p.Namespace+"/"+p.Name)
	facts.add("Age", a.age(p.CreationTimestamp.Time))
	facts.add("Platform", platformInWords(p.Spec))
	facts.add("Image set", orNone(p.Spec.ImageSetRef.Name))
	facts.add("Base domain", orNone(p.Spec.BaseDomain))
	facts.add("Keeps", sizeInWords(p.Spec))
	facts.add("Limits", limitsInWords(p.Spec))
	facts.add("Claims live", lifetimeInWords(p.Spec.ClaimLifetime))
	facts.add("Has", tallyInWords(s.tally(p, a.Clock.Now())))
	facts.add("Plan", orNone(p.Status.Plan))
	return a.writeSections(w, facts,
		a.conditionTable(p.Status.Conditions), a.poolStock(p), a.memberTable(p, s), a.claimTable(s.claims.Items, false))
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
		if err := t.write(w, a.palette(w)); err != nil {
			return err
		}
	}
	return nil
}

func platformInWords(spec hivev1.ClusterPoolSpec) string {
	words := orNone(spec.Platform.Name())
	if l := spec.Platform.Local; l != nil && l.Workers != nil {
		words += ", " + prose.Count(int(*l.Workers), "worker")
	}
	if hivev1.IsTrue(spec.Annotations, hivev1.AnnotationFake) {
		words += ", fake"
	}
	return words
}

func limitsInWords(spec hivev1.ClusterPoolSpec) string {
	var parts []string
	if spec.MaxSize != nil {
		parts = append(parts, fmt.Sprintf("at most %s", prose.Count(int(*spec.MaxSize), "cluster")))
	}
	if spec.MaxConcurrent != nil {
		parts = append(parts, fmt.Sprintf("%d installed or destroyed at a time", *spec.MaxConcurrent))
	}
	return orNone(strings.Join(parts, ", "))
}

func lifetimeInWords(l *hivev1.ClusterPoolClaimLifetime) string {
	if l == nil || l.Default == nil && l.Maximum == nil {
		return "until released"
	}
	var parts []string
	if l.Default != nil {
		parts = append(parts, span(l.Default))
	}
	if l.Maximum != nil {
		parts = append(parts, "at most "+span(l.Maximum))
	}
	return strings.Join(parts, ", ")
}

// tallyInWords is "2 assignable, 1 claim waiting".
func tallyInWords(t standing.Tally) string {
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
		parts = append(parts, prose.Count(t.Waiting, "claim")+" waiting")
	}
	if len(parts) == 0 {
		return "no clusters"
	}
	return strings.Join(parts, ", ")
}

func (a *app) conditionTable(conditions []hivev1.Condition) *table {
	t := newTable("CONDITION", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range conditions {
		if c.Reason == hivev1.ReasonInitialized {
			continue
		}
		t.add(c.Type, string(c.Status), c.Reason, a.age(c.LastTransitionTime.Time), c.Message)
	}
	return t
}

// memberTable lists the clusters of one pool.
func (a *app) memberTable(p *hivev1.ClusterPool, s *scene) *table {
	t := newTable("CLUSTER", "PHASE", "STATE", "AGE", "CLAIM")
	phases := standing.Phases([]hivev1.ClusterPool{*p}, s.clusters.Items, s.claims.Items, a.Clock.Now())
	for i := range s.clusters.Items {
		cd := &s.clusters.Items[i]
		t.add(cd.Name, string(phases[client.ObjectKeyFromObject(cd)]), standing.Cluster(cd), a.age(cd.CreationTimestamp.Time), orNone(standing.PoolOf(cd).ClaimName))
	}
	return t
}
