// Package fleet implements the commands for the data-plane fleet.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/fleetplan"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/fleet/facts"
	"hotspare.io/hotspare/internal/fleet/scaling"
	"hotspare.io/hotspare/internal/manifest"
)

// commands has a method for each command of this package. The methods share the App.
type commands struct{ *base.App }

// NewCommand returns the command "hotspare fleet" with its subcommands.
func NewCommand(app *base.App) *cobra.Command {
	a := commands{app}
	return a.NewCommandGroup("fleet", "Inspect and plan the data-plane fleet",
		a.statusCommand(), a.explainCommand(), a.evaluateCommand(), a.importCommand())
}

// evaluateOptions are the flags of fleet evaluate.
type evaluateOptions struct {
	files     []string
	recursive bool
	// region is the name of the region to evaluate; all regions if empty.
	region string
	now    time.Time
	// complete is set if pools that are not in the files do not exist.
	complete bool
	// detailed is set to exit with ExitSteps if a plan has steps.
	detailed bool
}

const evaluateLong = `Print the next decisions of the controllers for the regions in manifests: for each
type whether a data plane is created, which data planes are removed, where each
instance is placed, how many reserved instances are kept, and why. The command uses
the controllers' own code and needs no hub: it reads FleetRegions, InstanceTypes,
DataPlanes and ServiceInstances with their status, and writes nothing.

Objects are read as the API server reads them: with its defaults, and with a warning
for each object that it would reject. ClusterPools are checked if they are in the
files, and otherwise assumed to exist. With --complete they are missing.

With -o json or -o yaml, the output is for programs; docs/fleet.md describes its fields.`

const evaluateExample = `  hotspare fleet evaluate -f fleet.yaml
  hotspare fleet evaluate -f fleet/ -R --now 2026-03-01T12:00:00Z -o json
  hotspare kubectl get fleetregions,instancetypes,dataplanes,serviceinstances -A -o yaml | hotspare fleet evaluate -f - -f edited.yaml`

func (a commands) evaluateCommand() *cobra.Command {
	q := &evaluateOptions{}
	var now string
	cmd := &cobra.Command{
		Use:               "evaluate -f FILE...",
		Short:             "Print the next decisions for the regions in manifests",
		Long:              evaluateLong,
		Example:           evaluateExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringArrayVarP(&q.files, "filename", "f", nil, "file, folder or - (standard input) of YAML or JSON; may be repeated")
	f.BoolVarP(&q.recursive, "recursive", "R", false, "read subfolders too")
	f.StringVar(&q.region, "region", "", "evaluate the FleetRegions of this name only (with -n: of that namespace)")
	f.StringVar(&now, "now", "", "time to decide at, such as 2026-03-01T12:00:00Z; also the creation time of objects that have none (default: current time)")
	f.BoolVar(&q.complete, "complete", false, "treat ClusterPools that are not in the files as missing")
	f.BoolVar(&q.detailed, "detailed-exitcode", false, fmt.Sprintf("exit with %d when there are steps to take", base.ExitSteps))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("region", cobra.NoFileCompletions))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("now", cobra.NoFileCompletions))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(q.files) == 0 {
			return base.UsageErrorFor(errors.New("specify the manifests to read with -f: a file, a folder, or - for standard input"), cmd)
		}
		var err error
		if q.now, err = a.ParseNow(now); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return a.runFleetEvaluate(cmd.Context(), q)
	}
	return cmd
}

func (a commands) runFleetEvaluate(ctx context.Context, q *evaluateOptions) error {
	docs, err := manifest.Reader{Stdin: a.Stdin, Recursive: q.recursive}.Read(q.files)
	if err != nil {
		return err
	}
	namespace := a.Flags.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	set, err := manifest.LoadFleet(ctx, docs, manifest.Defaults{Namespace: namespace, Created: q.now})
	if err != nil {
		return err
	}
	all, err := a.evaluateRegions(q, set)
	if err != nil {
		return err
	}
	for _, w := range set.Warnings {
		fmt.Fprintf(a.Stderr, "warning: %s\n", w)
	}
	for _, n := range append(set.Notes, describeUnmatchedObjects(set)...) {
		fmt.Fprintf(a.Stderr, "note: %s\n", n)
	}
	if err := a.printEvaluations(all, set.Warnings, q.now); err != nil {
		return err
	}
	if q.detailed && slices.ContainsFunc(all, func(e fleetplan.Evaluation) bool { return len(e.Plan.Steps) > 0 }) {
		return &base.ExitError{Code: base.ExitSteps}
	}
	return nil
}

