// Package jobs runs the programs of recipes as Jobs of a hub, and keeps their state in Secrets.
//
// Everything of a cluster is in its namespace: a Secret with its record, which only hotspare reads and
// writes, and a Secret with the state of its programs, which their pods read and write too. The Jobs
// run package jobpod in the image of the recipe. Nothing that a pod writes is trusted: hotspare parses
// and bounds it as it does the output of a program.
package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

// Runner is a runner.Runner whose programs are Jobs.
type Runner struct {
	*hub

	turns sync.Mutex
	// running contains the clusters of which a program runs, by the key of their state.
	running map[types.NamespacedName]*turn
	// problems contains why the program of a cluster cannot start.
	problems map[types.NamespacedName]error
}

var (
	_ runner.Runner        = (*Runner)(nil)
	_ runner.StartReporter = (*Runner)(nil)
)

// turn is the program of a cluster that runs in this process. ended is closed when it has ended; others
// is the number of callers that wait for that.
type turn struct {
	ended  chan struct{}
	others int
}

// New returns a Runner, a Store and a Catalog for the hub that c reads and writes. c must not read from a
// cache.
func New(c client.Client, o Options) (*Runner, *Store, *Catalog) {
	if o.Poll == 0 {
		o.Poll = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	h := &hub{Options: o, client: c, accessible: map[types.UID]bool{}}
	return &Runner{hub: h, running: map[types.NamespacedName]*turn{}, problems: map[types.NamespacedName]error{}},
		&Store{hub: h}, &Catalog{hub: h, canHibernate: map[string]bool{}}
}

// StartProblem returns why the program of a cluster cannot start; nil if nothing prevents it.
func (r *Runner) StartProblem(cluster types.NamespacedName) error {
	r.turns.Lock()
	defer r.turns.Unlock()
	return r.problems[cluster]
}

// Prepare runs the program prepare.
func (r *Runner) Prepare(ctx context.Context, t runner.Task) (recipe.Prepared, error) {
	if !t.Recipe.Has(recipe.Prepare) {
		return recipe.Cluster{Recipe: t.Recipe, Input: t.Input}.Prepare(ctx)
	}
	q, err := newRequest(t, recipe.Prepare)
	if err != nil {
		return recipe.Prepared{}, err
	}
	q.state.Name = stateName(t.Input.Name, fmt.Sprintf("prepare %s %d", t.Input.UID, t.Input.Attempt))
	st, err := r.runTask(ctx, t, q)
	if err != nil {
		return recipe.Prepared{}, err
	}
	fail := func(problem string) error {
		return &recipe.VerbError{Recipe: t.Recipe.Name, Verb: recipe.Prepare, Outcome: recipe.Failed, Problem: problem}
	}
	p, err := recipe.ParsePrepared(st.Answer)
	if err != nil {
		return recipe.Prepared{}, fail(err.Error())
	}
	if recipe.NewScrubber(t.Secrets).FindsSecret(p.InfraID + string(p.Metadata)) {
		return recipe.Prepared{}, fail("prepare printed a value from $HOTSPARE_SECRETS: remove it, because all users who can read the cluster can read its metadata")
	}
	return p, r.deleteState(ctx, q.state)
}

// Call runs a verb once.
func (r *Runner) Call(ctx context.Context, t runner.Task, v recipe.Verb) (again bool, err error) {
	q, err := newRequest(t, v)
	if err != nil {
		return false, err
	}
	q.resumable = true
	_, err = r.runTask(ctx, t, q)
	switch {
	case errors.Is(err, errInProgress), errors.Is(err, errInterrupted):
		return true, nil
	}
	return false, err
}

// Observe runs the program observe.
func (r *Runner) Observe(ctx context.Context, t runner.Task) (cloud.Machines, error) {
	if !t.Recipe.Has(recipe.Observe) {
		return nil, nil
	}
	q, err := newRequest(t, recipe.Observe)
	if err != nil {
		return nil, err
	}
	st, err := r.runTask(ctx, t, q)
	if err != nil {
		return nil, toWait(err)
	}
	ms, err := recipe.ParseObservation(st.Answer)
	if err != nil {
		return nil, &recipe.VerbError{Recipe: t.Recipe.Name, Verb: recipe.Observe, Outcome: recipe.Failed, Problem: err.Error()}
	}
	return ms, nil
}

// ReadKubeconfig returns the kubeconfig that create has returned. If another program has run since, it
// runs a Job that reads the kubeconfig.
func (r *Runner) ReadKubeconfig(ctx context.Context, t runner.Task) ([]byte, error) {
	q, err := newRequest(t, recipe.Kubeconfig)
	if err != nil {
		return nil, err
	}
	st, err := q.store(r.client).ReadState(ctx)
	created := err == nil && st.Run.Verb == recipe.Create && st.Run.Phase == jobstate.Reported && st.Outcome.Result == recipe.Done
	if !created || len(st.Kubeconfig) == 0 {
		if st, err = r.runTask(ctx, t, q); err != nil {
			return nil, toWait(err)
		}
	}
	if err := rejectFileReferences(t, st.Kubeconfig); err != nil {
		return nil, err
	}
	return runner.InlineKubeconfig(recipe.Cluster{Recipe: t.Recipe}, st.Kubeconfig)
}

// rejectFileReferences returns a *recipe.VerbError for a kubeconfig that refers to a file. The pod has
// inlined its own files; the files of this process must not get into the kubeconfig of a cluster.
func rejectFileReferences(t runner.Task, raw []byte) error {
	fail := func(problem string) error {
		return &recipe.VerbError{Recipe: t.Recipe.Name, Verb: recipe.Create, Outcome: recipe.Failed, Problem: problem}
	}
	config, err := clientcmd.Load(raw)
	if err != nil || len(config.Clusters) == 0 {
		return fail("the kubeconfig cannot be read") // the error quotes its input
	}
	for name, c := range config.Clusters {
		if c.CertificateAuthority != "" {
			return fail("cluster " + name + " of the kubeconfig refers to a file: write its content into the kubeconfig")
		}
	}
	for name, u := range config.AuthInfos {
		if u.ClientCertificate != "" || u.ClientKey != "" || u.TokenFile != "" {
			return fail("user " + name + " of the kubeconfig refers to a file: write its content into the kubeconfig")
		}
	}
	return nil
}

// toWait converts an interruption to an error that asks to call again.
func toWait(err error) error {
	if errors.Is(err, errInterrupted) {
		return fault.NewWait(time.Second, "%w", err)
	}
	return err
}

// newRequest returns the request to run a verb of a cluster.
func newRequest(t runner.Task, v recipe.Verb) (request, error) {
	d := t.Recipe.Definition
	if d == nil {
		return request{}, fmt.Errorf("recipe %s is in folder %s of this computer, which the pods of a hub cannot read", t.Recipe.Name, t.Recipe.Dir)
	}
	in := t.Input
	input, err := json.Marshal(in)
	if err != nil {
		return request{}, fmt.Errorf("encoding the input of %s: %w", v, err)
	}
	q := request{
		state:  types.NamespacedName{Namespace: in.Namespace, Name: stateName(in.Name, in.InfraID)},
		owner:  ownerReference(in.Name, types.UID(in.UID)),
		labels: clusterLabels(in.Name, in.InfraID, secretTypeState),
		verb:   v, input: input,
		image: d.Image, recipe: d.Name, limit: t.Recipe.Timeout(v), credentials: t.SecretName, pullSecret: t.PullSecret,
	}
	if v == recipe.Create || v == recipe.Prepare {
		q.version = d.ContentVersion
	}
	raw, err := json.Marshal(struct { // keys of maps are sorted
		Input   recipe.Input
		Secrets map[string][]byte
		Image   string
		Limit   time.Duration
	}{in, t.Secrets, q.image, q.limit})
	if err != nil {
		return request{}, fmt.Errorf("hashing the request of %s: %w", v, err)
	}
	sum := sha256.Sum256(raw)
	q.hash = hex.EncodeToString(sum[:16])
	return q, nil
}

func ownerReference(cluster string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterDeployment", Name: cluster, UID: uid}
}

// Values of hivev1.LabelSecretType.
const (
	secretTypeState  = "recipe-state"
	secretTypeRecord = "recipe-record"
)

func clusterLabels(cluster, infraID, secretType string) map[string]string {
	labels := map[string]string{hivev1.LabelSecretType: secretType}
	for key, value := range map[string]string{hivev1.LabelClusterDeployment: cluster, hivev1.LabelInfraID: infraID} {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
	return labels
}

var errInProgress = errors.New("the program must be called again")

// runTask runs a program and converts its outcome: errInProgress and errInterrupted if it must be called
// again, a *recipe.VerbError if it has failed.
func (r *Runner) runTask(ctx context.Context, t runner.Task, q request) (jobstate.State, error) {
	release, mine, err := r.waitForTurn(ctx, q.state)
	if err != nil {
		return jobstate.State{}, err
	}
	cluster := t.Key().Cluster
	defer func() {
		r.setProblem(cluster, nil)
		release()
	}()
	p, err := r.run(ctx, q, func(waiting error) (yield bool) {
		r.setProblem(cluster, waiting)
		return waiting != nil && r.isAwaited(mine)
	})
	if err != nil {
		return jobstate.State{}, err
	}
	return p.state, toError(t, q, p)
}

// toError converts the outcome of a run.
func toError(t runner.Task, q request, p progress) error {
	fail := func(outcome recipe.Outcome, problem string) error {
		problem = recipe.NewScrubber(t.Secrets).Scrub(problem)
		return &recipe.VerbError{Recipe: t.Recipe.Name, Verb: q.verb, Outcome: outcome, Problem: problem}
	}
	switch run := p.state.Run; run.Phase {
	case jobstate.Interrupted:
		if run.Interruptions < maxInterruptions {
			return errInterrupted
		}
		if p.message == "" {
			p.message = "its pods were asked to stop"
		}
		return fail(recipe.Failed, fmt.Sprintf("%s was interrupted %d times in a row: %s", q.verb, run.Interruptions, p.message))
	case jobstate.Ended, jobstate.Reported:
	default:
		return fault.New(fault.Conflict, fmt.Errorf("program %s of recipe %s was ended: call it again", q.verb, q.recipe))
	}
	switch out := p.state.Outcome; out.Result {
	case recipe.Done:
		return nil
	case recipe.InProgress:
		if slices.Contains([]recipe.Verb{recipe.Create, recipe.Destroy, recipe.Start, recipe.Stop}, q.verb) {
			return errInProgress
		}
		return fail(recipe.Failed, fmt.Sprintf("%s cannot be called again", q.verb))
	case recipe.Invalid, recipe.NoRoom, recipe.Failed:
		return fail(out.Result, out.Problem)
	}
	return fail(recipe.Failed, fmt.Sprintf("Secret %s contains an outcome that hotspare does not write", q.state.Name))
}

func (r *Runner) setProblem(cluster types.NamespacedName, problem error) {
	r.turns.Lock()
	defer r.turns.Unlock()
	if problem == nil {
		delete(r.problems, cluster)
		return
	}
	r.problems[cluster] = problem
}

// waitForTurn waits until this process runs no other program of the cluster. The caller calls release
// when its program has ended. It returns fault.Wait if ctx ends first.
func (r *Runner) waitForTurn(ctx context.Context, key types.NamespacedName) (release func(), mine *turn, err error) {
	for {
		r.turns.Lock()
		busy := r.running[key]
		if busy == nil {
			mine = &turn{ended: make(chan struct{})}
			r.running[key] = mine
			r.turns.Unlock()
			return func() {
				r.turns.Lock()
				defer r.turns.Unlock()
				delete(r.running, key)
				close(mine.ended)
			}, mine, nil
		}
		busy.others++
		r.turns.Unlock()
		select {
		case <-busy.ended:
		case <-ctx.Done():
			r.turns.Lock()
			busy.others--
			r.turns.Unlock()
			return nil, nil, fault.New(fault.Wait, fmt.Errorf("another program of the cluster runs: %w", ctx.Err()))
		}
	}
}

// isAwaited reports whether another program of the cluster waits for the end of a turn.
func (r *Runner) isAwaited(mine *turn) bool {
	r.turns.Lock()
	defer r.turns.Unlock()
	return mine.others > 0
}
