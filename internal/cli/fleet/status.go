package fleet

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

const fleetStatusLong = `Show the capacity of each FleetRegion by type, and its data planes.

FREE is the number of units that instances can still use. SLACK is the reserve: if FREE
is not above SLACK, a data plane is created. LIMIT is the maximum number of used units.
PENDING is the number of units of instances that are not placed. COMING is the number of
data planes in progress; their units count as capacity. REASON explains why a data plane
is created, or why not.
On a terminal, USED is also drawn as a bar. A narrow terminal omits columns.

The output is computed now from the objects on the hub, with the code of the controllers.
The command reads the FleetRegions and ServiceInstances of all namespaces. If you lack
the permission, it reads only those of the current namespace and prints a note.`

func (a commands) statusCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show regions, their capacity and their data planes",
		Long:    fleetStatusLong,
		Example: "  hotspare fleet status -n fleet\n  hotspare fleet status -A -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			f, err := a.readFleet(ctx, h, base.ListNamespace(h, everywhere))
			if err != nil {
				return err
			}
			regions := f.RegionsInNamespace(base.ListNamespace(h, everywhere))
			v := f.EvaluateFleet(regions, a.Clock.Now(), a.FormatCommandIn)
			v.OtherDataPlanes = f.ListOtherPlanes(v, a.FormatCommandIn)
			return a.printFleet(v, regions, func(w io.Writer) error {
				if len(regions) == 0 {
					err := a.ReportEmptyList("FleetRegions", h, everywhere, "kubectl apply -f fleetregion.yaml")
					if err != nil || len(v.OtherDataPlanes) == 0 {
						return err
					}
				}
				return a.writeFleetTables(w, v, everywhere)
			})
		}),
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

// printFleet prints regions in the format of --output; text prints the default format, for people.
func (a commands) printFleet(v fleetplan.Fleet, regions []*v1alpha1.FleetRegion, text func(io.Writer) error) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(v)
	case base.AsName:
		for _, r := range regions {
			if err := a.PrintNames(r); err != nil {
				return err
			}
		}
		return nil
	default:
		return text(a.Stdout)
	}
}

// fleetColours are the colours of reasons and phases: green is healthy, yellow is in progress,
// red needs attention.
var fleetColours = base.Palette{
	string(scaling.Sufficient):         "\x1b[32m",
	string(scaling.LimitCovered):       "\x1b[32m",
	string(scaling.LimitReached):       "\x1b[33m",
	string(scaling.InFlight):           "\x1b[33m",
	string(scaling.BelowMinimum):       "\x1b[33m",
	string(scaling.BelowSlack):         "\x1b[33m",
	string(scaling.BiggestDoesNotFit):  "\x1b[33m",
	string(scaling.NoCapacity):         "\x1b[33m",
	string(scaling.Refused):            "\x1b[33m",
	string(scaling.AtMaximum):          "\x1b[31m",
	string(scaling.BackingOff):         "\x1b[31m",
	string(scaling.Blocked):            "\x1b[31m",
	string(scaling.NoUnits):            "\x1b[31m",
	string(scaling.BiggestFitsNowhere): "\x1b[31m",
	string(scaling.Undecided):          "\x1b[31m",

	string(v1alpha1.PhaseReady):           "\x1b[32m",
	string(v1alpha1.PhaseAccepted):        "\x1b[33m",
	string(v1alpha1.PhaseProvisioning):    "\x1b[33m",
	string(v1alpha1.PhaseProvisioned):     "\x1b[33m",
	string(v1alpha1.PhaseWaitingForAgent): "\x1b[33m",
	string(v1alpha1.PhaseDeprovisioning):  "\x1b[2m",
	string(v1alpha1.PhaseCleanup):         "\x1b[2m",
	string(v1alpha1.PhaseFailed):          "\x1b[31m",
	fleetplan.AgentSilent:                 "\x1b[31m",
}

func (a commands) writeFleetTables(w io.Writer, v fleetplan.Fleet, namespaces bool) error {
	tables := []*base.Table{a.buildCapacityTable(w, v, namespaces), a.buildDataPlaneTable(w, v, namespaces)}
	if len(tables[0].Rows) == 0 {
		tables = tables[1:]
	}
	if err := a.WriteSections(w, tables...); err != nil {
		return err
	}
	return a.writeFleetHints(w, v, namespaces)
}