func (a commands) evaluateRegions(q *evaluateOptions, set *manifest.Fleet) ([]fleetplan.Evaluation, error) {
	if len(set.Regions) == 0 {
		return nil, base.WithRemedy(errors.New("the files contain no FleetRegion"), "add the region to evaluate; data planes and instances alone have no decisions")
	}
	var out []fleetplan.Evaluation
	for _, key := range base.SortedKeys(set.Regions) {
		asked := q.region == "" || key.Name == base.StripKindPrefix(q.region) && (a.Flags.Namespace == "" || a.Flags.Namespace == key.Namespace)
		if !asked {
			continue
		}
		e, err := q.evaluateRegion(set, key)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	if len(out) == 0 {
		var names []string
		for _, key := range base.SortedKeys(set.Regions) {
			names = append(names, key.String())
		}
		return nil, base.WithRemedy(fmt.Errorf("the files contain no FleetRegion %q", q.region), "they contain "+humanize.JoinFirstWords(names))
	}
	return out, nil
}

func (e *evaluateOptions) evaluateRegion(set *manifest.Fleet, key types.NamespacedName) (fleetplan.Evaluation, error) {
	o := regionObjects(set, key)
	o.PoolsAssumed = !e.complete
	return fleetplan.EvaluateRegion(o, sortedValues(set.Regions), e.now)
}

// regionObjects returns a region and the objects that can affect its decisions.
func regionObjects(set *manifest.Fleet, key types.NamespacedName) facts.Objects {
	o := facts.Objects{Region: set.Regions[key], Types: map[string]*v1alpha1.InstanceType{}, Pools: map[string]*hivev1.ClusterPool{}}
	for at, it := range set.Types {
		o.Types[at.Name] = it
	}
	for at, p := range set.Pools {
		if at.Namespace == key.Namespace {
			o.Pools[at.Name] = p
		}
	}
	for _, at := range base.SortedKeys(set.Planes) {
		if at.Namespace == key.Namespace {
			o.Planes = append(o.Planes, set.Planes[at])
		}
	}
	o.Instances = sortedValues(set.Instances)
	return o
}

func sortedValues[T any](m map[types.NamespacedName]T) []T {
	var out []T
	for _, key := range base.SortedKeys(m) {
		out = append(out, m[key])
	}
	return out
}

// describeUnmatchedObjects lists the objects that belong to no region of the files.
func describeUnmatchedObjects(set *manifest.Fleet) []string {
	var planes, instances []string
	for _, key := range base.SortedKeys(set.Planes) {
		dp := set.Planes[key]
		if !slices.ContainsFunc(sortedValues(set.Regions), func(r *v1alpha1.FleetRegion) bool {
			return r.Namespace == dp.Namespace && r.Spec.Provider == dp.Spec.Provider && r.Spec.Region == dp.Spec.Region
		}) {
			planes = append(planes, fmt.Sprintf("%s (%s %s)", key, dp.Spec.Provider, dp.Spec.Region))
		}
	}
	for _, key := range base.SortedKeys(set.Instances) {
		i := set.Instances[key]
		if !slices.ContainsFunc(sortedValues(set.Regions), func(r *v1alpha1.FleetRegion) bool {
			return r.Spec.Provider == i.Spec.Provider && r.Spec.Region == i.Spec.Region
		}) {
			instances = append(instances, fmt.Sprintf("%s (%s %s)", key, i.Spec.Provider, i.Spec.Region))
		}
	}
	var out []string
	if len(planes) > 0 {
		out = append(out, "ignored data planes without a FleetRegion of their namespace in the files: "+humanize.JoinFirstWords(planes))
	}
	if len(instances) > 0 {
		out = append(out, "ignored instances without a FleetRegion in the files: "+humanize.JoinFirstWords(instances))
	}
	return out
}

func (a commands) printEvaluations(all []fleetplan.Evaluation, warnings []manifest.Warning, now time.Time) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(newEvaluationReport(all, warnings, now))
	case base.AsName:
		for _, e := range all {
			if err := a.PrintNames(e.Region); err != nil {
				return err
			}
		}
		return nil
	}
	for n, e := range all {
		if n > 0 {
			fmt.Fprint(a.Stdout, "\n\n")
		}
		if err := a.writeEvaluation(a.Stdout, e); err != nil {
			return err
		}
	}
	return nil
}

// writeEvaluation prints the decisions about a region for people.
func (a commands) writeEvaluation(w io.Writer, e fleetplan.Evaluation) error {
	about := base.NewTable()
	about.AddRow("Region", fmt.Sprintf("%s/%s, %s %s", e.Region.Namespace, e.Region.Name, e.Region.Spec.Provider, e.Region.Spec.Region))
	if e.Parked != "" {
		about.AddRow("Plan", "no decisions: "+e.Parked)
		return a.WriteSections(w, about)
	}
	about.AddRow("Plan", e.Plan.Summarize())
	if e.Plan.Next > 0 {
		about.AddRow("Next check", "in "+e.Plan.Next.String())
	}
	return a.WriteSections(w, about, buildFleetStepTable(e), buildTypeTable(e), buildPlaneTable(e), buildPlacementTable(e), buildReserveTable(e))
}

