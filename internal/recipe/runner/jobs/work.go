package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

// Options configures the Jobs.
type Options struct {
	// Image is hotspare's own image, with the program at the path Program.
	Image, Program string
	// RunAsUser is the user of the pods; nil leaves it to the hub or to the images.
	RunAsUser *int64
	// Poll is how often a running Job is checked; zero means 2 s.
	Poll  time.Duration
	Clock clock.WithTicker
}

// hub runs Jobs. It must not read from a cache.
type hub struct {
	Options
	client client.Client

	mu sync.Mutex
	// accessible contains the UIDs of the state Secrets whose ServiceAccount exists.
	accessible map[types.UID]bool
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;create;patch;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=create
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create

// request is what a Job runs.
type request struct {
	// state is the Secret with the state; owner owns it, unless its UID is empty.
	state  types.NamespacedName
	owner  metav1.OwnerReference
	labels map[string]string

	verb recipe.Verb
	// input is the recipe.Input; hash is a hash of everything that the program depends on.
	input []byte
	hash  string
	// resumable is true if an outcome that was not reported yet is as good as that of another run.
	resumable bool

	image, recipe, version  string
	limit                   time.Duration
	credentials, pullSecret string
}

func (q request) store(api hubjob.API) jobstate.Store { return jobstate.Store{API: api, Key: q.state} }

// matches reports whether a run is that of the request.
func (q request) matches(r jobstate.Run) bool { return r.Verb == q.verb && r.Request == q.hash }

// progress is how far the run of a request is.
type progress struct {
	// token identifies the run.
	token string
	state jobstate.State
	// waiting says what a run that has not ended waits for, as fault.Wait; nil if nothing blocks it.
	waiting error
	// message says why a run was interrupted.
	message string
}

// isDone reports whether the run has ended or was interrupted.
func (p progress) isDone() bool {
	return p.token != "" && !p.state.Run.Phase.IsActive()
}

// advance takes the next step of the run of a request, and returns how far it is. token identifies the
// run after the first call. It does not wait, and any step may be the last one before a crash.
func (h *hub) advance(ctx context.Context, q request, token string) (progress, error) {
	st, err := h.ensureState(ctx, q)
	if err != nil {
		return progress{}, err
	}
	run := st.Run
	switch {
	case token != "" && run.Token != token:
		return progress{}, fault.New(fault.Conflict, fmt.Errorf("another process of hotspare runs a program of recipe %s with state %s", q.recipe, q.state.Name))
	case token != "":
	case q.matches(run) && (run.Phase.IsActive() || run.Phase == jobstate.Ended && q.resumable):
		token = run.Token
	case run.Phase.IsActive() || run.Phase == jobstate.Abandoned:
		if waiting, err := h.endRun(ctx, q, run); waiting != nil || err != nil {
			return progress{waiting: waiting}, err
		}
		return h.beginRun(ctx, q, run)
	default:
		return h.beginRun(ctx, q, run)
	}
	if !run.Phase.IsActive() {
		return progress{token: token, state: st}, nil
	}
	return h.followRun(ctx, q, st)
}

// ensureState reads the state of a request, and creates an empty one if there is none.
func (h *hub) ensureState(ctx context.Context, q request) (jobstate.State, error) {
	st, err := q.store(h.client).ReadState(ctx)
	if apierrors.IsNotFound(err) {
		return h.createState(ctx, q)
	}
	return st, err
}

// createState creates an empty state.
func (h *hub) createState(ctx context.Context, q request) (jobstate.State, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: q.state.Namespace, Name: q.state.Name, Labels: maps.Clone(q.labels)}}
	if q.owner.UID != "" {
		secret.OwnerReferences = []metav1.OwnerReference{q.owner}
	}
	if err := h.client.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return jobstate.State{}, explainRefusal(q, fmt.Errorf("creating Secret %s: %w", q.state.Name, err))
	}
	return q.store(h.client).ReadState(ctx)
}

// explainRefusal adds what to do about a namespace that is being deleted.
func explainRefusal(q request, err error) error {
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	return fault.NewDenied("namespace %s is being deleted and accepts no Job, so hotspare cannot run program %s of recipe %s there: "+
		"run the program yourself, then set spec.preserveOnDelete of the ClusterDeployment", q.state.Namespace, q.verb, q.recipe)
}

