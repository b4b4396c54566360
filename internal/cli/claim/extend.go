package claim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/patch"
)

// An extension is how a claim's lifetime is lengthened. Exactly one field is set.
type extension struct {
	// by is added to the lifetime, which lifetime replaces.
	by, lifetime time.Duration
	// until is the new end of the lifetime.
	until time.Time
}

// A term is what a claim's lifetime is, and can be.
type term struct {
	// assigned is when the claim got its cluster, and its lifetime began; zero while it waits.
	assigned time.Time
	// lifetime is the lifetime in effect, maximum the longest that the pool and the ClaimPolicies allow. 0 means no limit.
	lifetime, maximum time.Duration
}

// A maximumError is the error of an extension beyond the maximum, which it describes.
type maximumError string

func (e maximumError) Error() string { return string(e) }

// extend returns the lifetime of the claim after an extension. It returns an error if the extension
// would not lengthen the lifetime, would end in the past, or exceeds the maximum (maximumError).
func (t term) extend(e extension, now time.Time) (time.Duration, error) {
	if t.lifetime == 0 {
		return 0, errors.New("it has no lifetime that could end: it keeps its cluster until you release it")
	}
	if !e.until.IsZero() && t.assigned.IsZero() {
		return 0, errors.New("its lifetime begins when it gets a cluster, and it has none yet: use --by or --lifetime")
	}
	longer := e.lifetime
	switch {
	case e.by > 0:
		longer = t.lifetime + e.by
	case !e.until.IsZero():
		longer = ceilSecond(e.until.Sub(t.assigned))
	}
	switch {
	case longer <= t.lifetime:
		return 0, fmt.Errorf("it already has a lifetime of %s%s, and an extension only lengthens that", formatLifetime(t.lifetime), t.describeEnd(t.lifetime))
	case t.maximum > 0 && longer > t.maximum:
		return 0, maximumError(fmt.Sprintf("the longest lifetime of this claim is %s%s", formatLifetime(t.maximum), t.describeEnd(t.maximum)))
	case longer > hivev1.MaxDuration:
		return 0, maximumError("a lifetime of more than ten years is not valid")
	case !t.assigned.IsZero() && !t.endOf(longer).After(now):
		return 0, fmt.Errorf("a lifetime of %s has already ended, at %s", formatLifetime(longer), formatTime(t.endOf(longer)))
	}
	return longer, nil
}

func (t term) endOf(lifetime time.Duration) time.Time { return t.assigned.Add(lifetime) }

// describeEnd returns ", until TIME" for a lifetime that has begun.
func (t term) describeEnd(lifetime time.Duration) string {
	if t.assigned.IsZero() {
		return ""
	}
	return ", until " + formatTime(t.endOf(lifetime))
}

func ceilSecond(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

func formatLifetime(d time.Duration) string { return string(*base.ToAPIDuration(d)) }

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// extendOptions are the flags of claim extend.
type extendOptions struct {
	by, lifetime time.Duration
	until        string
}

// parse returns the extension that the flags ask for.
func (o *extendOptions) parse() (extension, error) {
	e := extension{by: o.by, lifetime: o.lifetime}
	if o.until != "" {
		var err error
		if e.until, err = time.Parse(time.RFC3339, o.until); err != nil {
			return e, fmt.Errorf("--until %q is not a time: write it as 2026-11-21T18:00:00Z", o.until)
		}
	}
	if max(o.by, o.lifetime) > hivev1.MaxDuration || min(o.by, o.lifetime) < 0 {
		return e, errors.New("--by and --lifetime must be above 0 and at most ten years, 87600h")
	}
	set := 0
	for _, isSet := range []bool{e.by != 0, e.lifetime != 0, !e.until.IsZero()} {
		if isSet {
			set++
		}
	}
	if set != 1 {
		return e, errors.New("set exactly one of --by, --until and --lifetime")
	}
	return e, nil
}

func (a commands) extendCommand() *cobra.Command {
	o := &extendOptions{}
	cmd := &cobra.Command{
		Use:   "extend CLAIM {--by DURATION | --until TIME | --lifetime DURATION}",
		Short: "Lengthen the lifetime of a claim",
		Long: `Lengthen the lifetime of a claim, at most to the maximum that its pool allows.

The lifetime of a claim begins when the claim gets its cluster. A claim that is being
released cannot be extended.`,
		Example: `  hotspare claim extend mine --by 2h
  hotspare claim extend mine --until 2026-11-21T18:00:00Z
  hotspare claim extend mine --lifetime 12h`,
		Args:              base.RequireOneName("claim"),
		ValidArgsFunction: a.CompleteOneClaim,
	}
	f := cmd.Flags()
	f.DurationVar(&o.by, "by", 0, "add this time to the lifetime")
	f.StringVar(&o.until, "until", "", "new end of the lifetime, such as 2026-11-21T18:00:00Z")
	f.DurationVar(&o.lifetime, "lifetime", 0, "new lifetime, counted from when the claim got its cluster")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := o.parse()
		if err != nil {
			return base.UsageErrorFor(err, cmd)
		}
		return a.WithHub(func(ctx context.Context, h *base.Hub, args []string) error {
			return a.runClaimExtend(ctx, h, args[0], e)
		})(cmd, args)
	}
	return cmd
}

