// Package exec creates and destroys clusters with recipes: the executor of platform exec.
//
// A runner.Runner runs the programs of a recipe. A record in a runner.Store states the progress of the
// creation of each cluster, so that another process of hotspare continues it: it calls create again
// for the same infraID, after the runner has ended what the earlier process left running.
package exec

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
)

// Executor creates and destroys clusters with recipes, in the background.
type Executor struct {
	Options
	workContext context.Context // New's context: the work outlives each call
	jobs        sync.WaitGroup

	mu       sync.Mutex
	prepares map[prepareKey]*job
	installs map[string]*job // by infraID
	destroys map[string]*job // by infraID
	// noRoom contains the recipes whose platform has no capacity, and until when this is assumed.
	noRoom map[string]shortage
}

var _ install.Executor = (*Executor)(nil)

// Options configures an Executor. All fields without a default are required.
type Options struct {
	Runner  runner.Runner
	Store   runner.Store
	Catalog runner.Recipes
	// Secrets reads the Secrets with credentials.
	Secrets cloud.Secrets
	Clock   clock.WithTicker
	// OnChange is called when work has ended that the ClusterDeployment's controller waits for. It
	// must not block. Nil ignores it.
	OnChange func(types.NamespacedName)
	// Pause is the time between two calls of a verb that exits with code 10; zero means 10 s.
	Pause time.Duration
	// RetryNoRoom is the time after which create is called again when it has reported that the platform
	// has no capacity; zero means 2 min.
	RetryNoRoom time.Duration
	// RetryPrepare is the time after which prepare is called again when it has failed, or when its
	// result was not recorded; zero means 1 min.
	RetryPrepare time.Duration
	// Measure returns the memory and the disk space, in bytes, that this computer has available. Nil
	// means that both are unlimited.
	Measure func() (memory, disk int64, err error)
}

// New returns an executor that works until ctx ends. The next executor continues interrupted work
// when it is asked for again.
func New(ctx context.Context, o Options) *Executor {
	if o.OnChange == nil {
		o.OnChange = func(types.NamespacedName) {}
	}
	o.Pause, o.RetryNoRoom = cmp.Or(o.Pause, 10*time.Second), cmp.Or(o.RetryNoRoom, retryAfterNoRoom)
	o.RetryPrepare = cmp.Or(o.RetryPrepare, time.Minute)
	return &Executor{
		Options: o, workContext: ctx,
		prepares: map[prepareKey]*job{}, installs: map[string]*job{}, destroys: map[string]*job{}, noRoom: map[string]shortage{},
	}
}

// Wait waits, after New's context has ended, until all work has ended.
func (e *Executor) Wait() { e.jobs.Wait() }

// Install starts or continues the attempt with that infraID, or returns its progress.
func (e *Executor) Install(ctx context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.destroys[md.InfraID] != nil && !e.destroys[md.InfraID].isDone() {
		return install.Result{}, fault.NewWait(time.Second, "cluster %s is being destroyed", md.InfraID)
	}
	working := e.isInstalling(md.InfraID) // before the record is read: work that ends now has written it
	record, found, err := e.readRecord(ctx, md.InfraID, req.Cluster)
	if err != nil {
		return install.Result{}, err
	}
	s := Seen{Working: working, Record: record, Now: e.Clock.Now()}
	var t runner.Task
	if s.NeedsRequest() {
		var version string
		if t, version, err = e.newInstallTask(ctx, req, md); err != nil {
			return install.Result{}, err
		}
		if s.Request, err = runner.HashRequest(version, t); err != nil {
			return install.Result{}, err
		}
	}
	switch Decide(s) {
	case Wait:
		return install.Result{Phase: install.Running}, e.startProblem(req.Cluster)
	case Report:
		return e.recordResult(record)
	}
	return install.Result{Phase: install.Running}, e.startInstall(ctx, t, s, found)
}

// startProblem returns why the current program of a cluster cannot start; nil if nothing prevents it.
func (e *Executor) startProblem(cluster types.NamespacedName) error {
	if r, ok := e.Runner.(runner.StartReporter); ok {
		return r.StartProblem(cluster)
	}
	return nil
}

// readRecord returns the record of a cluster. The error is fault.Denied if the record is that of another
// cluster. The caller holds e.mu, so that the record does not change before it acts.
func (e *Executor) readRecord(ctx context.Context, infraID string, cluster types.NamespacedName) (runner.Record, bool, error) {
	record, found, err := e.Store.ReadRecord(ctx, runner.Key{Cluster: cluster, InfraID: infraID})
	if err == nil && found {
		err = record.ConfirmOwner(infraID, cluster)
	}
	return record, found, err
}

