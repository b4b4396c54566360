package claim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/humanize"
)

// maxCount is the largest number of claims that a command creates, as that of a ClaimSet.
const maxCount = 100

// setOptions are the flags that describe several claims.
type setOptions struct {
	count         int
	allOrNone     bool
	poolSelectors []string
	fallbackAfter time.Duration
}

func (o *setOptions) addFlags(f *pflag.FlagSet) {
	f.IntVar(&o.count, "count", 1, "number of clusters to claim")
	f.BoolVar(&o.allOrNone, "all-or-none", false, "get all clusters at once, or none: create a ClaimSet")
	f.StringArrayVar(&o.poolSelectors, "pool-selector", nil,
		"claim from any pool with these labels, such as size=large,region=eu, instead of POOL: create a ClaimSet; repeat it for further pools, the preferred ones first")
	f.DurationVar(&o.fallbackAfter, "fallback-after", 0, "with several --pool-selector, how long to wait for one selector's pools before considering the next")
}

// wantsSet reports whether the flags describe a ClaimSet.
func (o *setOptions) wantsSet() bool { return o.allOrNone || len(o.poolSelectors) > 0 }

// validate checks the flags, given the arguments of the command.
func (o *setOptions) validate(args []string) error {
	switch {
	case o.count < 1 || o.count > maxCount:
		return fmt.Errorf("--count must be from 1 to %d", maxCount)
	case o.count > 1 && !o.wantsSet():
		return errors.New("--count needs --all-or-none or --pool-selector: for clusters that may come one after the other, create one claim each")
	case len(o.poolSelectors) > 0 && len(args) > 0:
		return fmt.Errorf("specify either pool %s or --pool-selector", args[0])
	case o.fallbackAfter < 0:
		return errors.New("--fallback-after must not be negative")
	case o.fallbackAfter > 0 && len(o.poolSelectors) < 2:
		return errors.New("--fallback-after needs several --pool-selector")
	case len(o.poolSelectors) == 0:
		return base.RequireOneName("pool")(nil, args)
	}
	_, err := o.preferences()
	return err
}

// preferences parses --pool-selector.
func (o *setOptions) preferences() ([]v1alpha1.PoolPreference, error) {
	var out []v1alpha1.PoolPreference
	for _, text := range o.poolSelectors {
		selector, err := metav1.ParseToLabelSelector(text)
		if err != nil || text == "" {
			return nil, fmt.Errorf("--pool-selector %q is not a label selector: write labels, such as size=large,region=eu", text)
		}
		p := v1alpha1.PoolPreference{MatchLabels: selector.MatchLabels, MatchExpressions: selector.MatchExpressions}
		if len(out) < len(o.poolSelectors)-1 {
			p.FallbackAfter = base.ToAPIDuration(o.fallbackAfter)
		}
		out = append(out, p)
	}
	return out, nil
}

// createClaimSet creates a ClaimSet and, with --wait, waits until its clusters can be used.
func (a commands) createClaimSet(ctx context.Context, h *base.Hub, args []string, o *claimOptions) error {
	set, err := a.prepareClaimSet(ctx, h, args, o)
	if err != nil {
		return err
	}
	switch err := h.Create(ctx, set); {
	case apierrors.IsAlreadyExists(err):
		return base.WithRemedy(fmt.Errorf("namespace %s already has a ClaimSet %q", set.Namespace, set.Name),
			"choose another --name, or release it with: "+a.FormatCommand("claimset release %s", set.Name))
	case err != nil:
		return fmt.Errorf("creating ClaimSet %s: %w", set.Name, err)
	}
	if a.Flags.Output == base.AsName { // before the wait, so that a script knows what to release
		if err := a.PrintNames(set); err != nil || !o.wait {
			return err
		}
		_, _, err := a.waitForClaimSet(ctx, h, set.Name, o.timeout)
		return a.adviseClaimSetRemains(set.Name, err)
	}
	if !o.wait {
		return a.PrintObject(set, func(w io.Writer) error { return a.writeClaimSetCreated(w, set) })
	}
	set, took, err := a.waitForClaimSet(ctx, h, set.Name, o.timeout)
	if err != nil {
		return a.adviseClaimSetRemains(set.Name, err)
	}
	return a.PrintObject(set, func(w io.Writer) error { return a.writeClaimSetServed(w, set, took) })
}