// beginRun records a new run, which replaces last, and creates its Job.
func (h *hub) beginRun(ctx context.Context, q request, last jobstate.Run) (progress, error) {
	next := jobstate.Run{Token: rand.Text(), Verb: q.verb, Request: q.hash, Phase: jobstate.Requested}
	if last.Phase == jobstate.Interrupted && last.Verb == q.verb && last.Interruptions < maxInterruptions {
		next.Interruptions = last.Interruptions
	}
	st, err := q.store(h.client).EditState(ctx, func(s *jobstate.State) error {
		if s.Run.Token != last.Token || s.Run.Phase.IsActive() {
			return fault.New(fault.Conflict, fmt.Errorf("another process of hotspare has started a program with state %s", q.state.Name))
		}
		s.Run, s.Input, s.Outcome, s.Answer, s.Kubeconfig = next, q.input, jobstate.Outcome{}, nil, nil
		return nil
	})
	if err != nil {
		return progress{}, err
	}
	return h.followRun(ctx, q, st)
}

// maxInterruptions is the number of interrupted runs in a row after which a program has failed.
const maxInterruptions = 3

// followRun makes sure that an active run has a Job, and records a run that was interrupted.
func (h *hub) followRun(ctx context.Context, q request, st jobstate.State) (progress, error) {
	p := progress{token: st.Run.Token, state: st}
	seen, err := h.observeJob(ctx, q, st.Run.Token)
	switch {
	case err != nil:
		return p, err
	case len(seen.LivePods) > 0 && (seen.Ended || !seen.Exists):
		p.waiting = newPodWait(seen.LivePods[0], q)
		return p, nil
	case !seen.Exists && st.Run.Phase == jobstate.Requested:
		return p, h.createJob(ctx, q, st.Run.Token)
	case seen.Exists && !seen.Ended:
		p.waiting = seen.LaunchError
		return p, nil
	}
	p.message = seen.FailureMessage()
	if !seen.Exists {
		p.message = fmt.Sprintf("Job %s was deleted while it ran program %s", seen.Name, q.verb)
	}
	neverStarted := seen.TimedOut && st.Run.Phase == jobstate.Requested
	p.state, err = q.store(h.client).EditState(ctx, func(s *jobstate.State) error {
		if s.Run.Token != st.Run.Token || !s.Run.Phase.IsActive() {
			return hubjob.ErrNoChange // its pod has written the outcome meanwhile
		}
		s.Run.Phase = jobstate.Interrupted
		if !neverStarted {
			s.Run.Interruptions++
		}
		return nil
	})
	return p, err
}

func newPodWait(pod string, q request) error {
	return &install.NotLaunchedError{Err: fault.NewWait(hubjob.PollInterval,
		"program %s of recipe %s waits for pod %s, which has not ended yet; if its node is permanently lost, delete the pod by force", q.verb, q.recipe, pod)}
}

func (h *hub) observeJob(ctx context.Context, q request, token string) (hubjob.Status, error) {
	name := q.jobName(token)
	var job batchv1.Job
	err := h.client.Get(ctx, types.NamespacedName{Namespace: q.state.Namespace, Name: name}, &job)
	switch {
	case apierrors.IsNotFound(err):
		return hubjob.Observe(ctx, h.client, q.state.Namespace, nil, []string{name})
	case err != nil:
		return hubjob.Status{}, fmt.Errorf("reading Job %s: %w", name, err)
	}
	return hubjob.Observe(ctx, h.client, q.state.Namespace, &job, []string{name})
}

// createJob creates the Job of a run with everything that it needs. An existing Job is not an error.
func (h *hub) createJob(ctx context.Context, q request, token string) error {
	var secret corev1.Secret
	if err := h.client.Get(ctx, q.state, &secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", q.state.Name, err)
	}
	access := hubjob.Access{State: &secret, Labels: q.labels}
	if q.verb != describe { // it has no state folder
		access.Parts = jobstate.PartNames(q.state.Name)
	}
	if err := h.ensureAccess(ctx, access); err != nil {
		return explainRefusal(q, err)
	}
	if err := h.client.Create(ctx, h.buildJob(q, access, token)); err != nil && !apierrors.IsAlreadyExists(err) {
		return explainRefusal(q, fmt.Errorf("creating Job %s: %w", q.jobName(token), err))
	}
	return nil
}

