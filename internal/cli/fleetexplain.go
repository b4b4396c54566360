package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/fleetforecast"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/explain/remedy"
)

const fleetExplainLong = `Tell in words why a region does what it does: for each type whether a data plane is
made, and by which figures; what becomes of each data plane; why instances fail or wait;
and what a person can do. Without REGION, of all regions of the namespace.

It is decided now, from what the hub has, with the code of the hub's controllers. With
-o json or -o yaml it prints what fleet status prints; docs/fleet.md describes the fields.`

func (a *app) fleetExplainCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "explain [REGION]",
		Short:   "Tell why regions do what they do, and what to do",
		Long:    fleetExplainLong,
		Example: "  hotspare fleet explain use1 -n fleet\n  hotspare fleet explain -A",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return requireOneName("region")(cmd, args)
		},
		ValidArgsFunction: a.completeRegions,
	}
	addAllNamespacesFlag(cmd, &everywhere)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere && len(args) > 0 {
			return usageErrorFor(errors.New("name a region or give -A, not both"), cmd)
		}
		return a.withHub(func(ctx context.Context, h *hub, args []string) error {
			f, err := a.readFleet(ctx, h, listNamespace(h, everywhere))
			if err != nil {
				return err
			}
			regions := f.RegionsInNamespace(listNamespace(h, everywhere))
			if len(args) > 0 {
				r, err := a.findRegion(f, h, args[0])
				if err != nil {
					return err
				}
				regions = []*v1alpha1.FleetRegion{r}
			}
			v := f.EvaluateFleet(regions, a.Clock.Now(), a.formatCommandIn)
			if len(args) == 0 {
				v.OtherDataPlanes = f.ListOtherPlanes(v, a.formatCommandIn)
			}
			return a.printFleet(v, regions, func(w io.Writer) error {
				if len(regions) == 0 {
					if err := a.reportEmptyList("FleetRegions", h, everywhere, "kubectl apply -f fleetregion.yaml"); err != nil {
						return err
					}
				}
				return a.writeRegionExplanations(w, v)
			})
		})(cmd, args)
	}
	return cmd
}

func (a *app) completeRegions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeNames(cmd, args, listRegionNames)
}

func (a *app) writeRegionExplanations(w io.Writer, v fleetforecast.Fleet) error {
	for n, r := range v.Regions {
		if n > 0 {
			if _, err := fmt.Fprint(w, "\n\n"); err != nil {
				return err
			}
		}
		tables := a.buildRegionTables(r, v.Now)
		for _, t := range tables[:len(tables)-1] { // the last has commands, to be copied
			t.wrapLastColumn(a.Width(w), "UNITS", "SIZE", "INSTANCES", "AGE", "FOR")
		}
		if err := a.writeSections(w, tables...); err != nil {
			return err
		}
	}
	return a.writeUnmatchedPlanes(w, v)
}

// writeUnmatchedPlanes lists the data planes without a region, with what to do about them.
func (a *app) writeUnmatchedPlanes(w io.Writer, v fleetforecast.Fleet) error {
	strays := v.PlanesWithoutRegion()
	if len(strays) == 0 {
		return nil
	}
	if len(v.Regions) > 0 {
		if _, err := fmt.Fprint(w, "\n\n"); err != nil {
			return err
		}
	}
	planes := newTable("DATA PLANE WITHOUT A REGION", "PHASE", "AGE", "INSTANCES", "WHY")
	planes.colours = fleetColours
	var list remedy.TaskList
	for _, o := range strays {
		name := o.Namespace + "/" + o.Name
		planes.addRow(name, valueOrNone(o.Phase), a.formatAge(o.Created), formatNumber(o.Instances), o.Why)
		list.AddRemedy(name, o.ToDo)
	}
	planes.wrapLastColumn(a.Width(w), "INSTANCES", "AGE")
	return a.writeSections(w, planes, buildTaskTable(list.Act, list.Wait))
}