// buildCapacityTable has a row for each region and type. On a terminal, each row has a usage bar.
func (a commands) buildCapacityTable(w io.Writer, v fleetplan.Fleet, namespaces bool) *base.Table {
	t := base.NewTable("REGION", "TYPE", "DATA PLANES", "COMING", "USED", "FREE", "SLACK", "LIMIT", "PENDING", "SCALE UP", "REASON")
	t.Colours = fleetColours
	drawn := a.IsTerminal(w)
	if drawn {
		t.Header = append(t.Header, "ROOM")
	}
	t.AddNamespaceHeader(namespaces)
	for _, r := range v.Regions {
		for _, k := range r.Types {
			row := []string{
				r.Name, k.Name, base.FormatNumber(k.DataPlanes), base.FormatNumber(k.InFlight), fmt.Sprintf("%d/%d", k.UsedUnits, k.MaxUnits), base.FormatNumber(k.FreeUnits),
				base.FormatNumber(k.SlackUnits), formatLimit(k.Limit), base.FormatNumber(k.PendingUnits), fleetplan.DescribeAction(k.Decision), string(k.Decision.Reason),
			}
			if drawn {
				row = append(row, drawUsageBar(k.UsedUnits, k.MaxUnits))
			}
			t.AddNamespacedRow(namespaces, r.Namespace, row)
		}
	}
	t.FitWidth(a.Width(w), "SCALE UP", "DATA PLANES", "ROOM", "COMING", "LIMIT", "SLACK", "PENDING")
	return t
}

func formatLimit(limit *int) string {
	if limit == nil {
		return base.None
	}
	return base.FormatNumber(*limit)
}

// drawUsageBar draws the used share of a capacity. It rounds neither little use nor little free
// capacity to nothing.
func drawUsageBar(used, most int) string {
	const width = 12
	if most <= 0 {
		return base.None
	}
	full := min(width, used*width/most)
	if full == 0 && used > 0 {
		full = 1
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// buildDataPlaneTable has a row for each data plane, including those without decisions.
func (a commands) buildDataPlaneTable(w io.Writer, v fleetplan.Fleet, namespaces bool) *base.Table {
	t := base.NewTable("DATA PLANE", "REGION", "PHASE", "AGE", "LIVE", "INSTANCES", "UNITS", "WHY")
	t.Colours = fleetColours
	t.AddNamespaceHeader(namespaces)
	for _, r := range v.Regions {
		for _, p := range r.DataPlanes {
			t.AddNamespacedRow(namespaces, r.Namespace, []string{
				p.Name, r.Name, p.Phase, a.FormatAge(p.Created), base.ValueOrNone(p.AgentState()), base.FormatNumber(p.Instances), base.ValueOrNone(p.DescribeUnits()), p.Message,
			})
		}
	}
	for _, o := range v.OtherDataPlanes {
		t.AddNamespacedRow(namespaces, o.Namespace, []string{
			o.Name, base.ValueOrNone(o.FleetRegion), base.ValueOrNone(o.Phase), a.FormatAge(o.Created), base.None, base.FormatNumber(o.Instances), base.None, o.Why,
		})
	}
	t.FitWidth(a.Width(w), "UNITS", "LIVE", "AGE", "INSTANCES", "REGION", "WHY")
	return t
}

// writeFleetHints lists regions without decisions, and the commands that explain waiting and
// failing instances.
func (a commands) writeFleetHints(w io.Writer, v fleetplan.Fleet, namespaces bool) error {
	var lines []string
	for _, r := range v.Regions {
		waiting := r.WaitingInstances()
		if failing := len(r.Failures); failing > 0 {
			lines = append(lines, fmt.Sprintf("%s on a data plane of %s/%s. To see why and what you can do:\n  %s",
				humanize.FormatPlural(failing, "instance fails", "instances fail"), r.Namespace, r.Name, a.FormatCommandIn(r.Namespace, "fleet explain %s", r.Name)))
		}
		switch {
		case r.Parked != "":
			lines = append(lines, fmt.Sprintf("No decisions for %s/%s: %s", r.Namespace, r.Name, r.Parked))
		case len(waiting) > 0:
			lines = append(lines, fmt.Sprintf("%s not placed in %s/%s. To see why and what you can do:\n  %s",
				humanize.FormatPlural(len(waiting), "instance is", "instances are"), r.Namespace, r.Name, a.FormatCommandIn(r.Namespace, "fleet explain %s", r.Name)))
		}
	}
	if strays := len(v.PlanesWithoutRegion()); strays > 0 {
		command := "fleet explain"
		if namespaces {
			command += " -A"
		}
		lines = append(lines, fmt.Sprintf("%s no FleetRegion. To see what you can do:\n  %s",
			humanize.FormatPlural(strays, "data plane has", "data planes have"), a.FormatCommand("%s", command)))
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	return err
}