// prepareClaimSet returns a ClaimSet for an existing pool, or for a selector, without creating it.
func (a commands) prepareClaimSet(ctx context.Context, h *base.Hub, args []string, o *claimOptions) (*v1alpha1.ClaimSet, error) {
	subjects, err := o.subjects.parseSubjects()
	if err != nil {
		return nil, err
	}
	spec := v1alpha1.ClaimSetSpec{
		Size: int32(o.set.count), Lifetime: base.ToAPIDuration(o.lifetime), Priority: int32(o.priority), //nolint:gosec // validate limits both
		Subjects: subjects,
	}
	prefix := "set"
	if len(args) > 0 {
		p, err := a.GetPool(ctx, h, args[0])
		if err == nil {
			err = checkPoolIsLargeEnough(p, o.set.count)
		}
		if err != nil {
			return nil, err
		}
		spec.ClusterPoolName, prefix = args[0], args[0]
	} else {
		preferences, err := o.set.preferences()
		if err != nil {
			return nil, err
		}
		spec.PoolSelector = &v1alpha1.ClaimSetPoolSelector{Preferences: preferences}
	}
	name := o.name
	if name == "" {
		name = prefix + "-" + rand.String(5)
	}
	return &v1alpha1.ClaimSet{ObjectMeta: h.ObjectMeta(name), Spec: spec}, nil
}

// checkPoolIsLargeEnough returns an error if the limits in the spec of a pool allow fewer clusters than count.
func checkPoolIsLargeEnough(p *hivev1.ClusterPool, count int) error {
	refuse := func(most int, why, remedy string) error {
		return base.WithRemedy(fmt.Errorf("pool %s can have at most %s, because %s, and %d were requested", p.Name, humanize.FormatCount(most, "cluster"), why, count),
			"claim fewer clusters, or "+remedy)
	}
	if most := p.Spec.MaxSize; most != nil && int(*most) < count {
		return refuse(int(*most), fmt.Sprintf("its maxSize is %d", *most), "raise spec.maxSize of the pool")
	}
	if n := len(p.Spec.Inventory); n > 0 && n < count {
		return refuse(n, "its inventory has "+humanize.FormatPlural(n, "entry", "entries"), "add entries to spec.inventory of the pool")
	}
	return nil
}

func (a commands) writeClaimSetCreated(w io.Writer, set *v1alpha1.ClaimSet) error {
	_, err := fmt.Fprintf(w, "ClaimSet %s created\n\nShow its state:\n  %s\nRelease it:\n  %s\n",
		set.Name, a.FormatCommand("explain claimset %s", set.Name), a.FormatCommand("claimset release %s", set.Name))
	return err
}

func (a commands) writeClaimSetServed(w io.Writer, set *v1alpha1.ClaimSet, took string) error {
	if _, err := fmt.Fprintf(w, "ClaimSet %s has %s of pool %s after %s\n\n", set.Name,
		humanize.FormatCount(int(set.Status.Assigned), "cluster"), set.Status.ClusterPoolName, took); err != nil {
		return err
	}
	t := base.NewTable("CLAIM", "CLUSTER")
	for _, c := range set.Status.Claims {
		t.AddRow(c.Name, base.ValueOrNone(c.Cluster))
	}
	if err := t.WriteTo(w, a.PaletteFor(w)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nGet a kubeconfig:\n  %s\nRelease all of them:\n  %s\n",
		a.FormatCommand("cluster kubeconfig %s-0 -o %s-0.kubeconfig", set.Name, set.Name), a.FormatCommand("claimset release %s", set.Name))
	return err
}

