package pool

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/poolcharts"
	"hotspare.io/hotspare/internal/sizing/record"
	"hotspare.io/hotspare/internal/sizing/report"
)

// writeReports writes the reports one below the other.
func (a commands) writeReports(w io.Writer, list ReportList) error {
	for i, r := range list.Pools {
		if i > 0 {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := a.writeReport(w, r); err != nil {
			return err
		}
	}
	return nil
}

func (a commands) writeReport(w io.Writer, r *PoolReport) error {
	tables := []*base.Table{buildReportFacts(r)}
	if r.Source == "record" {
		tables = append(tables, buildHoursTable(r), buildCostTable(r))
	}
	if err := a.WriteSections(w, tables...); err != nil {
		return err
	}
	for _, m := range r.Missing {
		if _, err := fmt.Fprintf(w, "\nMissing: %s.\n", m); err != nil {
			return err
		}
	}
	return nil
}

func buildReportFacts(r *PoolReport) *base.Table {
	t := base.NewTable()
	t.AddRow("Pool", r.Namespace+"/"+r.Pool)
	t.AddRow("Time", describeSpan(r))
	t.AddRow("Claims", describeClaims(r.Claims))
	if r.Claims.Served > 0 {
		t.AddRow("Waits", fmt.Sprintf("median %s, p90 %s, p99 %s, longest %s", poolcharts.FormatWait(r.Claims.P50), poolcharts.FormatWait(r.Claims.P90),
			poolcharts.FormatWait(r.Claims.P99), poolcharts.FormatWait(r.Claims.Max)))
	}
	if c := r.Coverage; c != nil {
		t.AddRow("Objective", fmt.Sprintf("%s promised, %s seen", poolcharts.FormatShare(c.Promised), poolcharts.FormatShare(c.Seen)))
	}
	if f := r.Forecast; f != nil {
		t.AddRow("Forecast", fmt.Sprintf("%.2g claims an hour expected, %.2g seen; the 90%% band was right in %s of the hours",
			f.Expected, f.Seen, poolcharts.FormatShare(f.WithinShare())))
	}
	t.AddRow("Now", describeNow(r))
	if e := r.EstimatedPrices; e != nil {
		t.AddRow("Prices", fmt.Sprintf("estimated: %s %s an hour for a cluster that runs, %s for one that hibernates; %s", e.Running, e.Currency, e.Hibernating, e.Basis))
	}
	return t
}

func describeSpan(r *PoolReport) string {
	text := r.From.Format(time.RFC3339) + " to " + r.To.Format(time.RFC3339)
	if r.Source != "record" {
		return text
	}
	return text + fmt.Sprintf(", with clusters recorded for %.0f hours", r.ObservedHours)
}

func describeClaims(c report.Claims) string {
	text := fmt.Sprintf("%d", c.Total)
	known := c.Served + c.Unserved
	if known == 0 {
		return text
	}
	if known < c.Total {
		text += fmt.Sprintf(", of which the waits of %d are known", known)
	}
	text += fmt.Sprintf(": %d at once (%s), %d waited", c.AtOnce, poolcharts.FormatShare(c.AtOnceShare), c.Served-c.AtOnce)
	if c.Unserved > 0 {
		text += fmt.Sprintf(", %d deleted before they got a cluster", c.Unserved)
	}
	return text
}

func describeNow(r *PoolReport) string {
	var parts []string
	for s := record.State(0); s < record.States; s++ {
		if n := r.Now[s.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no clusters")
	}
	if r.Waiting > 0 {
		parts = append(parts, humanize.FormatCount(r.Waiting, "claim")+" waiting")
	}
	return strings.Join(parts, ", ")
}

// buildHoursTable shows the hours of unclaimed clusters, and what each state costs.
func buildHoursTable(r *PoolReport) *base.Table {
	cost := "COST"
	if r.EstimatedPrices != nil {
		cost = "ESTIMATED COST"
	}
	t := base.NewTable("UNCLAIMED", "CLUSTER-HOURS", "SHARE", cost)
	h := r.Hours
	total := h.RunningIdle + h.Resuming + h.Hibernating + h.Installing + h.Other
	for _, row := range []struct {
		name  string
		hours float64
	}{
		{"running idle", h.RunningIdle},
		{"resuming", h.Resuming},
		{"installing", h.Installing},
		{"other", h.Other},
		{"hibernating", h.Hibernating},
		{rowFrozen, h.Shallow.Freeze},
		{rowSuspended, h.Shallow.Suspend},
		{"total", total},
	} {
		if row.hours == 0 && (row.name == rowFrozen || row.name == rowSuspended) {
			continue
		}
		share := base.None
		if total > 0 {
			share = fmt.Sprintf("%.0f%%", 100*row.hours/total)
		}
		t.AddRow(row.name, fmt.Sprintf("%.1f", row.hours), share, formatStateCost(r.Costs, h, row.name, row.hours))
	}
	return t
}

// Rows of the hours of hibernating clusters that did not sleep at depth stop.
const (
	rowFrozen    = "  of which frozen"
	rowSuspended = "  of which suspended"
)

// formatStateCost returns the part of the costs that the hours of a state have.
func formatStateCost(c *report.Costs, h report.Hours, state string, hours float64) string {
	switch awake := h.RunningIdle + h.Resuming + h.Installing + h.Other; {
	case c == nil:
		return base.None
	case state == "total":
		return poolcharts.FormatMoney(c.Total)
	case state == "hibernating":
		return poolcharts.FormatMoney(c.Hibernating)
	case state == rowFrozen:
		return poolcharts.FormatMoney(c.Shallow.Freeze)
	case state == rowSuspended:
		return poolcharts.FormatMoney(c.Shallow.Suspend)
	case awake > 0:
		return poolcharts.FormatMoney(c.Running * hours / awake)
	default:
		return poolcharts.FormatMoney(0)
	}
}

func buildCostTable(r *PoolReport) *base.Table {
	t := base.NewTable()
	c := r.Costs
	if c == nil {
		return t
	}
	t.AddRow("Saved by hibernating", r.formatMoney(c.SavedByHibernating)+", compared with running all clusters")
	if r.ComputedHours > 0 {
		t.AddRow("You could have saved", r.describeSaving(c.CouldSave, "with the counts recommended at each moment, according to the record;"+
			" waits would have been different: to simulate them, run hotspare simulate --from-hub "+r.Pool))
		if math.Abs(c.SavedByPolicy) > 0.005 {
			t.AddRow("Saved by the policy", r.describeSaving(c.SavedByPolicy, "compared with the counts that a person has chosen last"))
		}
	}
	if m := r.Month; m != nil && m.Costs != nil {
		t.AddRow("This month", fmt.Sprintf("%s since %s-01, and %s saved by hibernating",
			r.formatMoney(m.Costs.Total), m.Month, r.formatMoney(m.Costs.SavedByHibernating)))
	}
	return t
}

func (r *PoolReport) describeSaving(v float64, how string) string {
	if v < -0.005 {
		return "nothing: it would have cost " + r.formatMoney(-v) + " more, " + how
	}
	return r.formatMoney(v) + ", " + how
}

// formatMoney writes an amount, and says if it is estimated, and in which currency.
func (r *PoolReport) formatMoney(v float64) string {
	if r.EstimatedPrices == nil {
		return poolcharts.FormatMoney(v)
	}
	return poolcharts.FormatMoney(v) + " " + r.EstimatedPrices.Currency + " (estimated)"
}
