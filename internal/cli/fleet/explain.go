package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/explain/remedy"
)

const fleetExplainLong = `Explain the decisions for a region: for each type whether a data plane is created, with
the figures; the next step of each data plane; why instances fail or wait; and what you
can do. Without REGION, explain all regions of the namespace.

The explanation is computed now from the objects on the hub, with the code of the
controllers. With -o json or -o yaml, the output is the same as that of fleet status;
docs/fleet.md describes the fields.`

func (a commands) explainCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "explain [REGION]",
		Short:   "Explain the decisions for regions, and what you can do",
		Long:    fleetExplainLong,
		Example: "  hotspare fleet explain use1 -n fleet\n  hotspare fleet explain -A",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return base.RequireOneName("region")(cmd, args)
		},
		ValidArgsFunction: a.completeRegions,
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere && len(args) > 0 {
			return base.UsageErrorFor(errors.New("specify a region or -A, not both"), cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			f, err := a.readFleet(ctx, h, base.ListNamespace(h, everywhere))
			if err != nil {
				return err
			}
			regions := f.RegionsInNamespace(base.ListNamespace(h, everywhere))
			if len(args) > 0 {
				r, err := a.findRegion(f, h, args[0])
				if err != nil {
					return err
				}
				regions = []*v1alpha1.FleetRegion{r}
			}
			v := f.EvaluateFleet(regions, a.Clock.Now(), a.FormatCommandIn)
			if len(args) == 0 {
				v.OtherDataPlanes = f.ListOtherPlanes(v, a.FormatCommandIn)
			}
			return a.printFleet(v, regions, func(w io.Writer) error {
				if len(regions) == 0 {
					if err := a.ReportEmptyList("FleetRegions", h, everywhere, "kubectl apply -f fleetregion.yaml"); err != nil {
						return err
					}
				}
				return a.writeRegionExplanations(w, v)
			})
		})(cmd, args)
	}
	return cmd
}

func (a commands) completeRegions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.CompleteNames(cmd, args, listRegionNames)
}

func (a commands) writeRegionExplanations(w io.Writer, v fleetplan.Fleet) error {
	for n, r := range v.Regions {
		if n > 0 {
			if _, err := fmt.Fprint(w, "\n\n"); err != nil {
				return err
			}
		}
		tables := a.buildRegionTables(r, v.Now)
		for _, t := range tables[:len(tables)-1] { // do not wrap the last table: it has commands to copy
			t.WrapLastColumn(a.Width(w), "UNITS", "SIZE", "INSTANCES", "AGE", "FOR")
		}
		if err := a.WriteSections(w, tables...); err != nil {
			return err
		}
	}
	return a.writeUnmatchedPlanes(w, v)
}

// writeUnmatchedPlanes lists the data planes without a region, and the actions for them.
func (a commands) writeUnmatchedPlanes(w io.Writer, v fleetplan.Fleet) error {
	strays := v.PlanesWithoutRegion()
	if len(strays) == 0 {
		return nil
	}
	if len(v.Regions) > 0 {
		if _, err := fmt.Fprint(w, "\n\n"); err != nil {
			return err
		}
	}
	planes := base.NewTable("DATA PLANE WITHOUT A REGION", "PHASE", "AGE", "INSTANCES", "WHY")
	planes.Colours = fleetColours
	var list remedy.TaskList
	for _, o := range strays {
		name := o.Namespace + "/" + o.Name
		planes.AddRow(name, base.ValueOrNone(o.Phase), a.FormatAge(o.Created), base.FormatNumber(o.Instances), o.Why)
		list.AddRemedy(name, o.ToDo)
	}
	planes.WrapLastColumn(a.Width(w), "INSTANCES", "AGE")
	return a.WriteSections(w, planes, base.BuildTaskTable(list.Act, list.Wait))
}

// buildRegionTables describes a region: its plan, types, data planes, waiting instances and the
// actions for the user.
func (a commands) buildRegionTables(r fleetplan.Region, now time.Time) []*base.Table {
	about := base.NewTable()
	about.AddRow("Region", fmt.Sprintf("%s/%s, %s %s", r.Namespace, r.Name, r.Provider, r.Region))
	about.AddRow("Plan", r.Brief)
	if r.LooksAgain > 0 {
		about.AddRow("Next check", "in "+duration.HumanDuration(r.LooksAgain))
	}
	if r.Parked != "" {
		return []*base.Table{about, base.NewTable()}
	}
	out := []*base.Table{about}
	for _, t := range r.Types {
		out = append(out, buildTypeExplanation(t))
	}
	return append(out, a.buildPlaneOutcomeTable(r, now), buildWarmInstanceTable(r), buildFailureTable(r), a.buildPendingInstanceTable(r), base.BuildTaskTable(r.ListTasks()))
}

// buildTypeExplanation describes the decision for a type, and its current and desired capacity.
func buildTypeExplanation(v fleetplan.Type) *base.Table {
	t := base.NewTable()
	t.Colours = fleetColours
	t.AddRow("Type", v.Name)
	t.AddRow("Decision", fmt.Sprintf("%s (%s): %s", v.Verdict(), v.Decision.Reason, v.Decision.Message))
	t.AddRow("Has", v.Has())
	if wants := v.Wants(); wants != "" {
		t.AddRow("Wants", wants)
	}
	return t
}

// buildPlaneOutcomeTable lists the decision for each data plane.
func (a commands) buildPlaneOutcomeTable(r fleetplan.Region, now time.Time) *base.Table {
	t := base.NewTable("DATA PLANE", "PHASE", "FOR", "INSTANCES", "UNITS", "SCALE DOWN", "REASON", "WHY")
	t.Colours = fleetColours
	for _, p := range r.DataPlanes {
		verb, reason := p.RemovalDecision()
		t.AddRow(p.Name, p.Phase, a.FormatAge(p.Since), base.FormatNumber(p.Instances), base.ValueOrNone(p.DescribeUnits()),
			base.ValueOrNone(verb), base.ValueOrNone(reason), p.DescribeOutcome(now))
	}
	return t
}

// buildWarmInstanceTable lists the reserved instances of each data plane, or why it has none.
func buildWarmInstanceTable(r fleetplan.Region) *base.Table {
	t := base.NewTable("KEPT WARM ON", "INSTANCES", "REASON", "WHY")
	for _, p := range r.Reserved {
		t.AddRow(p.DataPlane, base.FormatNumber(len(p.Instances)), string(p.Reason), p.Message)
	}
	return t
}

// buildFailureTable lists the instances that fail on their data plane, with the reasons.
func buildFailureTable(r fleetplan.Region) *base.Table {
	t := base.NewTable("FAILING INSTANCE", "SIZE", "DATA PLANE", "PHASE", "REASON", "WHY")
	t.Colours = fleetColours
	for _, f := range r.Failures {
		t.AddRow(f.Name, f.Size, f.DataPlane, f.Phase, f.Reason, f.Message)
	}
	return t
}

// buildPendingInstanceTable lists the placement of each instance without a data plane, or why it
// cannot be placed.
func (a commands) buildPendingInstanceTable(r fleetplan.Region) *base.Table {
	t := base.NewTable("INSTANCE", "TYPE", "SIZE", "UNITS", "AGE", "DATA PLANE", "REASON", "WHY")
	t.Colours = fleetColours
	for _, i := range r.Instances {
		units := base.None
		if i.Units > 0 {
			units = base.FormatNumber(i.Units)
		}
		t.AddRow(i.Name, i.Type, i.Size, units, a.FormatAge(i.Created), base.ValueOrNone(i.DataPlane), string(i.Decision.Reason), i.Decision.Message)
	}
	return t
}