// adviseClaimSetRemains adds a hint to the error of an aborted wait: the set still exists.
func (a commands) adviseClaimSetRemains(name string, err error) error {
	var by base.InterruptError
	if errors.Is(err, base.ErrTimedOut) || errors.As(err, &by) {
		return base.WithRemedy(err, "the ClaimSet still exists; release it with: "+a.FormatCommand("claimset release %s", name))
	}
	return err
}

// waitForClaimSet waits until the clusters of a set can be used, and returns how long it took. The returned set is never
// nil.
func (a commands) waitForClaimSet(ctx context.Context, h *base.Hub, name string, timeout time.Duration) (*v1alpha1.ClaimSet, string, error) {
	ctx, cancel := base.WithWaitTimeout(ctx, timeout)
	defer cancel()
	v := a.StartProgressView("ClaimSet " + name)
	defer v.Close()
	last := &v1alpha1.ClaimSet{ObjectMeta: h.ObjectMeta(name)}
	l := base.ObjectWaiter[*v1alpha1.ClaimSet]{
		Hub: h, View: v, Object: last.DeepCopy(), List: &v1alpha1.ClaimSetList{},
		CheckDone: func(set *v1alpha1.ClaimSet, exists bool) (bool, error) {
			if !exists || set.DeletionTimestamp != nil {
				return false, fmt.Errorf("ClaimSet %s was released while waiting for its clusters", name)
			}
			last = set.DeepCopy()
			v.ShowState(base.DescribeClaimSet(set))
			return meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ClaimSetClustersRunning), nil
		},
	}
	err := l.WaitUntilDone(ctx)
	if errors.Is(err, base.ErrTimedOut) {
		err = &base.ExitError{Code: base.ExitTimedOut, Err: fmt.Errorf("%w after %s; ClaimSet %s: %s", err, timeout, name, base.DescribeClaimSet(last))}
	}
	return last, v.ElapsedTime(), err
}

// NewSetCommand returns the command "hotspare claimset" with its subcommands.
func NewSetCommand(app *base.App) *cobra.Command {
	a := commands{app}
	cmd := a.NewCommandGroup("claimset", "Claims of several clusters at once", a.listSetsCommand(), a.releaseSetsCommand())
	cmd.Aliases = []string{"claimsets"}
	return cmd
}

func (a commands) listSetsCommand() *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List ClaimSets and how many clusters they have",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: a.WithHub(func(ctx context.Context, h *base.Hub, _ []string) error {
			var list v1alpha1.ClaimSetList
			if err := h.List(ctx, &list, client.InNamespace(base.ListNamespace(h, everywhere))); err != nil {
				return err
			}
			return a.PrintObject(&list, func(w io.Writer) error {
				if len(list.Items) == 0 {
					return a.ReportEmptyList("ClaimSets", h, everywhere, "claim create POOL --count 2 --all-or-none --wait")
				}
				return a.buildClaimSetTable(list.Items, everywhere).WriteTo(w, a.PaletteFor(w))
			})
		}),
	}
	base.AddAllNamespacesFlag(cmd, &everywhere)
	return cmd
}

func (a commands) buildClaimSetTable(sets []v1alpha1.ClaimSet, namespaces bool) *base.Table {
	t := base.NewTable("CLAIMSET", "POOL", "CLUSTERS", "RUNNING", "AGE", "STATE")
	if namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
	}
	for i := range sets {
		set := &sets[i]
		row := []string{
			set.Name, base.ValueOrNone(set.Status.ClusterPoolName), fmt.Sprintf("%d of %d", set.Status.Assigned, set.Spec.Size),
			base.FormatNumber(set.Status.Running), a.FormatAge(set.CreationTimestamp.Time), base.DescribeClaimSet(set),
		}
		if namespaces {
			row = append([]string{set.Namespace}, row...)
		}
		t.AddRow(row...)
	}
	return t
}

