package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/explain/fleetforecast"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/fleet/scaling"
)

const fleetStatusLong = `Show what each FleetRegion has of each type, and its data planes.

FREE is what instances may still take, SLACK how much of it is kept: when FREE is not
above SLACK a data plane is made. LIMIT is how many units may be used, PENDING what
instances take that have no place. COMING are data planes on their way; what they will
have counts. REASON is why a data plane is made, or why not.
On a terminal USED is also drawn; on a narrow one columns are left out.

What is shown is decided now, from what the hub has, with the code of its controllers.
It reads the FleetRegions and ServiceInstances of all namespaces, or, if you may not,
of this one only, and says so.`

func (a *app) fleetStatusCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show regions, the room in them, and their data planes",
		Long:    fleetStatusLong,
		Example: "  hotspare fleet status -n fleet\n  hotspare fleet status -A -o json",
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.withHub(func(ctx context.Context, h *hub, _ []string) error {
			f, err := a.readFleet(ctx, h, listNamespace(h, everywhere))
			if err != nil {
				return err
			}
			regions := f.RegionsInNamespace(listNamespace(h, everywhere))
			v := f.EvaluateFleet(regions, a.Clock.Now(), a.formatCommandIn)
			v.OtherDataPlanes = f.ListOtherPlanes(v, a.formatCommandIn)
			return a.printFleet(v, regions, func(w io.Writer) error {
				if len(regions) == 0 {
					err := a.reportEmptyList("FleetRegions", h, everywhere, "kubectl apply -f fleetregion.yaml")
					if err != nil || len(v.OtherDataPlanes) == 0 {
						return err
					}
				}
				return a.writeFleetTables(w, v, everywhere)
			})
		}),
	}
	addAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

// printFleet prints regions in the format asked for; text prints them for people.
func (a *app) printFleet(v fleetforecast.Fleet, regions []*v1alpha1.FleetRegion, text func(io.Writer) error) error {
	switch a.flags.output {
	case asJSON, asYAML:
		return a.printEncoded(v)
	case asName:
		for _, r := range regions {
			if err := a.printNames(r); err != nil {
				return err
			}
		}
		return nil
	default:
		return text(a.Stdout)
	}
}

// fleetColours are those of reasons and phases: green is well, yellow under way, red
// wants a person.
var fleetColours = palette{
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
	fleetforecast.AgentSilent:             "\x1b[31m",
}

func (a *app) writeFleetTables(w io.Writer, v fleetforecast.Fleet, namespaces bool) error {
	tables := []*table{a.buildCapacityTable(w, v, namespaces), a.buildDataPlaneTable(w, v, namespaces)}
	if len(tables[0].rows) == 0 {
		tables = tables[1:]
	}
	if err := a.writeSections(w, tables...); err != nil {
		return err
	}
	return a.writeFleetHints(w, v, namespaces)
}

// buildCapacityTable has a line for each region and type. On a terminal there is a bar.
func (a *app) buildCapacityTable(w io.Writer, v fleetforecast.Fleet, namespaces bool) *table {
	t := newTable("REGION", "TYPE", "DATA PLANES", "COMING", "USED", "FREE", "SLACK", "LIMIT", "PENDING", "SCALE UP", "REASON")
	t.colours = fleetColours
	drawn := a.IsTerminal(w)
	if drawn {
		t.header = append(t.header, "ROOM")
	}
	t.addNamespaceHeader(namespaces)
	for _, r := range v.Regions {
		for _, k := range r.Types {
			row := []string{
				r.Name, k.Name, formatNumber(k.DataPlanes), formatNumber(k.InFlight), fmt.Sprintf("%d/%d", k.UsedUnits, k.MaxUnits), formatNumber(k.FreeUnits),
				formatNumber(k.SlackUnits), formatLimit(k.Limit), formatNumber(k.PendingUnits), fleetforecast.DescribeAction(k.Decision), string(k.Decision.Reason),
			}
			if drawn {
				row = append(row, drawUsageBar(k.UsedUnits, k.MaxUnits))
			}
			t.addNamespacedRow(namespaces, r.Namespace, row)
		}
	}
	t.fitWidth(a.Width(w), "SCALE UP", "DATA PLANES", "ROOM", "COMING", "LIMIT", "SLACK", "PENDING")
	return t
}

