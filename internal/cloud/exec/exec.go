// Package exec observes, starts and stops the machines of clusters that recipes create: the actuator
// of platform exec.
//
// The programs of a recipe may take minutes, so they run in the background: Observe returns the last
// answer while it is recent, and Start and Stop only start the work. A recipe decides in which order
// the machines of a cluster start and stop.
package exec

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

const (
	// firstRetry is the default of Options.FirstRetry.
	firstRetry = 5 * time.Second
	// freshAge is the default of Options.FreshAge.
	freshAge = time.Second
	// maxAge is the age up to which an answer is returned while observe runs again.
	maxAge = time.Minute
	// observeWait is how long Observe waits for the program observe.
	observeWait = 3 * time.Second
	// changeBuffer is the number of changes that wait for their reader.
	changeBuffer = 1024
)

// Options configures an Actuator. All fields without a default are required.
type Options struct {
	Runner  runner.Runner
	Catalog runner.Recipes
	// Secrets reads the Secrets with credentials and with metadata.json.
	Secrets cloud.Secrets
	Clock   clock.WithTicker
	// Pause is the time between two calls of a verb that exits with code 10; zero means 10 s.
	Pause time.Duration
	// FirstRetry is the delay after the first failure of a program; zero means 5 s. It doubles with each
	// further failure in succession, up to 60 times FirstRetry. An invalid request is always repeated after
	// the longest delay.
	FirstRetry time.Duration
	// ObserveWait is how long Observe waits for the program observe; zero means 3 s.
	ObserveWait time.Duration
	// FreshAge is the age up to which an answer of observe is returned without running it again; zero
	// means 1 s. SettledAge is that age while all machines run, or all are stopped; zero means FreshAge.
	FreshAge, SettledAge time.Duration
}

// Actuator runs the programs observe, start and stop of recipes.
type Actuator struct {
	Options
	workContext context.Context // New's context: the work outlives each call
	jobs        sync.WaitGroup
	changes     chan string

	mu       sync.Mutex
	clusters map[string]*cluster // by infraID
}

var (
	_ cloud.Actuator             = (*Actuator)(nil)
	_ cloud.ChangeNotifier       = (*Actuator)(nil)
	_ cloud.HibernationPredictor = (*Actuator)(nil)
)

// cluster is what is known about the machines of one cluster. Actuator.mu protects it.
type cluster struct {
	// machines is the last answer of observe; observed is when it came, zero if there is none.
	machines cloud.Machines
	observed time.Time
	// observing is closed when the program observe that runs has ended; nil if none runs.
	observing chan struct{}
	// verb is Start or Stop while that program runs or must be called again, else empty. wanted is the
	// verb that was requested last: it runs next if it differs.
	verb, wanted recipe.Verb
	// changing is closed when verb has ended.
	changing chan struct{}
	// failures are the programs whose last run has failed.
	failures map[recipe.Verb]failure
	// waiting is the number of calls of Observe that wait for a program.
	waiting int
	// used is when the cluster was last asked for.
	used time.Time
}

// New returns an actuator that works until ctx ends.
func New(ctx context.Context, o Options) *Actuator {
	o.Pause, o.ObserveWait = cmp.Or(o.Pause, 10*time.Second), cmp.Or(o.ObserveWait, observeWait)
	o.FirstRetry, o.FreshAge = cmp.Or(o.FirstRetry, firstRetry), cmp.Or(o.FreshAge, freshAge)
	o.SettledAge = cmp.Or(o.SettledAge, o.FreshAge)
	return &Actuator{Options: o, workContext: ctx, changes: make(chan string, changeBuffer), clusters: map[string]*cluster{}}
}

// Wait waits, after New's context has ended, until no program runs.
func (a *Actuator) Wait() { a.jobs.Wait() }

// Changes returns a channel that receives the infraID of a cluster when a program of it has ended, unless a
// call of Observe returns its result.
func (a *Actuator) Changes() <-chan string { return a.changes }

// HibernationObstacle returns why clusters of a platform cannot hibernate; "" if they can.
func (a *Actuator) HibernationObstacle(p hivev1.Platform) string {
	return a.Catalog.HibernationObstacle(p)
}

// Observe returns the machines as the program observe has printed them. While start or stop runs, no
// other program can: then the machines of the last answer count as starting or stopping. Observe waits
// for a program only if there is no recent answer, and returns fault.Wait if the program takes longer.
func (a *Actuator) Observe(ctx context.Context, ref cloud.Ref) (cloud.Machines, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := a.newTask(ctx, ref)
	if err != nil {
		return nil, err
	}
	timer := a.Clock.NewTimer(a.ObserveWait)
	defer timer.Stop()
	for {
		ms, running, err := a.observeOnce(t)
		if running == nil {
			return ms, err
		}
		select {
		case <-running:
			a.endWait(ref.InfraID)
		case <-timer.C():
			a.endWait(ref.InfraID) // first: from now on the end of the program is a change
			return a.lastMachines(t)
		case <-ctx.Done():
			a.endWait(ref.InfraID)
			return nil, fmt.Errorf("observing cluster %s: %w", ref.Cluster, ctx.Err())
		}
	}
}

