package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/explain/clusterstate"
	"hotspare.io/hotspare/internal/heartbeat"
)

// claimOptions are the flags that describe a claim.
type claimOptions struct {
	name              string
	lifetime, timeout time.Duration
	wait              bool
	// priority is the priority of the claim while it waits; 0 is that of a claim that has none.
	priority int
	// heartbeatTimeout is the timeout of the claim's heartbeat; 0 means none.
	heartbeatTimeout time.Duration
	// diagnoseOnFailure requests a bundle of diagnostics at the release, unless it is withdrawn.
	diagnoseOnFailure bool
	subjects          subjectOptions
	set               setOptions
}

func (o *claimOptions) validate() error {
	if o.lifetime < 0 || o.timeout < 0 {
		return errors.New("--lifetime and --timeout must not be negative")
	}
	if _, err := hivev1.ParsePriority(strconv.Itoa(o.priority)); err != nil {
		return fmt.Errorf("--priority must be from %d to %d", hivev1.MinPriority, hivev1.MaxPriority)
	}
	if o.heartbeatTimeout != 0 && o.heartbeatTimeout < heartbeat.MinTimeout {
		return fmt.Errorf("--heartbeat-timeout must be at least %s, or 0 for no heartbeat", heartbeat.MinTimeout)
	}
	_, err := o.subjects.parseSubjects()
	return err
}

// addPriorityFlag adds --priority.
func (o *claimOptions) addPriorityFlag(f *pflag.FlagSet) {
	f.IntVar(&o.priority, "priority", 0, "if no cluster is free, wait as if the claim had been created this many minutes earlier (negative: later)")
}

func (a commands) createCommand() *cobra.Command {
	o := &claimOptions{}
	cmd := &cobra.Command{
		Use:   "create POOL",
		Short: "Claim a cluster of a pool, or several at once",
		Example: `  hotspare claim create dev --wait --lifetime 8h
  claim=$(hotspare claim create dev --wait -o name)
  hotspare claim create dev --wait --user alice
  hotspare claim create dev --count 4 --all-or-none --wait
  hotspare claim create --count 2 --pool-selector size=large --pool-selector size=small --wait`,
		ValidArgsFunction: a.CompletePools,
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "name of the claim (default: the pool's name with a random suffix)")
	f.DurationVar(&o.lifetime, "lifetime", 0, "release the claim automatically after this time (0: the pool's default)")
	o.addPriorityFlag(f)
	o.subjects.addFlags(f)
	o.set.addFlags(f)
	f.BoolVar(&o.wait, "wait", false, "wait until the cluster can be used")
	f.DurationVar(&o.timeout, "timeout", base.DefaultTimeout, "with --wait, maximum time to wait (0: no limit)")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(o.set.poolSelectors) > 0 && len(args) == 0 {
			return nil
		}
		return base.RequireOneName("pool")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cmp.Or(o.validate(), o.set.validate(args)); err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			if o.set.wantsSet() {
				return a.createClaimSet(ctx, h, args, o)
			}
			return a.runClaimCreate(ctx, h, args[0], o)
		})(cmd, args)
	}
	return cmd
}

func (a commands) runClaimCreate(ctx context.Context, h *base.Hub, poolName string, o *claimOptions) error {
	c, err := a.prepareClaim(ctx, h, poolName, o)
	if err != nil {
		return err
	}
	if err := a.createClaim(ctx, h, c); err != nil {
		return err
	}
	if a.Flags.Output == base.AsName { // before the wait, so that a script knows what to release
		if err := a.PrintNames(c); err != nil || !o.wait {
			return err
		}
		_, _, err := a.waitForClaim(ctx, h, c.Name, o.timeout)
		return a.adviseClaimRemains(c.Name, err)
	}
	if !o.wait {
		return a.PrintObject(c, func(w io.Writer) error { return a.writeClaimCreated(w, c) })
	}
	c, took, err := a.waitForClaim(ctx, h, c.Name, o.timeout)
	if err != nil {
		return a.adviseClaimRemains(c.Name, err)
	}
	return a.PrintObject(c, func(w io.Writer) error { return a.writeClaimServed(w, c, took) })
}

