package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
	"hotspare.io/hotspare/internal/manifest"
)

// planOptions are the flags of pool plan.
type planOptions struct {
	files     []string
	recursive bool
	// pool is the name of the pool to plan; all pools if empty.
	pool string
	now  time.Time
	// platforms are the platforms that have an installer; all if empty.
	platforms []string
	// complete is set if objects that are not in the files do not exist.
	complete bool
	// detailed is set to exit with ExitSteps if the plan has steps.
	detailed bool
}

const planLong = `Print the next steps of the controller for the pools in manifests. The command uses
the controller's own code and needs no hub: it reads pools, clusters and claims with
their status, and writes nothing.

Objects are read as the API server reads them: with its defaults, and with a warning
for each object that it would reject. If an object occurs twice, the second replaces
the first and keeps its status and age, so that an edited pool can follow an export
of the current objects.

The objects that a pool references (image set, Secrets, customizations) are checked if
they are in the files, and otherwise assumed to exist, which the output reports. With
--complete they are missing. The capacity of a platform is unknown here: only maxSize
limits the number of clusters.

With -o json or -o yaml, the output is for programs; docs/cli.md describes its fields.`

const planExample = `  hotspare pool plan -f pool.yaml
  hotspare pool plan -f pools/ -R --now 2026-03-01T12:00:00Z -o json
  hotspare kubectl get clusterpools,clusterdeployments,clusterclaims -A -o yaml | hotspare pool plan -f - -f edited.yaml`

func (a commands) planCommand() *cobra.Command {
	q := &planOptions{}
	var now string
	cmd := &cobra.Command{
		Use:               "plan -f FILE...",
		Short:             "Print the next steps for the pools in manifests",
		Long:              planLong,
		Example:           planExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringArrayVarP(&q.files, "filename", "f", nil, "file, folder or - (standard input) of YAML or JSON; may be repeated")
	f.BoolVarP(&q.recursive, "recursive", "R", false, "read subfolders too")
	f.StringVar(&q.pool, "pool", "", "plan the pools of this name only (with -n: of that namespace)")
	f.StringVar(&now, "now", "", "time to plan at, such as 2026-03-01T12:00:00Z; also the creation time of objects that have none (default: current time)")
	f.StringSliceVar(&q.platforms, "platforms", nil, "platforms that have an installer, such as aws,local (default: all)")
	f.BoolVar(&q.complete, "complete", false, "treat objects that are not in the files as missing, and report missing dependencies")
	f.BoolVar(&q.detailed, "detailed-exitcode", false, fmt.Sprintf("exit with %d when there are steps to take", base.ExitSteps))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("pool", cobra.NoFileCompletions))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("now", cobra.NoFileCompletions))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("platforms", cobra.NoFileCompletions))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(q.files) == 0 {
			return base.UsageErrorFor(errors.New("specify the manifests to read with -f: a file, a folder, or - for standard input"), cmd)
		}
		var err error
		if q.now, err = a.ParseNow(now); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		slices.Sort(q.platforms)
		return a.runPoolPlan(cmd.Context(), q)
	}
	return cmd
}

func (a commands) runPoolPlan(ctx context.Context, q *planOptions) error {
	docs, unread := manifest.Reader{Stdin: a.Stdin, Recursive: q.recursive}.Read(q.files)
	namespace := a.Flags.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	set, undecoded := manifest.Load(ctx, docs, manifest.Defaults{Namespace: namespace, Created: q.now})
	all, unplanned := q.planPools(set)
	left := errors.Join(unread, undecoded, unplanned)
	if left != nil && len(all) == 0 {
		return left
	}
	some, err := a.selectPools(all, q.pool)
	if err != nil {
		return err
	}
	for _, w := range set.Warnings {
		fmt.Fprintf(a.Stderr, "warning: %s\n", w)
	}
	for _, n := range append(set.Notes, describeOmissions(set, all)...) {
		fmt.Fprintf(a.Stderr, "note: %s\n", n)
	}
	if err := a.printPlans(some, set.Warnings, q.now); err != nil {
		return err
	}
	if left != nil {
		return base.WithRemedy(left, "correct these objects; the plans above ignore them")
	}
	if q.detailed && slices.ContainsFunc(some, manifestPlan.changesObjects) {
		return &base.ExitError{Code: base.ExitSteps}
	}
	return nil
}

// selectPools returns the pools that --pool and -n select.
func (a commands) selectPools(all []manifestPlan, name string) ([]manifestPlan, error) {
	if len(all) == 0 {
		return nil, base.WithRemedy(errors.New("the files contain no ClusterPool"), "add the pool to plan; clusters and claims alone have no plan")
	}
	if name == "" {
		return all, nil
	}
	var some []manifestPlan
	var others []string
	for _, f := range all {
		if f.Pool.Name == base.StripKindPrefix(name) && (a.Flags.Namespace == "" || a.Flags.Namespace == f.Pool.Namespace) {
			some = append(some, f)
		}
		others = append(others, f.Pool.Namespace+"/"+f.Pool.Name)
	}
	if len(some) > 0 {
		return some, nil
	}
	where := ""
	if a.Flags.Namespace != "" {
		where = " in namespace " + a.Flags.Namespace
	}
	return nil, base.WithRemedy(fmt.Errorf("the files contain no pool %q%s", name, where), "they contain "+humanize.JoinFirstWords(others))
}

func (a commands) printPlans(plans []manifestPlan, warnings []manifest.Warning, now time.Time) error {
	switch a.Flags.Output {
	case base.AsJSON, base.AsYAML:
		return a.PrintEncoded(newPlanReport(plans, warnings, now))
	case base.AsName:
		for _, f := range plans {
			if err := a.PrintNames(f.Pool); err != nil {
				return err
			}
		}
		return nil
	}
	for i, f := range plans {
		if i > 0 {
			fmt.Fprint(a.Stdout, "\n\n")
		}
		if err := a.writePlan(a.Stdout, f); err != nil {
			return err
		}
	}
	return nil
}

// writePlan prints a plan for people: the pool, the steps, then the power states that change and
// the conditions that report a problem.
func (a commands) writePlan(w io.Writer, f manifestPlan) error {
	about := base.NewTable()
	about.AddRow("Pool", f.Pool.Namespace+"/"+f.Pool.Name)
	about.AddRow("Keeps", DescribeSize(f.Pool.Spec))
	about.AddRow("Limits", DescribeLimits(f.Pool.Spec))
	about.AddRow("Has", f.CountMembersAndClaims().InWords())
	about.AddRow("Plan", f.SummarizePlan())
	if len(f.assumedObjects) > 0 {
		about.AddRow("Assumed", humanize.JoinFirstWords(f.assumedObjects)+", not in the files")
	}
	if f.Plan.Next > 0 {
		about.AddRow("Next check", "in "+f.Plan.Next.String())
	}
	return a.WriteSections(w, about, BuildStepTable(f.Evaluation), buildPowerTable(f.Evaluation), BuildConditionTable(f.Evaluation))
}
