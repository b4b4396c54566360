package recipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/cloud"
)

// CheckState is how a check has ended.
type CheckState string

// A check has passed or failed, or was skipped, because the recipe lacks what it needs or because an
// earlier check failed.
const (
	CheckPassed  CheckState = "ok"
	CheckFailed  CheckState = "FAILED"
	CheckSkipped CheckState = "skipped"
)

// Check is one line of the conformance suite's table.
type Check struct {
	Name   string        `json:"name"`
	State  CheckState    `json:"state"`
	Detail string        `json:"detail,omitempty"`
	Took   time.Duration `json:"took"`
}

// Suite runs the conformance suite on a recipe. The suite creates and destroys real clusters.
type Suite struct {
	Recipe *Recipe
	// With are the parameters, without defaults.
	With map[string]string
	// Dir is an empty folder for the state of the suite's clusters.
	Dir     string
	Secrets string
	Log     io.Writer
	// Random chooses when programs are killed.
	Random *rand.Rand
	// Pause is the time between two calls of a verb that exits with 10, and between two observations.
	Pause time.Duration
	// Patience bounds the wait for each goal.
	Patience time.Duration
	// KillWithin bounds the random time after which a program is killed; zero means 2 s.
	KillWithin time.Duration
	// Report receives each check as it ends; nil ignores them.
	Report func(Check)

	with     map[string]string
	clusters int
}

// errSkipped explains why a check cannot run with this recipe.
type errSkipped string

func (e errSkipped) Error() string { return string(e) }

// Run runs all checks and returns them in order. Whatever a check leaves behind, the suite destroys.
func (s *Suite) Run(ctx context.Context) []Check {
	var out []Check
	for _, c := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"the parameters match the recipe", s.checkParameters},
		{"the programs that it needs are here", s.checkPrograms},
		{"destroying what never existed succeeds", s.checkDestroyOfNothing},
		{"prepare creates nothing", s.checkPrepare},
		{"a cluster is created and has a kubeconfig", s.checkCreate},
		{"creating twice creates one cluster", s.checkCreateTwice},
		{"a running cluster stops and starts", s.checkPower},
		{"a cluster whose state is lost is destroyed", s.checkDestroyWithoutState},
		{"destroying twice succeeds", s.checkDestroyTwice},
		{"two clusters do not disturb each other", s.checkTwoClusters},
		{"create may be killed at any time", s.checkKilledCreate},
		{"stop and start may be killed at any time", s.checkKilledPower},
		{"destroy may be killed at any time", s.checkKilledDestroy},
	} {
		begun := time.Now()
		detail, err := c.run(ctx)
		check := Check{Name: c.name, State: CheckPassed, Detail: detail, Took: time.Since(begun)}
		var skipped errSkipped
		switch {
		case errors.As(err, &skipped):
			check.State, check.Detail = CheckSkipped, err.Error()
		case err != nil:
			check.State, check.Detail = CheckFailed, err.Error()
		}
		out = append(out, check)
		if s.Report != nil {
			s.Report(check)
		}
		if check.State == CheckFailed && (len(out) <= 2 || ctx.Err() != nil) {
			break // nothing else can pass
		}
	}
	return out
}

func (s *Suite) checkParameters(context.Context) (string, error) {
	with, err := s.Recipe.Parameters.Complete(s.With)
	if err != nil {
		return "", err
	}
	s.with = with
	return fmt.Sprintf("%d set", len(with)), nil
}

func (s *Suite) checkPrograms(context.Context) (string, error) {
	if missing := s.Recipe.Needs.Missing(); len(missing) > 0 {
		return "", fmt.Errorf("needs.programs: %s not found in PATH: install what is missing", strings.Join(missing, ", "))
	}
	return strings.Join(s.Recipe.Needs.Programs, ", "), nil
}

func (s *Suite) checkDestroyOfNothing(ctx context.Context) (string, error) {
	c := s.newCluster()
	c.Input.InfraID = c.defaultInfraID()
	return "", s.callUntilDone(ctx, c, Destroy)
}