// addNamespaceHeader and begun put a column with namespaces before the others, if that is wanted.
func (t *table) addNamespaceHeader(namespaces bool) {
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
}

func (t *table) addNamespacedRow(namespaces bool, namespace string, row []string) {
	if namespaces {
		row = append([]string{namespace}, row...)
	}
	t.addRow(row...)
}

func formatLimit(limit *int) string {
	if limit == nil {
		return none
	}
	return formatNumber(*limit)
}

// drawUsageBar draws how much of something is used. Neither a little use nor a little room is
// rounded away.
func drawUsageBar(used, most int) string {
	const width = 12
	if most <= 0 {
		return none
	}
	full := min(width, used*width/most)
	if full == 0 && used > 0 {
		full = 1
	}
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// buildDataPlaneTable has a line for each data plane, also for those about which nothing is decided.
func (a *app) buildDataPlaneTable(w io.Writer, v fleetforecast.Fleet, namespaces bool) *table {
	t := newTable("DATA PLANE", "REGION", "PHASE", "AGE", "LIVE", "INSTANCES", "UNITS", "WHY")
	t.colours = fleetColours
	t.addNamespaceHeader(namespaces)
	for _, r := range v.Regions {
		for _, p := range r.DataPlanes {
			t.addNamespacedRow(namespaces, r.Namespace, []string{
				p.Name, r.Name, p.Phase, a.formatAge(p.Created), valueOrNone(p.Heard()), formatNumber(p.Instances), valueOrNone(p.DescribeUnits()), p.Message,
			})
		}
	}
	for _, o := range v.OtherDataPlanes {
		t.addNamespacedRow(namespaces, o.Namespace, []string{
			o.Name, valueOrNone(o.FleetRegion), valueOrNone(o.Phase), a.formatAge(o.Created), none, formatNumber(o.Instances), none, o.Why,
		})
	}
	t.fitWidth(a.Width(w), "UNITS", "LIVE", "AGE", "INSTANCES", "REGION", "WHY")
	return t
}

// writeFleetHints names regions that nothing is decided about, and where to read why instances wait.
func (a *app) writeFleetHints(w io.Writer, v fleetforecast.Fleet, namespaces bool) error {
	var lines []string
	for _, r := range v.Regions {
		waiting := r.WaitingInstances()
		if failing := len(r.Failures); failing > 0 {
			lines = append(lines, fmt.Sprintf("%s on a data plane of %s/%s. To see why, and what to do:\n  %s",
				humanize.FormatPlural(failing, "instance fails", "instances fail"), r.Namespace, r.Name, a.formatCommandIn(r.Namespace, "fleet explain %s", r.Name)))
		}
		switch {
		case r.Parked != "":
			lines = append(lines, fmt.Sprintf("Nothing is decided about %s/%s: %s", r.Namespace, r.Name, r.Parked))
		case len(waiting) > 0:
			lines = append(lines, fmt.Sprintf("%s no place in %s/%s. To see why, and what to do:\n  %s",
				humanize.FormatPlural(len(waiting), "instance has", "instances have"), r.Namespace, r.Name, a.formatCommandIn(r.Namespace, "fleet explain %s", r.Name)))
		}
	}
	if strays := len(v.PlanesWithoutRegion()); strays > 0 {
		command := "fleet explain"
		if namespaces {
			command += " -A"
		}
		lines = append(lines, fmt.Sprintf("%s no FleetRegion. To see what to do:\n  %s",
			humanize.FormatPlural(strays, "data plane has", "data planes have"), a.formatCommand("%s", command)))
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s\n", strings.Join(lines, "\n"))
	return err
}
