package recipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
)

// CheckState is the result of a check.
type CheckState string

// Results of a check. A check is skipped if the recipe lacks the programs for it, or if it needs a
// cluster and create failed.
const (
	CheckPassed  CheckState = "ok"
	CheckFailed  CheckState = "FAILED"
	CheckSkipped CheckState = "skipped"
)

// Check is one check of the conformance suite.
type Check struct {
	Name   string        `json:"name"`
	State  CheckState    `json:"state"`
	Detail string        `json:"detail,omitempty"`
	Took   time.Duration `json:"took"`
}

// Suite is the conformance suite for recipes. It creates and destroys real clusters.
type Suite struct {
	Recipe *Recipe
	// With are the parameters, without defaults.
	With map[string]string
	// Dir is an empty folder for the state of the suite's clusters.
	Dir string
	// Secrets is as in Run.
	Secrets string
	// Log is as in Run.
	Log io.Writer
	// Random chooses the times at which the suite kills programs.
	Random *rand.Rand
	// Pause is the time between two calls of a verb that exits with 10, and between two observations.
	Pause time.Duration
	// Patience is how long the suite waits for one goal, such as a created cluster.
	Patience time.Duration
	// KillWithin is the maximum time after which the suite kills a program. If it is zero, the suite uses
	// the time that the program took in an earlier check, or 2 s.
	KillWithin time.Duration
	// CheckUsable returns why pools could not use a cluster; nil skips this. expectNodes is false if no
	// machine is a node. After create and start, Suite repeats it until it returns nil, and after stop until it
	// does not, for two minutes, or for Patience if that is shorter.
	CheckUsable func(ctx context.Context, c Cluster, kubeconfig []byte, expectNodes bool) error
	// Begin is called before each check, and Report after it; nil ignores them.
	Begin  func(name string)
	Report func(Check)

	with     map[string]string
	clusters int
	// took is the longest time that one call of each verb took.
	took map[Verb]time.Duration
}

// skippedError is the reason why a check cannot run.
type skippedError string

func (e skippedError) Error() string { return string(e) }

// suiteCheck is a check before it runs.
type suiteCheck struct {
	name string
	run  func(*Suite, context.Context) (detail string, err error)
	// isRequired is true if no later check can pass when this one fails.
	isRequired bool
	// needsCreate is true if the check cannot pass unless checkCreate has passed.
	needsCreate bool
}

// createCheck is the name of the check on which others depend.
const createCheck = "create creates a cluster with a kubeconfig"

var suiteChecks = []suiteCheck{
	{name: "the parameters and secrets are valid", run: (*Suite).checkParameters, isRequired: true},
	{name: "the required programs are installed", run: (*Suite).checkPrograms, isRequired: true},
	{name: "destroy succeeds if nothing was created", run: (*Suite).checkDestroyOfNothing},
	{name: "prepare creates nothing", run: (*Suite).checkPrepare},
	{name: createCheck, run: (*Suite).checkCreate},
	{name: "a second create changes nothing", run: (*Suite).checkCreateTwice, needsCreate: true},
	{name: "stop and start change all machines", run: (*Suite).checkPower, needsCreate: true},
	{name: "destroy needs no state folder", run: (*Suite).checkDestroyWithoutState, needsCreate: true},
	{name: "a second destroy succeeds", run: (*Suite).checkDestroyTwice, needsCreate: true},
	{name: "two clusters are independent", run: (*Suite).checkTwoClusters, needsCreate: true},
	{name: "destroy succeeds after create was killed", run: (*Suite).checkKilledCreate},
	{name: "stop and start succeed after they were killed", run: (*Suite).checkKilledPower, needsCreate: true},
	{name: "destroy succeeds after it was killed", run: (*Suite).checkKilledDestroy, needsCreate: true},
}

// CheckNames returns the names of all checks, in order.
func CheckNames() []string {
	names := make([]string, len(suiteChecks))
	for i, c := range suiteChecks {
		names[i] = c.name
	}
	return names
}

// Run runs the checks and returns their results, in order. It stops after a failed check that the later
// ones need, and when ctx ends. It destroys all clusters that it creates, also when ctx ends.
func (s *Suite) Run(ctx context.Context) []Check {
	s.took = map[Verb]time.Duration{}
	var out []Check
	createFailed := false
	for _, c := range suiteChecks {
		if ctx.Err() != nil {
			break
		}
		if c.needsCreate && createFailed {
			c.run = func(*Suite, context.Context) (string, error) {
				return "", skippedError("the check \"" + createCheck + "\" failed")
			}
		}
		check := s.runCheck(ctx, c)
		out = append(out, check)
		createFailed = createFailed || c.name == createCheck && check.State == CheckFailed
		if check.State == CheckFailed && c.isRequired {
			break
		}
	}
	return out
}

func (s *Suite) runCheck(ctx context.Context, c suiteCheck) Check {
	if s.Begin != nil {
		s.Begin(c.name)
	}
	started := time.Now()
	detail, err := c.run(s, ctx)
	check := Check{Name: c.name, State: CheckPassed, Detail: detail, Took: time.Since(started)}
	var skipped skippedError
	switch {
	case errors.As(err, &skipped):
		check.State, check.Detail = CheckSkipped, err.Error()
	case ctx.Err() != nil && err != nil:
		check.State, check.Detail = CheckFailed, "interrupted"
	case err != nil:
		check.State, check.Detail = CheckFailed, fault.OneLine(err)
	}
	if s.Report != nil {
		s.Report(check)
	}
	return check
}