func (a commands) releaseSetsCommand() *cobra.Command {
	var wait, diagnose bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:     "release CLAIMSET...",
		Aliases: []string{"delete"},
		Short:   "Release all claims of ClaimSets and destroy their clusters",
		Long: `Release all claims of ClaimSets and destroy their clusters.

With --diagnose, the hub writes a bundle of diagnostics of each cluster before it
destroys the cluster, as with "claim release --diagnose".`,
		Example: `  hotspare claimset release mine
  hotspare claimset release mine --diagnose --wait`,
		Args:              base.RequireNames("ClaimSet"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&diagnose, "diagnose", false, "have the hub write a bundle of diagnostics of each cluster before it destroys the cluster")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the clusters are destroyed")
	cmd.Flags().DurationVar(&timeout, "timeout", base.DefaultTimeout, "with --wait, maximum time to wait (0: no limit)")
	cmd.RunE = a.WithHub(func(ctx context.Context, h *base.Hub, names []string) error {
		for i := range names {
			names[i] = base.StripKindPrefix(names[i])
		}
		if err := a.releaseSets(ctx, h, names, diagnose); err != nil || !wait {
			return err
		}
		return a.waitForSetsGone(ctx, h, names, timeout)
	})
	return cmd
}

// releaseSets deletes sets and prints those that it deleted. An error for one set does not stop it.
func (a commands) releaseSets(ctx context.Context, h *base.Hub, names []string, diagnose bool) error {
	var released v1alpha1.ClaimSetList
	var errs []error
	for _, name := range names {
		set := &v1alpha1.ClaimSet{}
		err := h.Get(ctx, h.ObjectKey(name), set)
		if err == nil && diagnose {
			err = a.requestBundles(ctx, h, set)
		}
		if err == nil {
			err = h.Delete(ctx, set)
		}
		switch {
		case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
			errs = append(errs, base.WithRemedy(fmt.Errorf("namespace %s has no ClaimSet %q", h.Namespace, name), "see: "+a.FormatCommand("claimset list")))
		case err != nil:
			errs = append(errs, fmt.Errorf("releasing ClaimSet %s: %w", name, err))
		default:
			released.Items = append(released.Items, *set)
		}
	}
	if len(released.Items) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, a.PrintObject(&released, func(w io.Writer) error {
		var b strings.Builder
		for _, set := range released.Items {
			fmt.Fprintf(&b, "ClaimSet %s released\n", set.Name)
		}
		_, err := io.WriteString(w, b.String())
		return err
	}))...)
}

// requestBundles requests a bundle of diagnostics of each cluster of a set.
func (a commands) requestBundles(ctx context.Context, h *base.Hub, set *v1alpha1.ClaimSet) error {
	if err := a.patchDiagnoses(ctx, h, set, true); err != nil {
		return base.WithRemedy(err, "release it without bundles: "+a.FormatCommand("claimset release %s", set.Name))
	}
	return nil
}

// waitForSetsGone waits until sets are deleted. A finalizer keeps each set until the clusters of its claims are destroyed.
func (a commands) waitForSetsGone(ctx context.Context, h *base.Hub, names []string, timeout time.Duration) error {
	ctx, cancel := base.WithWaitTimeout(ctx, timeout)
	defer cancel()
	for _, name := range names {
		v := a.StartProgressView("ClaimSet " + name)
		l := base.ObjectWaiter[*v1alpha1.ClaimSet]{
			Hub: h, View: v, Object: &v1alpha1.ClaimSet{ObjectMeta: h.ObjectMeta(name)}, List: &v1alpha1.ClaimSetList{},
			CheckDone: func(_ *v1alpha1.ClaimSet, exists bool) (bool, error) {
				if exists {
					v.ShowState("its clusters are being destroyed")
				}
				return !exists, nil
			},
		}
		err := l.WaitUntilDone(ctx)
		v.Close()
		if errors.Is(err, base.ErrTimedOut) {
			return &base.ExitError{Code: base.ExitTimedOut, Err: fmt.Errorf("%w after %s: ClaimSet %s is released, but its clusters are not destroyed yet", err, timeout, name)}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