func (a commands) writeClaimCreated(w io.Writer, c *hivev1.ClusterClaim) error {
	_, err := fmt.Fprintf(w, "claim %s created\n\nShow its state:\n  %s\nRelease it:\n  %s\n",
		c.Name, a.FormatCommand("claim list"), a.FormatCommand("claim release %s", c.Name))
	return err
}

func (a commands) writeClaimServed(w io.Writer, c *hivev1.ClusterClaim, took string) error {
	_, err := fmt.Fprintf(w, "claim %s has cluster %s after %s\n\nGet its kubeconfig:\n  %s\nRelease it:\n  %s\n",
		c.Name, c.Spec.Namespace, took,
		a.FormatCommand("cluster kubeconfig %s -o %s.kubeconfig", c.Name, c.Name), a.FormatCommand("claim release %s", c.Name))
	return err
}

// adviseClaimRemains adds a hint to the error of an aborted wait: the claim still exists.
func (a commands) adviseClaimRemains(name string, err error) error {
	var by base.InterruptError
	if errors.Is(err, base.ErrTimedOut) || errors.As(err, &by) {
		return base.WithRemedy(err, "the claim still exists; release it with: "+a.FormatCommand("claim release %s", name))
	}
	return err
}

// prepareClaim returns a claim object for an existing pool, without creating it.
func (a commands) prepareClaim(ctx context.Context, h *base.Hub, poolName string, o *claimOptions) (*hivev1.ClusterClaim, error) {
	if _, err := a.GetPool(ctx, h, poolName); err != nil {
		return nil, err
	}
	subjects, err := o.subjects.parseSubjects()
	if err != nil {
		return nil, err
	}
	name := o.name
	if name == "" {
		name = poolName + "-" + rand.String(5)
	}
	c := &hivev1.ClusterClaim{
		ObjectMeta: h.ObjectMeta(name),
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: poolName, Lifetime: base.ToAPIDuration(o.lifetime), Subjects: subjects},
	}
	if o.priority != 0 {
		c.Annotations = map[string]string{hivev1.AnnotationPriority: strconv.Itoa(o.priority)}
	}
	if o.diagnoseOnFailure {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, hivev1.AnnotationDiagnoseAtRelease, "true")
	}
	return c, nil
}

func (a commands) createClaim(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) error {
	err := h.Create(ctx, c)
	switch {
	case apierrors.IsAlreadyExists(err):
		return base.WithRemedy(fmt.Errorf("namespace %s already has a claim %q", c.Namespace, c.Name),
			"choose another --name, or release it with: "+a.FormatCommand("claim release %s", c.Name))
	case err != nil:
		return fmt.Errorf("creating claim %s: %w", c.Name, err)
	}
	return nil
}

// waitForClaim waits until the claim's cluster can be used, and returns how long it took. The
// returned claim is never nil.
func (a commands) waitForClaim(ctx context.Context, h *base.Hub, name string, timeout time.Duration) (*hivev1.ClusterClaim, string, error) {
	ctx, cancel := base.WithWaitTimeout(ctx, timeout)
	defer cancel()
	v := a.StartProgressView("claim " + name)
	defer v.Close()
	last := &hivev1.ClusterClaim{ObjectMeta: h.ObjectMeta(name)}
	l := base.ObjectWaiter[*hivev1.ClusterClaim]{
		Hub: h, View: v, Object: last.DeepCopy(), List: &hivev1.ClusterClaimList{},
		CheckDone: func(c *hivev1.ClusterClaim, exists bool) (bool, error) {
			if !exists || c.DeletionTimestamp != nil {
				return false, fmt.Errorf("claim %s was released while waiting for its cluster", name)
			}
			last = c.DeepCopy()
			if clusterstate.OfClaim(c) == clusterstate.Lost {
				return false, fmt.Errorf("the cluster of claim %s was deleted; release the claim and create another", name)
			}
			v.ShowState(base.DescribeClaimProgress(c, a.Clock.Now()))
			return clusterstate.IsClaimUsable(c), nil
		},
	}
	err := l.WaitUntilDone(ctx)
	if errors.Is(err, base.ErrTimedOut) {
		err = &base.ExitError{Code: base.ExitTimedOut, Err: fmt.Errorf("%w after %s; claim %s: %s", err, timeout, name, base.DescribeClaimProgress(last, a.Clock.Now()))}
	}
	return last, v.ElapsedTime(), err
}
