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

// planOptions is what pool plan is asked.
type planOptions struct {
	files     []string
	recursive bool
	// pool is the name of the one to plan; all when empty.
	pool string
	now  time.Time
	// platforms are those that an installer exists for; all when empty.
	platforms []string
	// complete says that what the files do not hold does not exist.
	complete bool
	// detailed asks for an exit code of its own when there is something to do.
	detailed bool
}

const planLong = `Print what the controller would do next with the pools in these manifests. It
decides with the same code as the controller, and needs no hub: it reads pools,
clusters and claims, with their status, and writes nothing.

The objects are read as the API server reads them: with its defaults, and with a
warning for what it would refuse. An object that comes a second time replaces the
first and keeps its status and age, so that an edited pool can follow a copy of
what is there.

What a pool refers to (image set, Secrets, customization) is looked at if it is in
the files, and otherwise taken to be there, which the output says. With --complete
it is missing. How much room a platform has is not known here: only maxSize limits.

With -o json or -o yaml the output is for programs; docs/cli.md describes its fields.`

const planExample = `  hotspare pool plan -f pool.yaml
  hotspare pool plan -f pools/ -R --now 2026-03-01T12:00:00Z -o json
  hotspare kubectl get clusterpools,clusterdeployments,clusterclaims -A -o yaml | hotspare pool plan -f - -f edited.yaml`

func (a commands) planCommand() *cobra.Command {
	q := &planOptions{}
	var now string
	cmd := &cobra.Command{
		Use:               "plan -f FILE...",
		Short:             "Print what would be done with the pools in manifests",
		Long:              planLong,
		Example:           planExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringArrayVarP(&q.files, "filename", "f", nil, "file, folder or - (standard input) of YAML or JSON; may be given again")
	f.BoolVarP(&q.recursive, "recursive", "R", false, "look into the folders of folders too")
	f.StringVar(&q.pool, "pool", "", "plan the pools of this name only (with -n: of that namespace)")
	f.StringVar(&now, "now", "", "time to plan at, such as 2026-03-01T12:00:00Z; objects without an age are made then (default: the clock's)")
	f.StringSliceVar(&q.platforms, "platforms", nil, "platforms that have an installer, such as aws,local (default: all)")
	f.BoolVar(&q.complete, "complete", false, "what the files do not hold does not exist: report missing dependencies")
	f.BoolVar(&q.detailed, "detailed-exitcode", false, fmt.Sprintf("exit with %d when there are steps to take", base.ExitSteps))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("pool", cobra.NoFileCompletions))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("now", cobra.NoFileCompletions))
	base.MustSucceed(cmd.RegisterFlagCompletionFunc("platforms", cobra.NoFileCompletions))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(q.files) == 0 {
			return base.UsageErrorFor(errors.New("name the manifests to read: -f FILE, a folder, or - for standard input"), cmd)
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
		return base.WithRemedy(left, "correct these; the plans above do without them")
	}
	if q.detailed && slices.ContainsFunc(some, manifestPreview.changesObjects) {
		return &base.ExitError{Code: base.ExitSteps}
	}
	return nil
}

// selectPools leaves the pools that were asked for.
func (a commands) selectPools(all []manifestPreview, name string) ([]manifestPreview, error) {
	if len(all) == 0 {
		return nil, base.WithRemedy(errors.New("the files hold no ClusterPool"), "add the pool to plan; clusters and claims alone have no plan")
	}
	if name == "" {
		return all, nil
	}
	var some []manifestPreview
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
	return nil, base.WithRemedy(fmt.Errorf("the files hold no pool %q%s", name, where), "they hold "+humanize.JoinFirstWords(others))
}

func (a commands) printPlans(plans []manifestPreview, warnings []manifest.Warning, now time.Time) error {
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

// writePlan prints a plan for people: the pool, the steps, then what differs from
// how it should be.
func (a commands) writePlan(w io.Writer, f manifestPreview) error {
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
		about.AddRow("Looks again", "in "+f.Plan.Next.String())
	}
	return a.WriteSections(w, about, BuildStepTable(f.Preview), buildPowerTable(f.Preview), BuildConditionTable(f.Preview))
}
