package recipe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

const (
	detailNotObserved = "not observed: the recipe has no program observe"

	errNoPower = skippedError("the recipe has no programs stop and start: its clusters do not hibernate")
)

func (s *Suite) checkParameters(context.Context) (string, error) {
	with, err := s.Recipe.Parameters.Complete(s.With)
	if err != nil {
		return "", err
	}
	if _, err := readSecrets(s.Secrets); err != nil {
		return "", err
	}
	s.with = with
	return fmt.Sprintf("%d set", len(with)), nil
}

func (s *Suite) checkPrograms(context.Context) (string, error) {
	if missing := s.Recipe.Needs.Missing(); len(missing) > 0 {
		return "", fmt.Errorf("needs.programs: not in PATH: %s: install them", strings.Join(missing, ", "))
	}
	return strings.Join(s.Recipe.Needs.Programs, ", "), nil
}

func (s *Suite) checkDestroyOfNothing(ctx context.Context) (string, error) {
	c := s.newCluster()
	c.Input.InfraID = c.defaultInfraID()
	return "", s.callUntilDone(ctx, c, Destroy)
}

func (s *Suite) checkPrepare(ctx context.Context) (string, error) {
	c, err := s.prepareCluster(ctx)
	detail := ""
	if err == nil {
		detail, err = s.confirmNoMachines(ctx, c)
	}
	if err == nil {
		err = confirmOtherInfraID(ctx, c)
	}
	return detail, errors.Join(err, s.destroyCluster(ctx, c))
}

// confirmOtherInfraID returns an error if prepare prints the same infraID for the next attempt: hotspare
// would refuse it.
func confirmOtherInfraID(ctx context.Context, c Cluster) error {
	next := c
	next.Input.InfraID, next.Input.Metadata = "", nil
	next.Input.Attempt++
	p, err := next.Prepare(ctx)
	if err == nil && p.InfraID == c.Input.InfraID {
		err = fmt.Errorf("prepare printed infraID %s for two attempts to create a cluster: derive it from name, uid and attempt in %s", p.InfraID, InputFile)
	}
	return err
}

func (s *Suite) confirmNoMachines(ctx context.Context, c Cluster) (string, error) {
	ms, can, err := c.Observe(ctx)
	switch {
	case err != nil:
		return "", err
	case len(ms) > 0:
		return "", fmt.Errorf("after prepare, observe prints %s: prepare must not create machines", ms)
	case !can:
		return "infraID " + c.Input.InfraID + "; " + detailNotObserved, nil
	}
	return "infraID " + c.Input.InfraID, nil
}

func (s *Suite) checkCreate(ctx context.Context) (string, error) {
	return s.withCluster(ctx, func(c Cluster) (string, error) {
		kubeconfig, err := c.ReadKubeconfig(ctx)
		if err != nil {
			return "", err
		}
		ms, can, err := c.Observe(ctx)
		switch {
		case err != nil:
			return "", err
		case !can:
			return detailNotObserved, s.waitUntilUsable(ctx, c, Create, kubeconfig, nil)
		case !ms.AllIn(cloud.Running):
			return "", fmt.Errorf("after create, observe prints %s: all machines must be Running", describeMachines(ms))
		}
		return ms.String(), s.waitUntilUsable(ctx, c, Create, kubeconfig, ms)
	})
}

// maxUsableWait is how long a cluster may need to become usable after create or start has succeeded, and
// unusable after stop has.
const maxUsableWait = 2 * time.Minute

// waitUntilUsable waits until pools could use a cluster, after a verb has succeeded.
func (s *Suite) waitUntilUsable(ctx context.Context, c Cluster, after Verb, kubeconfig []byte, ms cloud.Machines) error {
	return s.waitForUse(ctx, c, kubeconfig, ms, func(unusable error, limit time.Duration) error {
		if unusable == nil {
			return nil
		}
		return fmt.Errorf("%s has succeeded, and no pool could use the cluster %s later: %w", after, limit, unusable)
	})
}

// waitUntilUnusable waits until a cluster that was stopped cannot be used. observe could print what was
// requested, and machines that run cost money.
func (s *Suite) waitUntilUnusable(ctx context.Context, c Cluster, kubeconfig []byte, ms cloud.Machines) error {
	return s.waitForUse(ctx, c, kubeconfig, ms, func(unusable error, limit time.Duration) error {
		if unusable != nil {
			return nil //nolint:nilerr // it is what is wanted
		}
		return fmt.Errorf("stop has succeeded, and the API of the cluster still answers %s later: stop the machines, and let observe print whether they run", limit)
	})
}

// waitForUse repeats CheckUsable until judge returns nil for its result, or returns the error of judge after
// maxUsableWait.
func (s *Suite) waitForUse(
	ctx context.Context, c Cluster, kubeconfig []byte, ms cloud.Machines, judge func(unusable error, limit time.Duration) error,
) error {
	if s.CheckUsable == nil {
		return nil
	}
	limit := min(s.Patience, maxUsableWait)
	for deadline := time.Now().Add(limit); ; {
		err := judge(s.CheckUsable(ctx, c, kubeconfig, ms.ExpectNodes()), limit)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.Pause):
		}
	}
}