func (s *Suite) checkPrepare(ctx context.Context) (string, error) {
	c := s.newCluster()
	p, err := c.Prepare(ctx)
	if err != nil {
		return "", err
	}
	c = c.WithPrepared(p)
	ms, can, err := c.Observe(ctx)
	if err != nil {
		return "", err
	}
	if len(ms) > 0 {
		return "", errors.Join(fmt.Errorf("after prepare, observe shows %s: prepare must create nothing", ms), s.destroy(ctx, c))
	}
	if !can {
		return "infraID " + p.InfraID + "; not observed: the recipe has no program observe", s.destroy(ctx, c)
	}
	return "infraID " + p.InfraID, s.destroy(ctx, c)
}

func (s *Suite) checkCreate(ctx context.Context) (string, error) {
	return s.withCluster(ctx, func(c Cluster) (string, error) {
		if _, err := c.ReadKubeconfig(ctx); err != nil {
			return "", err
		}
		ms, can, err := c.Observe(ctx)
		switch {
		case err != nil:
			return "", err
		case !can:
			return "not observed: the recipe has no program observe", nil
		case !ms.AllIn(cloud.Running):
			return "", fmt.Errorf("after create, observe shows %s: all machines must be Running", orNoMachines(ms))
		}
		return ms.String(), nil
	})
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
			err = fmt.Errorf("observe showed %s, and after another create %s", before, after)
		}
		if !can {
			return "not observed: the recipe has no program observe", err
		}
		return "", err
	})
}

func (s *Suite) checkPower(ctx context.Context) (string, error) {
	if !s.Recipe.CanHibernate() {
		return "", errSkipped("the recipe has no programs stop and start: its clusters do not hibernate")
	}
	return s.withCluster(ctx, func(c Cluster) (string, error) {
		for _, step := range []struct {
			verb Verb
			want cloud.State
		}{{Stop, cloud.Stopped}, {Stop, cloud.Stopped}, {Start, cloud.Running}, {Start, cloud.Running}} {
			if err := s.reachState(ctx, c, step.verb, step.want); err != nil {
				return "", err
			}
		}
		_, err := c.ReadKubeconfig(ctx)
		return "", err
	})
}

func (s *Suite) checkDestroyWithoutState(ctx context.Context) (string, error) {
	c, err := s.create(ctx)
	if err != nil {
		return "", errors.Join(err, s.destroy(ctx, c))
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return "", err
	}
	return "", s.destroy(ctx, c)
}

func (s *Suite) checkDestroyTwice(ctx context.Context) (string, error) {
	c, err := s.create(ctx)
	if err = errors.Join(err, s.destroy(ctx, c)); err != nil {
		return "", err
	}
	return "", s.destroy(ctx, c)
}

func (s *Suite) checkTwoClusters(ctx context.Context) (string, error) {
	return s.withCluster(ctx, func(a Cluster) (string, error) {
		return s.withCluster(ctx, func(b Cluster) (string, error) {
			if a.Input.InfraID == b.Input.InfraID {
				return "", fmt.Errorf("both have infraID %s: derive it from the name and the attempt in %s", a.Input.InfraID, inputFile)
			}
			before, can, err := b.Observe(ctx)
			if err == nil {
				err = s.destroy(ctx, a)
			}
			if err != nil || !can {
				return "", err
			}
			after, _, err := b.Observe(ctx)
			if err == nil && before.String() != after.String() {
				err = fmt.Errorf("the second cluster was %s, and after the destruction of the first %s", before, orNoMachines(after))
			}
			return "", err
		})
	})
}

func (s *Suite) checkKilledCreate(ctx context.Context) (string, error) {
	c := s.newCluster()
	p, err := c.Prepare(ctx)
	if err != nil {
		return "", err
	}
	c = c.WithPrepared(p)
	after, err := s.killDuring(ctx, c, Create)
	return after, errors.Join(err, s.destroy(ctx, c))
}