// buildRegionTables tells of a region: its plan, its types, its data planes, who waits, what to do.
func (a *app) buildRegionTables(r fleetforecast.Region, now time.Time) []*table {
	about := newTable()
	about.addRow("Region", fmt.Sprintf("%s/%s, %s %s", r.Namespace, r.Name, r.Provider, r.Region))
	about.addRow("Plan", r.Brief)
	if r.LooksAgain > 0 {
		about.addRow("Looks again", "in "+duration.HumanDuration(r.LooksAgain))
	}
	if r.Parked != "" {
		return []*table{about, newTable()}
	}
	out := []*table{about}
	for _, t := range r.Types {
		out = append(out, buildTypeExplanation(t))
	}
	return append(out, a.buildPlaneOutcomeTable(r, now), buildWarmInstanceTable(r), buildFailureTable(r), a.buildPendingInstanceTable(r), buildTaskTable(r.ListTasks()))
}

// buildTypeExplanation tells what is decided about a type, what there is of it, and what there
// should be.
func buildTypeExplanation(v fleetforecast.Type) *table {
	t := newTable()
	t.colours = fleetColours
	t.addRow("Type", v.Name)
	t.addRow("Decision", fmt.Sprintf("%s (%s): %s", v.Verdict(), v.Decision.Reason, v.Decision.Message))
	t.addRow("Has", v.Has())
	if wants := v.Wants(); wants != "" {
		t.addRow("Wants", wants)
	}
	return t
}

// buildPlaneOutcomeTable says what becomes of each data plane.
func (a *app) buildPlaneOutcomeTable(r fleetforecast.Region, now time.Time) *table {
	t := newTable("DATA PLANE", "PHASE", "FOR", "INSTANCES", "UNITS", "SCALE DOWN", "REASON", "WHY")
	t.colours = fleetColours
	for _, p := range r.DataPlanes {
		verb, reason := p.RemovalDecision()
		t.addRow(p.Name, p.Phase, a.formatAge(p.Since), formatNumber(p.Instances), valueOrNone(p.DescribeUnits()), valueOrNone(verb), valueOrNone(reason), p.DescribeOutcome(now))
	}
	return t
}

// buildWarmInstanceTable says what is kept warm, or why nothing is.
func buildWarmInstanceTable(r fleetforecast.Region) *table {
	t := newTable("KEPT WARM ON", "INSTANCES", "REASON", "WHY")
	for _, p := range r.Reserved {
		t.addRow(p.DataPlane, formatNumber(len(p.Instances)), string(p.Reason), p.Message)
	}
	return t
}

// buildFailureTable says of each instance that fails on its data plane why it does.
func buildFailureTable(r fleetforecast.Region) *table {
	t := newTable("FAILING INSTANCE", "SIZE", "DATA PLANE", "PHASE", "REASON", "WHY")
	t.colours = fleetColours
	for _, f := range r.Failures {
		t.addRow(f.Name, f.Size, f.DataPlane, f.Phase, f.Reason, f.Message)
	}
	return t
}

// buildPendingInstanceTable says where each instance without a data plane goes, or why nowhere.
func (a *app) buildPendingInstanceTable(r fleetforecast.Region) *table {
	t := newTable("INSTANCE", "TYPE", "SIZE", "UNITS", "AGE", "DATA PLANE", "REASON", "WHY")
	t.colours = fleetColours
	for _, i := range r.Instances {
		units := none
		if i.Units > 0 {
			units = formatNumber(i.Units)
		}
		t.addRow(i.Name, i.Type, i.Size, units, a.formatAge(i.Created), valueOrNone(i.DataPlane), string(i.Decision.Reason), i.Decision.Message)
	}
	return t
}

// buildTaskTable lists what a person can do; then what needs no more than time.
func buildTaskTable(act, wait []remedy.Task) *table {
	t := newTable("WHAT TO DO")
	t.addTaskRows(act)
	if len(act) == 0 {
		t.addRow("Nothing.")
	}
	if len(wait) > 0 {
		t.addRow("")
		t.addRow("WHAT NEEDS TIME ONLY")
		t.addTaskRows(wait)
	}
	return t
}

func (t *table) addTaskRows(tasks []remedy.Task) {
	for _, do := range tasks {
		t.addRow(humanize.JoinFirstWords(do.For) + ": " + do.Text)
		if do.Command != "" {
			t.addRow("  " + do.Command)
		}
	}
}