func (s *Suite) checkCreateTwice(ctx context.Context) (string, error) {
	return s.withCluster(ctx, func(c Cluster) (string, error) {
		before, can, err := c.Observe(ctx)
		if err != nil {
			return "", err
		}
		if err := s.callUntilDone(ctx, c, Create); err != nil {
			return "", err
		}
		after, _, err := c.Observe(ctx)
		if err == nil && before.String() != after.String() {
			err = fmt.Errorf("observe printed %s, and %s after a second create: continue with the machines that exist", before, describeMachines(after))
		}
		if !can {
			return detailNotObserved, err
		}
		return "", err
	})
}

func (s *Suite) checkPower(ctx context.Context) (string, error) {
	if !s.Recipe.CanHibernate() {
		return "", errNoPower
	}
	return s.withCluster(ctx, func(c Cluster) (string, error) {
		kubeconfig, err := c.ReadKubeconfig(ctx)
		if err != nil {
			return "", err
		}
		ms, _, err := c.Observe(ctx)
		if err == nil {
			err = s.reachStateTwice(ctx, c, Stop, cloud.Stopped)
		}
		if err == nil {
			err = s.waitUntilUnusable(ctx, c, kubeconfig, ms)
		}
		if err == nil {
			err = s.reachStateTwice(ctx, c, Start, cloud.Running)
		}
		if err == nil {
			kubeconfig, err = c.ReadKubeconfig(ctx)
		}
		if err == nil {
			err = s.waitUntilUsable(ctx, c, Start, kubeconfig, ms)
		}
		return "", err
	})
}

// reachStateTwice calls reachState twice: the second call must change nothing.
func (s *Suite) reachStateTwice(ctx context.Context, c Cluster, verb Verb, want cloud.State) error {
	if err := s.reachState(ctx, c, verb, want); err != nil {
		return err
	}
	return s.reachState(ctx, c, verb, want)
}

func (s *Suite) checkDestroyWithoutState(ctx context.Context) (string, error) {
	c, err := s.createCluster(ctx)
	if err == nil {
		err = os.RemoveAll(c.Dir)
	}
	return "", errors.Join(err, s.destroyCluster(ctx, c))
}

func (s *Suite) checkDestroyTwice(ctx context.Context) (string, error) {
	c, err := s.createCluster(ctx)
	if err = errors.Join(err, s.destroyCluster(ctx, c)); err != nil {
		return "", err
	}
	return "", s.destroyCluster(ctx, c)
}

func (s *Suite) checkTwoClusters(ctx context.Context) (string, error) {
	return s.withCluster(ctx, func(a Cluster) (string, error) {
		return s.withCluster(ctx, func(b Cluster) (string, error) {
			if a.Input.InfraID == b.Input.InfraID {
				return "", fmt.Errorf("both clusters have infraID %s: derive it from name, uid and attempt in %s", a.Input.InfraID, InputFile)
			}
			before, can, err := b.Observe(ctx)
			if err == nil {
				err = s.destroyCluster(ctx, a)
			}
			if err != nil || !can {
				return detailNotObserved, err
			}
			after, _, err := b.Observe(ctx)
			if err == nil && before.String() != after.String() {
				err = fmt.Errorf("observe printed %s for the second cluster, and %s after the first one was destroyed", before, describeMachines(after))
			}
			return "", err
		})
	})
}

func (s *Suite) checkKilledCreate(ctx context.Context) (string, error) {
	c, err := s.prepareCluster(ctx)
	detail := ""
	if err == nil {
		detail, err = s.killDuring(ctx, c, Create)
	}
	return detail, errors.Join(err, s.destroyCluster(ctx, c))
}

func (s *Suite) checkKilledPower(ctx context.Context) (string, error) {
	if !s.Recipe.CanHibernate() {
		return "", errNoPower
	}
	return s.withCluster(ctx, func(c Cluster) (string, error) {
		stop, err := s.killDuring(ctx, c, Stop)
		if err == nil {
			err = s.reachState(ctx, c, Stop, cloud.Stopped)
		}
		if err != nil {
			return stop, err
		}
		start, err := s.killDuring(ctx, c, Start)
		if err == nil {
			err = s.reachState(ctx, c, Start, cloud.Running)
		}
		return stop + "; " + start, err
	})
}

func (s *Suite) checkKilledDestroy(ctx context.Context) (string, error) {
	c, err := s.createCluster(ctx)
	detail := ""
	if err == nil {
		detail, err = s.killDuring(ctx, c, Destroy)
	}
	return detail, errors.Join(err, s.destroyCluster(ctx, c))
}