// endWait removes a call of Observe from those that wait.
func (a *Actuator) endWait(infraID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.findCluster(infraID).waiting--
}

// observeOnce returns the machines, or the error with which observe ended. If neither is known yet, it
// makes sure that a program runs, and returns a channel that is closed when the program has ended: the caller
// then waits, until it calls endWait.
func (a *Actuator) observeOnce(t runner.Task) (cloud.Machines, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.findCluster(t.Input.InfraID)
	age := a.FreshAge
	if c.machines.AllIn(cloud.Running) || c.machines.AllIn(cloud.Stopped) {
		age = a.SettledAge
	}
	if ms, known := c.currentMachines(a.Clock.Now(), age); known {
		return ms, nil, nil
	}
	if err := c.findFailure(recipe.Observe, t.Recipe, a.Clock.Now()); err != nil {
		return nil, nil, err
	}
	c.waiting++
	if c.verb != "" {
		return nil, c.changing, nil
	}
	if c.observing == nil {
		a.startObserve(t, c)
	}
	return nil, c.observing, nil
}

// lastMachines returns the last answer, unless it is too old.
func (a *Actuator) lastMachines(t runner.Task) (cloud.Machines, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.findCluster(t.Input.InfraID)
	if ms, known := c.currentMachines(a.Clock.Now(), max(maxAge, 2*a.SettledAge)); known {
		return ms, nil
	}
	if err := c.findFailure(recipe.Observe, t.Recipe, a.Clock.Now()); err != nil {
		return nil, err
	}
	if r, ok := a.Runner.(runner.StartReporter); ok {
		if err := r.StartProblem(types.NamespacedName{Namespace: t.Input.Namespace, Name: t.Input.Name}); err != nil {
			return nil, err
		}
	}
	return nil, fault.NewWait(a.Pause, "program %s of recipe %s has run for %s", cmp.Or(c.verb, recipe.Observe), t.Recipe.Name, a.ObserveWait)
}

// currentMachines returns the last answer, if it is not older than age; false otherwise.
func (c *cluster) currentMachines(now time.Time, age time.Duration) (cloud.Machines, bool) {
	if c.observed.IsZero() {
		return nil, false
	}
	if c.verb != "" {
		return c.machinesDuring(c.verb), true
	}
	return c.machines, now.Sub(c.observed) <= age
}

// machinesDuring returns the machines of the last answer while a program starts or stops them.
func (c *cluster) machinesDuring(v recipe.Verb) cloud.Machines {
	from, to := cloud.Stopped, cloud.Starting
	if v == recipe.Stop {
		from, to = cloud.Running, cloud.Stopping
	}
	out := make(cloud.Machines, len(c.machines))
	for i, m := range c.machines {
		if m.State == from {
			m.State = to
		}
		out[i] = m
	}
	return out
}

// startObserve runs the program observe. The caller holds a.mu.
func (a *Actuator) startObserve(t runner.Task, c *cluster) {
	c.observing = make(chan struct{})
	a.jobs.Go(func() {
		version := contentVersion(t.Recipe)
		ms, err := a.Runner.Observe(a.workContext, t)
		a.logFailure(t, recipe.Observe, err, a.endObserve(t, c, observation{machines: ms, version: version, err: err}))
	})
}

// observation is the result of a run of observe. version is that of the recipe's content before the run.
type observation struct {
	machines cloud.Machines
	version  string
	err      error
}

// endObserve records the result of a run of observe, and reports it. It returns the delay after which an
// observe that has failed runs again.
func (a *Actuator) endObserve(t runner.Task, c *cluster, o observation) (retryIn time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(c.observing)
	c.observing = nil
	retryIn = a.recordOutcome(c, recipe.Observe, o.version, o.err)
	if o.err == nil && c.verb == "" { // else a program has changed the machines since
		c.machines, c.observed = o.machines, a.Clock.Now()
	}
	if c.waiting == 0 {
		a.notify(t.Input.InfraID)
	}
	return retryIn
}

// Start starts the machines.
func (a *Actuator) Start(ctx context.Context, ref cloud.Ref) error {
	return a.request(ctx, ref, recipe.Start)
}

// Stop stops the machines.
func (a *Actuator) Stop(ctx context.Context, ref cloud.Ref) error {
	return a.request(ctx, ref, recipe.Stop)
}

