package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/explain/clusterstate"
)

// defaultTimeout is how long commands wait unless told otherwise: longer than
// an install takes.
const defaultTimeout = time.Hour

// claimOptions is a claim as the flags describe it.
type claimOptions struct {
	name              string
	lifetime, timeout time.Duration
	wait              bool
}

func (o *claimOptions) validate() error {
	if o.lifetime < 0 || o.timeout < 0 {
		return errors.New("--lifetime and --timeout cannot be below 0")
	}
	return nil
}

func (a *app) claimCreateCommand() *cobra.Command {
	o := &claimOptions{}
	cmd := &cobra.Command{
		Use:   "create POOL",
		Short: "Claim a cluster of a pool",
		Example: `  hotspare claim create dev --wait --lifetime 8h
  claim=$(hotspare claim create dev --wait -o name)`,
		Args:              requireOneName("pool"),
		ValidArgsFunction: a.completePools,
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "name of the claim (default: the pool's with a random ending)")
	f.DurationVar(&o.lifetime, "lifetime", 0, "release it by itself after this time (0: the pool's default)")
	f.BoolVar(&o.wait, "wait", false, "wait until the cluster can be used")
	f.DurationVar(&o.timeout, "timeout", defaultTimeout, "with --wait, the longest to wait (0: for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.validate(); err != nil {
			return usageErrorFor(err, cmd)
		}
		return a.withHub(func(ctx context.Context, h *hub, args []string) error {
			return a.runClaimCreate(ctx, h, args[0], o)
		})(cmd, args)
	}
	return cmd
}

func (a *app) runClaimCreate(ctx context.Context, h *hub, poolName string, o *claimOptions) error {
	c, err := a.prepareClaim(ctx, h, poolName, o)
	if err != nil {
		return err
	}
	if err := a.createClaim(ctx, h, c); err != nil {
		return err
	}
	if a.flags.output == asName { // before the wait, so that a script knows what to release
		if err := a.printNames(c); err != nil || !o.wait {
			return err
		}
		_, _, err := a.waitForClaim(ctx, h, c.Name, o.timeout)
		return a.adviseClaimRemains(c.Name, err)
	}
	if !o.wait {
		return a.printObject(c, func(w io.Writer) error { return a.writeClaimCreated(w, c) })
	}
	c, took, err := a.waitForClaim(ctx, h, c.Name, o.timeout)
	if err != nil {
		return a.adviseClaimRemains(c.Name, err)
	}
	return a.printObject(c, func(w io.Writer) error { return a.writeClaimServed(w, c, took) })
}

func (a *app) writeClaimCreated(w io.Writer, c *hivev1.ClusterClaim) error {
	_, err := fmt.Fprintf(w, "claim %s created\n\nSee what becomes of it:\n  %s\nRelease it:\n  %s\n",
		c.Name, a.formatCommand("claim list"), a.formatCommand("claim release %s", c.Name))
	return err
}

func (a *app) writeClaimServed(w io.Writer, c *hivev1.ClusterClaim, took string) error {
	_, err := fmt.Fprintf(w, "claim %s has cluster %s after %s\n\nGet its kubeconfig:\n  %s\nRelease it:\n  %s\n",
		c.Name, c.Spec.Namespace, took,
		a.formatCommand("cluster kubeconfig %s -o %s.kubeconfig", c.Name, c.Name), a.formatCommand("claim release %s", c.Name))
	return err
}

// adviseClaimRemains adds to why waiting ended that the claim does not end with it.
func (a *app) adviseClaimRemains(name string, err error) error {
	var by interruptError
	if errors.Is(err, errTimedOut) || errors.As(err, &by) {
		return withRemedy(err, "the claim remains; release it with: "+a.formatCommand("claim release %s", name))
	}
	return err
}

// prepareClaim makes a claim, on paper, on a pool that exists.
func (a *app) prepareClaim(ctx context.Context, h *hub, poolName string, o *claimOptions) (*hivev1.ClusterClaim, error) {
	if _, err := a.getPool(ctx, h, poolName); err != nil {
		return nil, err
	}
	name := o.name
	if name == "" {
		name = poolName + "-" + rand.String(5)
	}
	return &hivev1.ClusterClaim{
		ObjectMeta: h.objectMeta(name),
		Spec:       hivev1.ClusterClaimSpec{ClusterPoolName: poolName, Lifetime: toAPIDuration(o.lifetime)},
	}, nil
}

func (a *app) createClaim(ctx context.Context, h *hub, c *hivev1.ClusterClaim) error {
	err := h.Create(ctx, c)
	switch {
	case apierrors.IsAlreadyExists(err):
		return withRemedy(fmt.Errorf("namespace %s has a claim %q already", c.Namespace, c.Name),
			"choose another --name, or release it with: "+a.formatCommand("claim release %s", c.Name))
	case err != nil:
		return fmt.Errorf("creating claim %s: %w", c.Name, err)
	}
	return nil
}

// waitForClaim waits until the claim's cluster can be used, and tells how long it
// took. The claim it returns is never nil.
func (a *app) waitForClaim(ctx context.Context, h *hub, name string, timeout time.Duration) (*hivev1.ClusterClaim, string, error) {
	ctx, cancel := withWaitTimeout(ctx, timeout)
	defer cancel()
	v := a.startProgressView("claim " + name)
	defer v.close()
	last := &hivev1.ClusterClaim{ObjectMeta: h.objectMeta(name)}
	l := objectWaiter[*hivev1.ClusterClaim]{
		hub: h, view: v, object: last.DeepCopy(), list: &hivev1.ClusterClaimList{},
		checkDone: func(c *hivev1.ClusterClaim, exists bool) (bool, error) {
			if !exists || c.DeletionTimestamp != nil {
				return false, fmt.Errorf("claim %s was released while it waited", name)
			}
			last = c.DeepCopy()
			if clusterstate.OfClaim(c) == clusterstate.Lost {
				return false, fmt.Errorf("the cluster of claim %s was deleted; release the claim and make another", name)
			}
			v.showState(describeClaimProgress(c, a.Clock.Now()))
			return clusterstate.IsClaimUsable(c), nil
		},
	}
	err := l.waitUntilDone(ctx)
	if errors.Is(err, errTimedOut) {
		err = &exitError{exitTimedOut, fmt.Errorf("%w after %s; claim %s: %s", err, timeout, name, describeClaimProgress(last, a.Clock.Now()))}
	}
	return last, v.elapsedTime(), err
}

// describeClaimProgress is the state of a claim, with why.
func describeClaimProgress(c *hivev1.ClusterClaim, now time.Time) string {
	state, typ := clusterstate.OfClaim(c), hivev1.ClaimClusterRunning
	switch state {
	case clusterstate.Running:
		return state + " on " + c.Spec.Namespace
	case clusterstate.Waiting:
		typ = hivev1.ClaimPending
		switch nth, when := describeQueuePosition(c, now); {
		case when != "":
			return fmt.Sprintf("%s (%s in line, a cluster is expected: %s)", state, nth, when)
		case nth != "":
			return fmt.Sprintf("%s (%s in line)", state, nth)
		}
	}
	if found := condition.Find(c.Status.Conditions, typ); found != nil && found.Message != "" {
		return fmt.Sprintf("%s (%s)", state, found.Message)
	}
	return state
}