func (a commands) runClaimExtend(ctx context.Context, h *base.Hub, name string, e extension) error {
	var c *hivev1.ClusterClaim
	var t term
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		c, t, err = a.extendClaim(ctx, h, name, e)
		return err
	})
	var tooLong maximumError
	switch {
	case errors.As(err, &tooLong) && t.maximum > t.lifetime:
		return base.WithRemedy(err, "extend it to the maximum with: "+a.FormatCommand("claim extend %s --lifetime %s", name, formatLifetime(t.maximum)))
	case err != nil:
		return err
	}
	return a.PrintObject(c, func(w io.Writer) error {
		if t.assigned.IsZero() {
			_, err := fmt.Fprintf(w, "claim %s has a lifetime of %s, which begins when it gets its cluster\n", name, *c.Spec.Lifetime)
			return err
		}
		_, err := fmt.Fprintf(w, "claim %s ends at %s, in %s: its lifetime is %s\n", name,
			formatTime(t.endOf(t.lifetime)), duration.HumanDuration(t.endOf(t.lifetime).Sub(a.Clock.Now())), *c.Spec.Lifetime)
		return err
	})
}

// extendClaim extends a claim, and returns it with its new term. It returns a conflict if the claim
// has changed meanwhile, as by its release. hotspare deletes an expired claim only if it has not changed,
// either: a claim cannot be both extended and deleted.
func (a commands) extendClaim(ctx context.Context, h *base.Hub, name string, e extension) (*hivev1.ClusterClaim, term, error) {
	c := &hivev1.ClusterClaim{}
	if err := h.Get(ctx, h.ObjectKey(name), c); err != nil {
		return nil, term{}, a.ClaimReadError(h, name, err)
	}
	if c.DeletionTimestamp != nil {
		return nil, term{}, releasedError(name)
	}
	t, err := a.readTerm(ctx, h, c)
	if err != nil {
		return nil, t, err
	}
	longer, err := t.extend(e, a.Clock.Now())
	if err != nil {
		return nil, t, fmt.Errorf("extending claim %s: %w", name, err)
	}
	before := c.DeepCopy()
	c.Spec.Lifetime = base.ToAPIDuration(longer)
	if _, err := patch.Object(ctx, h, before, c); err != nil {
		return nil, t, fmt.Errorf("extending claim %s: %w", name, err)
	}
	t.lifetime = longer
	return c, t, nil
}

func releasedError(name string) error {
	return fmt.Errorf("claim %s cannot be extended: it has been released or has expired, and its cluster is being destroyed; create another claim", name)
}

// readTerm reads the claim's lifetime, and the limits of its pool and of the ClaimPolicies.
func (a commands) readTerm(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) (term, error) {
	var pool hivev1.ClusterPool
	if err := h.Get(ctx, h.ObjectKey(c.Spec.ClusterPoolName), &pool); client.IgnoreNotFound(err) != nil || base.IsAPIMissing(err) {
		return term{}, fmt.Errorf("reading pool %s, which limits the lifetime of claim %s: %w", c.Spec.ClusterPoolName, c.Name, err)
	}
	limits := hivev1.ClusterPoolClaimLifetime{}
	if pool.Spec.ClaimLifetime != nil {
		limits = *pool.Spec.ClaimLifetime
	}
	policies, err := readPolicies(ctx, h, c)
	if err != nil {
		return term{}, err
	}
	limits.Default, limits.Maximum = claimpolicy.NarrowLifetimeBounds(policies, claimpolicy.ReadCreator(c), c.Spec.ClusterPoolName, limits.Default, limits.Maximum)
	var t term
	if t.lifetime, err = claim.EffectiveLifetime(c.Spec.Lifetime, limits.Default, limits.Maximum); err != nil {
		return t, fmt.Errorf("claim %s: spec.lifetime: %w", c.Name, err)
	}
	if limits.Maximum != nil {
		if t.maximum, err = limits.Maximum.Parse(); err != nil {
			t.maximum = 0 // as hotspare, which ignores a maximum that is not valid
		}
	}
	t.assigned, err = a.readAssignmentTime(ctx, h, c)
	return t, err
}

// readPolicies returns the ClaimPolicies of the claim's namespace. A user who may not read them learns
// their limit from the claim's status.
func readPolicies(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) ([]claimpolicy.Policy, error) {
	var list v1alpha1.ClaimPolicyList
	err := h.List(ctx, &list, client.InNamespace(c.Namespace))
	if err != nil && !apierrors.IsForbidden(err) && !base.IsAPIMissing(err) {
		return nil, fmt.Errorf("listing the ClaimPolicies of namespace %s: %w", c.Namespace, err)
	}
	return claimpolicy.ReadPolicies(list.Items), nil
}

// readAssignmentTime returns when a claim got its cluster; zero while it waits. A user who may not read
// the cluster gets the time from the claim's condition, which is set a moment later.
func (a commands) readAssignmentTime(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim) (time.Time, error) {
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if c.Spec.Namespace == "" {
		return time.Time{}, nil
	}
	cd, err := a.GetClaimCluster(ctx, h, c)
	switch {
	case err != nil && !apierrors.IsForbidden(err):
		return time.Time{}, err
	case err == nil && cd.Spec.ClusterPoolRef != nil && cd.Spec.ClusterPoolRef.ClaimedTimestamp != nil:
		return cd.Spec.ClusterPoolRef.ClaimedTimestamp.Time, nil
	case pending != nil && pending.Reason == hivev1.ReasonClusterClaimed:
		return pending.LastTransitionTime.Time, nil
	default:
		return time.Time{}, fmt.Errorf("claim %s is getting its cluster: try again in a few seconds", c.Name)
	}
}
