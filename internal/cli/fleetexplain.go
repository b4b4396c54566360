package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/capacity"
)

const fleetExplainLong = `Tell in words why a region does what it does: for each type whether a data plane is
made, and by which figures; what becomes of each data plane; why instances wait; and
what a person can do. Without REGION, of all regions of the namespace.

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
			f, err := h.seeFleet(ctx, scope(h, everywhere))
			if err != nil {
				return err
			}
			regions := f.in(scope(h, everywhere))
			if len(args) > 0 {
				r, err := a.region(f, h, args[0])
				if err != nil {
					return err
				}
				regions = []*v1alpha1.FleetRegion{r}
			}
			return a.showFleet(f, regions, func(w io.Writer, v fleetView) error {
				if len(regions) == 0 {
					return a.nothing("FleetRegions", h, everywhere, "kubectl apply -f fleetregion.yaml")
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

func (a *app) writeExplanations(w io.Writer, v fleetView) error {
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
	return nil
}

// explain tells of a region: its plan, its types, its data planes, who waits, what to do.
func (a *app) explain(r regionView, now time.Time) []*table {
	about := newTable()
	about.add("Region", fmt.Sprintf("%s/%s, %s %s", r.Namespace, r.Name, r.Provider, r.Region))
	about.add("Plan", r.brief)
	if r.next > 0 {
		about.add("Looks again", "in "+duration.HumanDuration(r.next))
	}
	if r.Parked != "" {
		return []*table{about, newTable()}
	}
	out := []*table{about}
	for _, t := range r.Types {
		out = append(out, t.explain())
	}
	return append(out, a.fateTable(r, now), warmTable(r), a.waitTable(r), toDo(r))
}

// explain tells what is decided about a type, what there is of it, and what there should be.
func (v typeView) explain() *table {
	t := newTable()
	t.colours = fleetColours
	t.add("Type", v.Name)
	t.add("Decision", fmt.Sprintf("%s (%s): %s", creation(v.Decision), v.Decision.Reason, v.Decision.Message))
	t.add("Has", v.has())
	if v.Decision.Reason != capacity.Undecided {
		t.add("Wants", v.wants())
	}
	return t
}

// creation is a decision about making a data plane, in words.
func creation(d capacity.Decision) string {
	switch {
	case d.Action != capacity.Create:
		return "no data plane is made"
	case d.DryRun:
		return "a data plane would be made, and spec.scaleUp.mode is DryRun"
	default:
		return "a data plane is made"
	}
}

func (v typeView) has() string {
	if v.DataPlanes == 0 {
		return "no data plane" + v.pending()
	}
	words := count(v.DataPlanes, "data plane")
	switch {
	case v.InFlight == v.DataPlanes:
		words += " on the way"
	case v.InFlight > 0:
		words += fmt.Sprintf(", %d of them on the way", v.InFlight)
	}
	return fmt.Sprintf("%s; %d of %s used, %d free", words, v.UsedUnits, count(v.MaxUnits, "unit"), v.FreeUnits) + v.pending()
}

func (v typeView) pending() string {
	if v.PendingUnits == 0 {
		return ""
	}
	return fmt.Sprintf("; %s asked for without a place", plural(v.PendingUnits, "unit is", "units are"))
}

func (v typeView) wants() string {
	parts := []string{fmt.Sprintf("more than %s free, and room for the biggest size, %s", count(v.SlackUnits, "unit"), count(v.BiggestUnits, "unit"))}
	if v.Limit != nil {
		parts = append(parts, fmt.Sprintf("at most %s used", count(*v.Limit, "unit")))
	}
	if v.MinDataPlanes > 0 {
		parts = append(parts, fmt.Sprintf("at least %s", count(v.MinDataPlanes, "data plane")))
	}
	if v.MaxDataPlanes != nil {
		parts = append(parts, fmt.Sprintf("at most %s", count(*v.MaxDataPlanes, "data plane")))
	}
	return strings.Join(parts, "; ")
}

// fateTable says what becomes of each data plane.
func (a *app) fateTable(r regionView, now time.Time) *table {
	t := newTable("DATA PLANE", "PHASE", "FOR", "INSTANCES", "UNITS", "SCALE DOWN", "REASON", "WHY")
	t.colours = fleetColours
	for _, p := range r.DataPlanes {
		verb, reason := none, none
		switch {
		case p.Decision != nil:
			verb, reason = action(*p.Decision), string(p.Decision.Reason)
		case p.Ownership == v1alpha1.Registered:
			reason = string(v1alpha1.Registered)
		}
		words := p.Message
		if p.Decision != nil && words != p.Decision.Message {
			words = p.Decision.Message + ". " + words
		}
		if p.GivenUp != nil {
			words += "; it is given up " + until(*p.GivenUp, now)
		}
		t.add(p.Name, p.Phase, a.age(p.Since), number(p.Instances), p.unitsInWords(), verb, reason, words)
	}
	return t
}

// until is "in 5m", or "now".
func until(at, now time.Time) string {
	if !at.After(now) {
		return "now"
	}
	return "in " + duration.HumanDuration(at.Sub(now))
}

// warmTable says what is kept warm, or why nothing is.
func warmTable(r regionView) *table {
	t := newTable("KEPT WARM ON", "INSTANCES", "REASON", "WHY")
	for _, p := range r.Reserved {
		t.add(p.DataPlane, number(len(p.Instances)), string(p.Reason), p.Message)
	}
	return t
}

// waitTable says where each instance without a data plane goes, or why nowhere.
func (a *app) waitTable(r regionView) *table {
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

// toDo lists what a person can do, each thing once, with all that it is for; then what
// needs no more than time.
func toDo(r regionView) *table {
	act, wait := remedies{}, remedies{}
	note := func(name string, do *remedy) {
		switch {
		case do == nil:
		case do.Wait:
			wait.add(name, *do)
		default:
			act.add(name, *do)
		}
	}
	for _, v := range r.Types {
		note(v.Name, v.ToDo)
	}
	for _, v := range r.DataPlanes {
		note(v.Name, v.ToDo)
	}
	for _, v := range r.Instances {
		note(v.Name, v.ToDo)
	}
	t := newTable("WHAT TO DO")
	act.write(t)
	if len(act.all) == 0 {
		t.add("Nothing.")
	}
	if len(wait.all) > 0 {
		t.add("")
		t.add("WHAT NEEDS TIME ONLY")
		wait.write(t)
	}
	return t
}

// remedies are different ones in the order in which they came, with what each is for.
type remedies struct {
	all []remedy
	of  map[remedy][]string
}

func (m *remedies) add(name string, do remedy) {
	if m.of == nil {
		m.of = map[remedy][]string{}
	}
	if m.of[do] == nil {
		m.all = append(m.all, do)
	}
	m.of[do] = append(m.of[do], name)
}

func (m *remedies) write(t *table) {
	for _, do := range m.all {
		t.add(few(m.of[do]) + ": " + do.Text)
		if do.Command != "" {
			t.add("  " + do.Command)
		}
	}
}