func buildFleetStepTable(e fleetplan.Evaluation) *base.Table {
	t := base.NewTable("STEPS")
	for _, st := range e.Plan.Steps {
		t.AddRow(st.String())
	}
	return t
}

func buildTypeTable(e fleetplan.Evaluation) *base.Table {
	t := base.NewTable("TYPE", "DATA PLANES", "ON THE WAY", "USED", "FREE", "PENDING", "SCALE UP", "REASON", "MESSAGE")
	for _, r := range e.Plan.Types {
		t.AddRow(r.Name, base.FormatNumber(r.DataPlanes), base.FormatNumber(r.InFlight), fmt.Sprintf("%d/%d", r.UsedUnits, r.MaxUnits), base.FormatNumber(r.FreeUnits),
			base.FormatNumber(r.PendingUnits), fleetplan.DescribeAction(r.Decision), string(r.Decision.Reason), r.Decision.Message)
	}
	return t
}

func buildPlaneTable(e fleetplan.Evaluation) *base.Table {
	t := base.NewTable("DATA PLANE", "INSTANCES", "SCALE DOWN", "REASON", "MESSAGE")
	for _, r := range e.Plan.Planes {
		t.AddRow(r.Name, base.FormatNumber(r.Instances), fleetplan.DescribeAction(r.Decision), string(r.Decision.Reason), r.Decision.Message)
	}
	return t
}

func buildPlacementTable(e fleetplan.Evaluation) *base.Table {
	t := base.NewTable("INSTANCE", "DATA PLANE", "REASON", "MESSAGE")
	for _, l := range e.Plan.Placements {
		t.AddRow(l.Instance, base.ValueOrNone(l.DataPlane), string(l.Decision.Reason), l.Decision.Message)
	}
	return t
}

func buildReserveTable(e fleetplan.Evaluation) *base.Table {
	t := base.NewTable("KEPT WARM ON", "INSTANCES", "REASON", "MESSAGE")
	for _, r := range e.Reserved {
		t.AddRow(r.DataPlane, base.FormatNumber(len(r.Instances)), string(r.Reason), r.Message)
	}
	return t
}

// fleetEvaluationReport is the output of fleet evaluate -o json. It is a public interface:
// docs/fleet.md describes it. Fields may be added, but never changed or removed.
type fleetEvaluationReport struct {
	Now      time.Time          `json:"now"`
	Regions  []evaluatedRegion  `json:"regions"`
	Warnings []manifest.Warning `json:"warnings"`
}

type evaluatedRegion struct {
	Namespace  string                `json:"namespace"`
	Name       string                `json:"name"`
	Provider   string                `json:"provider"`
	Region     string                `json:"region"`
	Plan       string                `json:"plan"`
	Steps      []scaling.Step        `json:"steps"`
	Types      []scaling.TypeReport  `json:"types"`
	DataPlanes []scaling.PlaneReport `json:"dataPlanes"`
	Placements []scaling.Placement   `json:"placements"`
	Reserved   []fleetplan.Reserve   `json:"reserved"`
	// Status is the status that the controller would write.
	Status v1alpha1.FleetRegionStatus `json:"status"`
	Next   string                     `json:"next,omitempty"`
}

// newEvaluationReport uses empty lists instead of null, so that programs need not handle both.
func newEvaluationReport(all []fleetplan.Evaluation, warnings []manifest.Warning, now time.Time) fleetEvaluationReport {
	out := fleetEvaluationReport{Now: now, Regions: []evaluatedRegion{}, Warnings: base.EmptyIfNil(warnings)}
	for _, e := range all {
		r := evaluatedRegion{
			Namespace: e.Region.Namespace, Name: e.Region.Name, Provider: e.Region.Spec.Provider, Region: e.Region.Spec.Region,
			Steps: base.EmptyIfNil(e.Plan.Steps), Types: base.EmptyIfNil(e.Plan.Types), DataPlanes: base.EmptyIfNil(e.Plan.Planes),
			Placements: base.EmptyIfNil(e.Plan.Placements), Reserved: e.Reserved,
		}
		if r.Plan = e.Parked; r.Plan == "" {
			r.Plan, r.Status = e.Plan.Summarize(), e.BuildRegionStatus(e.Plan, now)
		}
		if e.Plan.Next > 0 {
			r.Next = e.Plan.Next.String()
		}
		out.Regions = append(out.Regions, r)
	}
	return out
}