// newCluster returns another cluster, which does not exist yet.
func (s *Suite) newCluster() Cluster {
	s.clusters++
	name := fmt.Sprintf("test-%d", s.clusters)
	c := Cluster{
		Recipe: s.Recipe, Dir: filepath.Join(s.Dir, name), Secrets: s.Secrets, Log: s.Log,
		Input: Input{Namespace: name, Name: name, UID: s.newUID(), With: s.with},
	}
	return c
}

// newUID returns a UID as Kubernetes has them.
func (s *Suite) newUID() string {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], s.Random.Uint64())
	binary.BigEndian.PutUint64(raw[8:], s.Random.Uint64())
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80 // version 4 of RFC 9562
	return uuid.UUID(raw).String()
}

// prepareCluster returns another cluster and calls prepare. It also returns the cluster with an error:
// the caller destroys it.
func (s *Suite) prepareCluster(ctx context.Context) (Cluster, error) {
	c := s.newCluster()
	p, err := c.Prepare(ctx)
	if err != nil {
		c.Input.InfraID = c.defaultInfraID()
		return c, err
	}
	return c.WithPrepared(p), nil
}

// createCluster creates another cluster. It also returns the cluster with an error: the caller destroys
// it.
func (s *Suite) createCluster(ctx context.Context) (Cluster, error) {
	c, err := s.prepareCluster(ctx)
	if err != nil {
		return c, err
	}
	return c, s.callUntilDone(ctx, c, Create)
}

// withCluster creates a cluster, calls check, and destroys the cluster in any case.
func (s *Suite) withCluster(ctx context.Context, check func(Cluster) (string, error)) (string, error) {
	c, err := s.createCluster(ctx)
	detail := ""
	if err == nil {
		detail, err = check(c)
	}
	return detail, errors.Join(err, s.destroyCluster(ctx, c))
}

// destroyCluster destroys a cluster and confirms that no machine is left. It continues after ctx has
// ended.
func (s *Suite) destroyCluster(ctx context.Context, c Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Patience)
	defer cancel()
	if err := s.callUntilDone(ctx, c, Destroy); err != nil {
		return fmt.Errorf("%w (resources with infraID %s may still exist: delete them)", err, c.Input.InfraID)
	}
	ms, _, err := c.Observe(ctx)
	if err == nil && len(ms) > 0 {
		err = fmt.Errorf("destroy succeeded, but observe prints %s for infraID %s: delete these machines", ms, c.Input.InfraID)
	}
	return err
}

// call runs a verb once and measures it.
func (s *Suite) call(ctx context.Context, c Cluster, v Verb) (again bool, err error) {
	started := time.Now()
	again, err = c.Call(ctx, v)
	if err == nil {
		s.took[v] = max(s.took[v], time.Since(started))
	}
	return again, err
}

func (s *Suite) callUntilDone(ctx context.Context, c Cluster, v Verb) error {
	return s.poll(ctx, fmt.Sprintf("%s to succeed", v), func() (bool, error) {
		again, err := s.call(ctx, c, v)
		return !again, err
	})
}

// reachState calls a verb until all machines are in state want.
func (s *Suite) reachState(ctx context.Context, c Cluster, v Verb, want cloud.State) error {
	var last cloud.Machines
	observed := false
	err := s.poll(ctx, fmt.Sprintf("all machines to be %s after %s", want, v), func() (bool, error) {
		if _, err := s.call(ctx, c, v); err != nil {
			return false, err
		}
		ms, _, err := c.Observe(ctx)
		last, observed = ms, err == nil
		return ms.AllIn(want), err
	})
	if err != nil && observed {
		return fmt.Errorf("%w; observe prints %s", err, describeMachines(last))
	}
	return err
}

// poll repeats try until it returns true or an error, or until Patience has passed.
func (s *Suite) poll(ctx context.Context, goal string, try func() (done bool, err error)) error {
	deadline := time.Now().Add(s.Patience)
	for {
		done, err := try()
		if done || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s (--patience) for %s", s.Patience, goal)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.Pause):
		}
	}
}

// killDuring runs a verb and kills it after a random time. It returns what happened.
func (s *Suite) killDuring(ctx context.Context, c Cluster, v Verb) (string, error) {
	longest := valueOr(s.KillWithin, valueOr(s.took[v], 2*time.Second))
	after := time.Duration(s.Random.Int64N(int64(longest)))
	limit, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	c.StopGrace = time.Nanosecond // SIGKILL immediately
	_, err := c.Call(limit, v)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("killed %s after %s", v, after.Round(time.Millisecond)), nil
	case err != nil:
		return "", err
	}
	return fmt.Sprintf("%s ended before it was killed", v), nil
}

func describeMachines(ms cloud.Machines) string {
	if len(ms) == 0 {
		return "no machines"
	}
	return ms.String()
}

// Table returns the checks as a text table.
func Table(checks []Check) string {
	var out strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&out, "%-8s %-46s %7s  %s\n", c.State, c.Name, c.Took.Round(time.Millisecond), c.Detail)
	}
	return out.String()
}