// request starts a verb, or returns the error with which it ended. While the opposite verb runs, the
// requested one runs afterward.
func (a *Actuator) request(ctx context.Context, ref cloud.Ref, v recipe.Verb) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := a.newTask(ctx, ref)
	if err != nil {
		return err
	}
	if !t.Recipe.Has(v) {
		return fault.NewDenied("recipe %s has no program %s: add it", t.Recipe.Name, v)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.findCluster(ref.InfraID)
	if c.verb == "" {
		if err := c.findFailure(v, t.Recipe, a.Clock.Now()); err != nil {
			return err
		}
	}
	delete(c.failures, oppositeVerb(v))
	c.wanted = v
	if c.verb != "" {
		return nil
	}
	c.verb, c.changing = v, make(chan struct{})
	a.jobs.Go(func() { a.changePower(t, c) }) // the work outlives the call
	return nil
}

// changePower runs the wanted verb until it has ended and no other is wanted.
func (a *Actuator) changePower(t runner.Task, c *cluster) {
	for {
		a.mu.Lock()
		v := c.wanted
		c.verb = v
		a.mu.Unlock()
		version := contentVersion(t.Recipe)
		again, err := a.Runner.Call(a.workContext, t, v)
		if kind := fault.KindOf(err); kind == fault.Conflict || kind == fault.Wait {
			again, err = true, nil // another process of hotspare runs a program
		}
		a.mu.Lock()
		if err != nil || !again && c.wanted == v {
			c.verb, c.observed = "", time.Time{} // the machines have changed
			close(c.changing)
			retryIn := a.recordOutcome(c, v, version, err)
			a.notify(t.Input.InfraID)
			a.mu.Unlock()
			a.logFailure(t, v, err, retryIn)
			return
		}
		a.mu.Unlock()
		if again && !a.waitBeforeNextCall() {
			return
		}
	}
}

// waitBeforeNextCall waits before a verb is called again; false means that hotspare stops.
func (a *Actuator) waitBeforeNextCall() bool {
	timer := a.Clock.NewTimer(a.Pause)
	defer timer.Stop()
	select {
	case <-a.workContext.Done():
		return false
	case <-timer.C():
		return true
	}
}

// notify reports a change, unless too many changes wait for their reader.
func (a *Actuator) notify(infraID string) {
	select {
	case a.changes <- infraID:
	default:
	}
}

// forgetAfter is how long a cluster that is not asked for is remembered.
const forgetAfter = time.Hour

// findCluster returns what is known about a cluster, and forgets clusters that were not asked for. The
// caller holds a.mu.
func (a *Actuator) findCluster(infraID string) *cluster {
	now := a.Clock.Now()
	c := a.clusters[infraID]
	if c == nil {
		for id, old := range a.clusters {
			if old.verb == "" && old.observing == nil && old.waiting == 0 && now.Sub(old.used) > forgetAfter {
				delete(a.clusters, id)
			}
		}
		c = &cluster{failures: map[recipe.Verb]failure{}}
		a.clusters[infraID] = c
	}
	c.used = now
	return c
}

// newTask returns the task for a cluster. Its input is that of metadata.json, which the hub stores.
func (a *Actuator) newTask(ctx context.Context, ref cloud.Ref) (runner.Task, error) {
	if ref.Platform.Exec == nil {
		return runner.Task{}, fault.NewDenied("spec.platform.exec is not set: set it to the recipe that the cluster was created with")
	}
	p := ref.Platform.Exec.DeepCopy()
	input := runner.FallbackInput(ref.Cluster, "", ref.InfraID, p)
	named, err := a.readMetadata(ctx, ref)
	if err != nil {
		return runner.Task{}, err
	}
	var created *runner.ExecMetadata
	if named.InfraID == ref.InfraID {
		p.Recipe, input, created = named.Exec.Recipe, named.Exec.Input, &named.Exec
	}
	input.Namespace, input.Name = ref.Cluster.Namespace, ref.Cluster.Name // whatever the metadata says
	r, err := a.Catalog.FindRecipe(ctx, runner.Lookup{Platform: p, Cluster: ref.Cluster, Created: created})
	if err != nil {
		return runner.Task{}, err
	}
	t := runner.Task{Recipe: r, Input: input, PullSecret: named.Exec.PullSecret}
	if s := p.CredentialsSecretRef; s != nil && s.Name != "" {
		t.SecretName = s.Name
		t.Secrets, err = a.Secrets(ctx, types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: s.Name})
	}
	return t, err
}

// readMetadata returns the metadata of a cluster; empty if its Secret is missing or unusable.
func (a *Actuator) readMetadata(ctx context.Context, ref cloud.Ref) (runner.Metadata, error) {
	if ref.Metadata == nil || ref.Metadata.MetadataJSONSecretRef == nil {
		return runner.Metadata{}, nil
	}
	data, err := a.Secrets(ctx, types.NamespacedName{Namespace: ref.Cluster.Namespace, Name: ref.Metadata.MetadataJSONSecretRef.Name})
	if fault.KindOf(err) == fault.Denied {
		return runner.Metadata{}, nil
	}
	if err != nil {
		return runner.Metadata{}, err
	}
	md, err := runner.ParseMetadata(data[hivev1.SecretKeyMetadata])
	if err != nil {
		return runner.Metadata{}, nil //nolint:nilerr // the platform's settings remain
	}
	return md, nil
}