// ensureAccess creates the ServiceAccount of the pods, unless this process has created it before.
func (h *hub) ensureAccess(ctx context.Context, a hubjob.Access) error {
	h.mu.Lock()
	known := h.accessible[a.State.UID]
	h.mu.Unlock()
	if known {
		return nil
	}
	if err := a.Create(ctx, h.client); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.accessible) > maxAccessible {
		clear(h.accessible) // they are created again, which changes nothing
	}
	h.accessible[a.State.UID] = true
	return nil
}

// maxAccessible bounds the number of remembered Secrets.
const maxAccessible = 10_000

// endRun ends a run. Until its pods have ended, it returns what it waits for.
func (h *hub) endRun(ctx context.Context, q request, run jobstate.Run) (waiting, err error) {
	_, err = q.store(h.client).EditState(ctx, func(s *jobstate.State) error {
		if s.Run.Token != run.Token || !s.Run.Phase.IsActive() {
			return hubjob.ErrNoChange
		}
		s.Run.Phase = jobstate.Abandoned
		return nil
	})
	if err != nil {
		return nil, err
	}
	old := q
	old.verb = run.Verb
	if err := h.deleteJob(ctx, old, run.Token); err != nil {
		return nil, err
	}
	seen, err := h.observeJob(ctx, old, run.Token)
	if err != nil || len(seen.LivePods) == 0 {
		return nil, err
	}
	return newPodWait(seen.LivePods[0], q), nil
}

// deleteJob deletes the Job of a run and lets its pods end.
func (h *hub) deleteJob(ctx context.Context, q request, token string) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: q.state.Namespace, Name: q.jobName(token)}}
	if err := h.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	return nil
}

// recordReported records that the caller has received an outcome, and deletes the Job of a program that
// succeeded, because observe runs often.
func (h *hub) recordReported(ctx context.Context, q request, p progress) error {
	_, err := q.store(h.client).EditState(ctx, func(s *jobstate.State) error {
		if s.Run.Token != p.token || s.Run.Phase != jobstate.Ended {
			return hubjob.ErrNoChange
		}
		s.Run.Phase = jobstate.Reported
		return nil
	})
	if err == nil && p.state.Outcome.Result == recipe.Done && q.verb != recipe.Create {
		err = h.deleteJob(ctx, q, p.token)
	}
	return err
}

// run runs a program and waits until it has ended. report receives what the program waits for, or nil.
// Errors of the hub do not end it, except for fault.Denied and fault.Conflict: the program may run.
func (h *hub) run(ctx context.Context, q request, report func(error) (yield bool)) (progress, error) {
	var p progress
	for {
		next, err := h.advance(ctx, q, p.token)
		switch kind := fault.KindOf(err); {
		case ctx.Err() != nil:
			return p, fmt.Errorf("waiting for program %s of recipe %s: %w", q.verb, q.recipe, ctx.Err())
		case kind == fault.Denied || kind == fault.Conflict && !apierrors.IsConflict(err):
			return p, err
		case err != nil:
			report(fault.NewWait(hubjob.PollInterval, "running program %s of recipe %s: %w", q.verb, q.recipe, err))
		case next.isDone():
			report(nil)
			return next, h.recordReported(ctx, q, next)
		default:
			if report(next.waiting) && next.state.Run.Phase != jobstate.Running {
				return p, fault.NewWait(h.Poll, "another program of the cluster runs before %s, which cannot start: %w", q.verb, next.waiting)
			}
		}
		p.token = cmp.Or(next.token, p.token)
		if err := h.pause(ctx); err != nil {
			return p, fmt.Errorf("waiting for program %s of recipe %s: %w", q.verb, q.recipe, err)
		}
	}
}

func (h *hub) pause(ctx context.Context) error {
	timer := h.Clock.NewTimer(h.Poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// maxPrefix leaves room for the rest of the name of a Job.
const maxPrefix = 24

// stateName returns the name of a state Secret, derived from which.
func stateName(prefix, which string) string {
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix-1] + "x" // a name must not end with a dot
	}
	sum := sha256.Sum256([]byte(which))
	return prefix + "-recipe-" + hex.EncodeToString(sum[:])[:8]
}

var errInterrupted = errors.New("the pod of a program ended before the program did")