// isInstalling reports whether the attempt's work runs. Its result is in the record before it ends. The
// caller holds e.mu.
func (e *Executor) isInstalling(infraID string) bool {
	j := e.installs[infraID]
	if j != nil && j.isDone() && e.workContext.Err() == nil {
		delete(e.installs, infraID)
		return false
	}
	return j != nil
}

// recordResult converts a record into a result.
func (e *Executor) recordResult(r runner.Record) (install.Result, error) {
	switch r.Phase {
	case runner.Created:
		return install.Result{Phase: install.Succeeded, Kubeconfig: r.Kubeconfig, APIURL: findAPIURL(r.Kubeconfig)}, nil
	case runner.Rejected:
		return install.Result{}, fault.NewDenied("%s", r.Problem)
	case runner.NoRoom:
		return install.Result{}, fault.NewCapacity(r.RetryAt.Sub(e.Clock.Now()), "%s", r.Problem)
	}
	return install.Result{Phase: install.Failed, Reason: "RecipeFailed", Log: strings.TrimSpace(r.Log + "\n" + r.Problem)}, nil
}

// findAPIURL returns the server of the current context of a kubeconfig, or of its only cluster.
func findAPIURL(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "" // it was validated when create had ended
	}
	if current := config.Contexts[config.CurrentContext]; current != nil && config.Clusters[current.Cluster] != nil {
		return config.Clusters[current.Cluster].Server
	}
	for _, c := range config.Clusters {
		if len(config.Clusters) == 1 {
			return c.Server
		}
	}
	return ""
}

// startInstall records the attempt and starts its work. The caller holds e.mu.
func (e *Executor) startInstall(ctx context.Context, t runner.Task, s Seen, found bool) error {
	record := s.Record
	if !found {
		if err := e.confirmCapacity(t.Recipe); err != nil {
			return err
		}
		record = runner.Record{
			Namespace: t.Input.Namespace, Name: t.Input.Name, UID: types.UID(t.Input.UID), Recipe: t.Recipe.Name, Started: s.Now,
		}
	}
	if record.Phase != runner.Creating {
		record.Started = s.Now // not the time that a rejected request waited for its correction
	}
	record.Phase, record.Request, record.Problem, record.RetryAt = runner.Creating, s.Request, "", time.Time{}
	if err := e.Store.WriteRecord(ctx, t.Key(), record); err != nil {
		return err
	}
	cluster := types.NamespacedName{Namespace: t.Input.Namespace, Name: t.Input.Name}
	j := e.startJob(cluster, func(ctx context.Context, _ *job) error { return e.createCluster(ctx, t, record) }) // the work outlives the call
	j.needs = t.Recipe.Needs
	e.installs[t.Input.InfraID] = j
	delete(e.destroys, t.Input.InfraID)
	return nil
}