func (s *Suite) checkKilledPower(ctx context.Context) (string, error) {
	if !s.Recipe.CanHibernate() {
		return "", errSkipped("the recipe has no programs stop and start: its clusters do not hibernate")
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
	c, err := s.create(ctx)
	if err != nil {
		return "", errors.Join(err, s.destroy(ctx, c))
	}
	after, err := s.killDuring(ctx, c, Destroy)
	return after, errors.Join(err, s.destroy(ctx, c))
}

// killDuring starts a verb and kills it, and all of its process group, after a random time.
func (s *Suite) killDuring(ctx context.Context, c Cluster, v Verb) (string, error) {
	longest := s.KillWithin
	if longest == 0 {
		longest = 2 * time.Second
	}
	after := time.Duration(s.Random.Int64N(int64(longest)))
	limit, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	c.StopGrace = time.Nanosecond // SIGKILL at once
	_, err := c.Call(limit, v)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if limit.Err() == nil {
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s ended before it was killed", v), nil
	}
	return fmt.Sprintf("%s killed after %s", v, after.Round(time.Millisecond)), nil
}

// newCluster returns another cluster, which does not exist yet.
func (s *Suite) newCluster() Cluster {
	s.clusters++
	name := fmt.Sprintf("conformance-%d", s.clusters)
	return Cluster{
		Recipe: s.Recipe, Dir: filepath.Join(s.Dir, name), Secrets: s.Secrets, Log: s.Log,
		Input: Input{Namespace: name, Name: name, UID: fmt.Sprintf("%s-%x", name, s.Random.Uint64()), With: s.with},
	}
}

// create creates a cluster. It returns the cluster also with an error, to be destroyed.
func (s *Suite) create(ctx context.Context) (Cluster, error) {
	c := s.newCluster()
	p, err := c.Prepare(ctx)
	if err != nil {
		c.Input.InfraID = c.defaultInfraID()
		return c, err
	}
	c = c.WithPrepared(p)
	return c, s.callUntilDone(ctx, c, Create)
}

// withCluster creates a cluster, calls check, and destroys the cluster in any case.
func (s *Suite) withCluster(ctx context.Context, check func(Cluster) (string, error)) (string, error) {
	c, err := s.create(ctx)
	detail := ""
	if err == nil {
		detail, err = check(c)
	}
	return detail, errors.Join(err, s.destroy(ctx, c))
}

// destroy destroys a cluster in a new state folder and confirms that no machine is left.
func (s *Suite) destroy(ctx context.Context, c Cluster) error {
	// Also after a Ctrl-C: what the suite created costs money.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Patience)
	defer cancel()
	if err := s.callUntilDone(ctx, c, Destroy); err != nil {
		return fmt.Errorf("%w (infraID %s may be left over)", err, c.Input.InfraID)
	}
	ms, _, err := c.Observe(ctx)
	if err == nil && len(ms) > 0 {
		err = fmt.Errorf("destroy succeeded and observe shows %s of infraID %s", ms, c.Input.InfraID)
	}
	return err
}

func (s *Suite) callUntilDone(ctx context.Context, c Cluster, v Verb) error {
	return s.poll(ctx, fmt.Sprintf("%s to succeed", v), func() (bool, error) {
		again, err := c.Call(ctx, v)
		return !again, err
	})
}

// reachState calls a verb until all machines are in state want.
func (s *Suite) reachState(ctx context.Context, c Cluster, v Verb, want cloud.State) error {
	var last cloud.Machines
	err := s.poll(ctx, fmt.Sprintf("all machines to be %s", want), func() (bool, error) {
		if _, err := c.Call(ctx, v); err != nil {
			return false, err
		}
		ms, _, err := c.Observe(ctx)
		last = ms
		return ms.AllIn(want), err
	})
	if err != nil {
		return fmt.Errorf("%w; observe shows %s", err, orNoMachines(last))
	}
	return nil
}

// poll repeats try until it is done, fails, or the suite's patience ends.
func (s *Suite) poll(ctx context.Context, goal string, try func() (done bool, err error)) error {
	deadline := time.Now().Add(s.Patience)
	for {
		done, err := try()
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s for %s", s.Patience, goal)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.Pause):
		}
	}
}

func orNoMachines(ms cloud.Machines) string {
	if len(ms) == 0 {
		return "no machines"
	}
	return ms.String()
}

// Table returns the checks as a text table.
func Table(checks []Check) string {
	var out bytes.Buffer
	for _, c := range checks {
		fmt.Fprintf(&out, "%-8s %-48s %7s  %s\n", c.State, c.Name, c.Took.Round(time.Millisecond), c.Detail)
	}
	return out.String()
}
