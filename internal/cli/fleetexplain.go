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
	"hotspare.io/hotspare/internal/advice"
	"hotspare.io/hotspare/internal/capacity/outlook"
	"hotspare.io/hotspare/internal/prose"
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
			return one("region")(cmd, args)
		},
		ValidArgsFunction: a.completeRegions,
	}
	allNamespaces(cmd, &everywhere)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if everywhere && len(args) > 0 {
			return usage(errors.New("name a region or give -A, not both"), cmd)
		}
		return a.on(func(ctx context.Context, h *hub, args []string) error {
			f, err := a.seeFleet(ctx, h, scope(h, everywhere))
			if err != nil {
				return err
			}
			regions := f.RegionsInNamespace(scope(h, everywhere))
			if len(args) > 0 {
				r, err := a.region(f, h, args[0])
				if err != nil {
					return err
				}
				regions = []*v1alpha1.FleetRegion{r}
			}
			v := f.EvaluateFleet(regions, a.Clock.Now(), a.nextIn)
			if len(args) == 0 {
				v.OtherDataPlanes = f.ListOtherPlanes(v, a.nextIn)
			}
			return a.showFleet(v, regions, func(w io.Writer) error {
				if len(regions) == 0 {
					if err := a.nothing("FleetRegions", h, everywhere, "kubectl apply -f fleetregion.yaml"); err != nil {
						return err
					}
				}
				return a.writeExplanations(w, v)
			})
		})(cmd, args)
	}
	return cmd
}

func (a *app) completeRegions(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completing(cmd, args, regionNames)
}

func (a *app) writeExplanations(w io.Writer, v outlook.Fleet) error {
	for n, r := range v.Regions {
		if n > 0 {
			if _, err := fmt.Fprint(w, "\n\n"); err != nil {
				return err
			}
		}
		tables := a.explain(r, v.Now)
		for _, t := range tables[:len(tables)-1] { // the last has commands, to be copied
			t.wrap(a.Width(w), "UNITS", "SIZE", "INSTANCES", "AGE", "FOR")
		}
		if err := a.writeSections(w, tables...); err != nil {
			return err
		}
	}
	return a.explainStrays(w, v)
}

// explainStrays lists the data planes without a region, with what to do about them.
func (a *app) explainStrays(w io.Writer, v outlook.Fleet) error {
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
	var list advice.ToDo
	for _, o := range strays {
		name := o.Namespace + "/" + o.Name
		planes.add(name, orNone(o.Phase), a.age(o.Created), number(o.Instances), o.Why)
		list.Note(name, o.ToDo)
	}
	planes.wrap(a.Width(w), "INSTANCES", "AGE")
	return a.writeSections(w, planes, toDo(list.Act, list.Wait))
}

// explain tells of a region: its plan, its types, its data planes, who waits, what to do.
func (a *app) explain(r outlook.Region, now time.Time) []*table {
	about := newTable()
	about.add("Region", fmt.Sprintf("%s/%s, %s %s", r.Namespace, r.Name, r.Provider, r.Region))
	about.add("Plan", r.Brief)
	if r.LooksAgain > 0 {
		about.add("Looks again", "in "+duration.HumanDuration(r.LooksAgain))
	}
	if r.Parked != "" {
		return []*table{about, newTable()}
	}
	out := []*table{about}
	for _, t := range r.Types {
		out = append(out, explainType(t))
	}
	return append(out, a.fateTable(r, now), warmTable(r), failureTable(r), a.waitTable(r), toDo(r.ListTasks()))
}

// explainType tells what is decided about a type, what there is of it, and what there
// should be.
func explainType(v outlook.Type) *table {
	t := newTable()
	t.colours = fleetColours
	t.add("Type", v.Name)
	t.add("Decision", fmt.Sprintf("%s (%s): %s", v.Verdict(), v.Decision.Reason, v.Decision.Message))
	t.add("Has", v.Has())
	if wants := v.Wants(); wants != "" {
		t.add("Wants", wants)
	}
	return t
}

// fateTable says what becomes of each data plane.
func (a *app) fateTable(r outlook.Region, now time.Time) *table {
	t := newTable("DATA PLANE", "PHASE", "FOR", "INSTANCES", "UNITS", "SCALE DOWN", "REASON", "WHY")
	t.colours = fleetColours
	for _, p := range r.DataPlanes {
		verb, reason := p.RemovalDecision()
		t.add(p.Name, p.Phase, a.age(p.Since), number(p.Instances), orNone(p.DescribeUnits()), orNone(verb), orNone(reason), p.DescribeOutcome(now))
	}
	return t
}

// warmTable says what is kept warm, or why nothing is.
func warmTable(r outlook.Region) *table {
	t := newTable("KEPT WARM ON", "INSTANCES", "REASON", "WHY")
	for _, p := range r.Reserved {
		t.add(p.DataPlane, number(len(p.Instances)), string(p.Reason), p.Message)
	}
	return t
}

// failureTable says of each instance that fails on its data plane why it does.
func failureTable(r outlook.Region) *table {
	t := newTable("FAILING INSTANCE", "SIZE", "DATA PLANE", "PHASE", "REASON", "WHY")
	t.colours = fleetColours
	for _, f := range r.Failures {
		t.add(f.Name, f.Size, f.DataPlane, f.Phase, f.Reason, f.Message)
	}
	return t
}

// waitTable says where each instance without a data plane goes, or why nowhere.
func (a *app) waitTable(r outlook.Region) *table {
	t := newTable("INSTANCE", "TYPE", "SIZE", "UNITS", "AGE", "DATA PLANE", "REASON", "WHY")
	t.colours = fleetColours
	for _, i := range r.Instances {
		units := none
		if i.Units > 0 {
			units = number(i.Units)
		}
		t.add(i.Name, i.Type, i.Size, units, a.age(i.Created), orNone(i.DataPlane), string(i.Decision.Reason), i.Decision.Message)
	}
	return t
}

// toDo lists what a person can do; then what needs no more than time.
func toDo(act, wait []advice.Task) *table {
	t := newTable("WHAT TO DO")
	t.addTasks(act)
	if len(act) == 0 {
		t.add("Nothing.")
	}
	if len(wait) > 0 {
		t.add("")
		t.add("WHAT NEEDS TIME ONLY")
		t.addTasks(wait)
	}
	return t
}

func (t *table) addTasks(tasks []advice.Task) {
	for _, do := range tasks {
		t.add(prose.Few(do.For) + ": " + do.Text)
		if do.Command != "" {
			t.add("  " + do.Command)
		}
	}
}