// createCluster calls create until it has ended, and records the result. It records nothing if ctx
// ends: the attempt is continued, or destroyed.
func (e *Executor) createCluster(ctx context.Context, t runner.Task, record runner.Record) error {
	for {
		again, err := e.Runner.Call(ctx, t, recipe.Create)
		if err == nil && !again {
			record.Kubeconfig, err = e.readCluster(ctx, t)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		next := DecideAfterCreate(again, err, record.Started, e.Clock.Now(), Limits{Run: t.Recipe.Timeout(recipe.Create), NoRoomRetry: e.RetryNoRoom})
		if !next.Again {
			record.Phase, record.Problem, record.RetryAt = next.Phase, next.Problem, next.RetryAt
			if next.Phase == runner.Failed {
				record.Log = e.collectLog(ctx, t)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			e.recordShortage(t.Recipe.Name, next)
			return e.Store.WriteRecord(ctx, t.Key(), record)
		}
		if err := e.waitBeforeNextCall(ctx); err != nil {
			return err
		}
	}
}

// readCluster returns the kubeconfig of a cluster that create has created, after observe has listed its
// machines: a cluster without machines would be replaced after its creation, again and again. An observe that
// fails proves nothing about the machines.
func (e *Executor) readCluster(ctx context.Context, t runner.Task) ([]byte, error) {
	kubeconfig, err := e.Runner.ReadKubeconfig(ctx, t)
	if err != nil || !t.Recipe.Has(recipe.Observe) {
		return kubeconfig, err
	}
	machines, err := e.Runner.Observe(ctx, t)
	if err == nil && len(machines) == 0 {
		return nil, errNoMachines
	}
	return kubeconfig, nil
}

var errNoMachines = errors.New("create has exited with code 0, but observe lists no machines: correct observe, " +
	"or let create exit with code 10 until the machines exist")

// collectLog returns the end of the log of an attempt that has failed: first the output of the program
// logs, because create's own messages matter most and the end is what is kept if it is shortened.
func (e *Executor) collectLog(ctx context.Context, t runner.Task) string {
	before := e.Store.ReadLog(ctx, t.Key(), t.Secrets)
	if !t.Recipe.Has(recipe.Logs) {
		return before
	}
	problem := ""
	if _, err := e.Runner.Call(ctx, t, recipe.Logs); err != nil {
		problem = err.Error() + "\n"
	}
	return findAddedLines(before, e.Store.ReadLog(ctx, t.Key(), t.Secrets)) + problem + before
}

// findAddedLines returns the lines that after has in addition to before: both are the end of a log, and
// after is younger.
func findAddedLines(before, after string) string {
	for rest := before; rest != ""; {
		if added, found := strings.CutPrefix(after, rest); found {
			return added
		}
		_, rest, _ = strings.Cut(rest, "\n")
	}
	return after
}

// waitBeforeNextCall waits before a verb is called again.
func (e *Executor) waitBeforeNextCall(ctx context.Context) error {
	timer := e.Clock.NewTimer(e.Pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// newTask returns the task of a request, without infraID, and the version of its recipe. created is
// what metadata.json says about the recipe; nil before prepare.
func (e *Executor) newTask(ctx context.Context, req install.Request, created *runner.ExecMetadata) (runner.Task, string, error) {
	p := req.Platform.Exec
	if p == nil {
		return runner.Task{}, "", fault.NewDenied("spec.platform.exec is not set: set it to the recipe of the cluster")
	}
	r, err := e.Catalog.FindRecipe(ctx, newLookup(req.ClusterTarget, p, created))
	if err != nil {
		return runner.Task{}, "", err
	}
	with, err := runner.CompleteParameters(r, p)
	if err != nil {
		return runner.Task{}, "", err
	}
	version, err := r.ContentVersion()
	if err != nil {
		return runner.Task{}, "", err
	}
	t := runner.Task{Recipe: r, PullSecret: req.PullSecret, Input: recipe.Input{
		Namespace: req.Cluster.Namespace, Name: req.Cluster.Name, UID: string(req.UID), Attempt: req.Attempt, With: with,
	}}
	return t, version, e.addCredentials(ctx, &t, req.Cluster, p)
}

func newLookup(target install.ClusterTarget, p *hivev1.ExecPlatform, created *runner.ExecMetadata) runner.Lookup {
	return runner.Lookup{
		Platform: p, Cluster: target.Cluster, UID: target.UID, PoolNamespace: target.PoolNamespace,
		PullSecret: target.PullSecret, Image: target.ReleaseImage, ImageOverride: target.Provisioning.InstallerImageOverride, Created: created,
	}
}

// newInstallTask returns the task that creates what the metadata identifies.
func (e *Executor) newInstallTask(ctx context.Context, req install.Request, md install.Metadata) (runner.Task, string, error) {
	named, err := runner.ParseMetadata(md.Raw)
	if err != nil {
		return runner.Task{}, "", err
	}
	if named.InfraID != md.InfraID {
		return runner.Task{}, "", fault.NewDenied("metadata.json names infraID %q, the cluster's is %q: destroy the attempt", named.InfraID, md.InfraID)
	}
	t, version, err := e.newTask(ctx, req, &named.Exec)
	t.Input.InfraID, t.Input.Metadata = md.InfraID, named.Exec.Input.Metadata
	return t, version, err
}

// addCredentials adds the credentials that the platform names.
func (e *Executor) addCredentials(ctx context.Context, t *runner.Task, cluster types.NamespacedName, p *hivev1.ExecPlatform) (err error) {
	if p.CredentialsSecretRef == nil || p.CredentialsSecretRef.Name == "" {
		return nil
	}
	t.SecretName = p.CredentialsSecretRef.Name
	t.Secrets, err = e.Secrets(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: t.SecretName})
	return err
}
