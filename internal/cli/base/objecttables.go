package base

import (
	"fmt"
	"io"
	"slices"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
)

// BuildClaimTable has a row for each claim.
func (a *App) BuildClaimTable(claims []hivev1.ClusterClaim, namespaces bool) *Table {
	t := NewTable("CLAIM", "POOL", "STATE", "CLUSTER", "AGE", "EXPIRES")
	places := slices.ContainsFunc(claims, func(c hivev1.ClusterClaim) bool { return c.Status.Position != nil })
	if places {
		t.Header = append(t.Header, "PLACE")
	}
	priorities := slices.ContainsFunc(claims, func(c hivev1.ClusterClaim) bool {
		effective, asked := clusterstate.ClaimPriority(&c)
		return effective != 0 || asked != 0
	})
	if priorities {
		t.Header = append(t.Header, "PRIORITY")
	}
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range claims {
		c, now := &claims[i], a.Clock.Now()
		row := []string{
			c.Name, c.Spec.ClusterPoolName, clusterstate.OfClaim(c), ValueOrNone(c.Spec.Namespace),
			a.FormatAge(c.CreationTimestamp.Time), ValueOrNone(clusterstate.DescribeExpiry(c, now)),
		}
		if places {
			row = append(row, formatQueuePosition(c, now))
		}
		if priorities {
			row = append(row, formatPriority(c))
		}
		if namespaces {
			row = append([]string{c.Namespace}, row...)
		}
		t.AddRow(row...)
	}
	return t
}

// formatPriority returns the priority in effect of a claim, and its own if a ClaimPolicy limits it.
func formatPriority(c *hivev1.ClusterClaim) string {
	effective, asked := clusterstate.ClaimPriority(c)
	if effective < asked {
		return fmt.Sprintf("%d (of %d)", effective, asked)
	}
	return FormatNumber(effective)
}

// BuildTaskTable lists the actions for the user, then the problems that resolve without action.
func BuildTaskTable(act, wait []remedy.Task) *Table {
	t := NewTable("WHAT TO DO")
	t.addTaskRows(act)
	if len(act) == 0 {
		t.AddRow("Nothing.")
	}
	if len(wait) > 0 {
		t.AddRow("")
		t.AddRow("RESOLVES WITHOUT ACTION")
		t.addTaskRows(wait)
	}
	return t
}

func (t *Table) addTaskRows(tasks []remedy.Task) {
	for _, do := range tasks {
		t.AddRow(humanize.JoinFirstWords(do.For) + ": " + do.Text)
		if do.Command != "" {
			t.AddRow("  " + do.Command)
		}
	}
}

// BuildPoolTable has a row for each pool of a snapshot.
func (a *App) BuildPoolTable(s *HubSnapshot, namespaces bool) *Table {
	t := NewTable("POOL", "SIZE", "READY", "STANDBY", "INSTALLING", "CLAIMED", "WAITING", "AGE", "PLAN")
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range s.Pools.Items {
		p := &s.Pools.Items[i]
		n := s.SelectPool(p).CountMembers(p, a.Clock.Now())
		row := []string{
			p.Name, FormatNumber(p.Spec.Size), FormatNumber(n.Assignable), FormatNumber(n.Standby), FormatNumber(n.Installing),
			FormatNumber(n.Claimed), FormatNumber(n.Waiting), a.FormatAge(p.CreationTimestamp.Time), p.Status.Plan,
		}
		if namespaces {
			row = append([]string{p.Namespace}, row...)
		}
		t.AddRow(row...)
	}
	return t
}

// WriteSections writes tables with a blank line between them. It omits tables without rows.
func (a *App) WriteSections(w io.Writer, tables ...*Table) error {
	for i, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := t.WriteTo(w, a.PaletteFor(w)); err != nil {
			return err
		}
	}
	return nil
}

// BuildConditionTable has a row for each condition that a controller has set.
func (a *App) BuildConditionTable(conditions []hivev1.Condition) *Table {
	t := NewTable("CONDITION", "STATUS", "REASON", "AGE", "MESSAGE")
	for _, c := range conditions {
		if c.Reason == hivev1.ReasonInitialized {
			continue
		}
		t.AddRow(c.Type, string(c.Status), c.Reason, a.FormatAge(c.LastTransitionTime.Time), c.Message)
	}
	return t
}
