// Package jobpod runs in a pod of the hub: it runs one program of a recipe, and records the outcome, the
// state folder and the log in the state Secret.
package jobpod

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

// Options configures a run.
type Options struct {
	Store jobstate.Store
	// Token identifies the run; Pod is the name of the pod, for people.
	Token, Pod string
	// Recipes is the folder with the recipes, Recipe the name of one.
	Recipes, Recipe string
	// Version is the required ContentVersion of the recipe; empty accepts every version.
	Version string
	// Limit is the time limit of the program; 0 means that of the recipe.
	Limit time.Duration
	// Work is an empty folder that only this pod uses.
	Work string
	// Secrets is the folder with the credentials; empty if there are none.
	Secrets string
	// Out receives the log of the program, without secrets.
	Out io.Writer
	// StopGrace is the time between SIGTERM and SIGKILL when the program is ended; 0 means 10 s.
	StopGrace time.Duration
	// SaveInterval is how often a changed state folder is stored; 0 means 5 s.
	SaveInterval time.Duration
	// HeartbeatInterval is how often an unchanged one is confirmed; 0 means 30 s. If nothing could be
	// written for HeartbeatTimeout, the program is ended; 0 means 3 min.
	HeartbeatInterval, HeartbeatTimeout time.Duration
}

// finalWriteTimeout bounds the writes of a process that has been stopped, within the termination grace
// period of its pod.
const finalWriteTimeout = 30 * time.Second

// run is one run.
type run struct {
	Options
	holder  string
	cluster recipe.Cluster
	log     *logTail

	// folder and written describe the last write.
	folder  jobstate.Folder
	written time.Time
}

// excludedFiles are files of package recipe in a state folder, which describe one run of a program.
var excludedFiles = []string{".lock", ".run", "input.json"}

// RunVerb runs the program that the state requests. It returns nil when the outcome is in the state. The
// error is jobstate.ErrOvertaken if another pod runs the program, or if it must not run any more.
func RunVerb(ctx context.Context, o Options) error {
	o.SaveInterval, o.HeartbeatInterval = cmp.Or(o.SaveInterval, 5*time.Second), cmp.Or(o.HeartbeatInterval, 30*time.Second)
	o.HeartbeatTimeout = cmp.Or(o.HeartbeatTimeout, 3*time.Minute)
	r := &run{Options: o, holder: o.Pod + "/" + rand.Text()[:8], log: &logTail{out: o.Out}}
	st, err := r.claim(ctx)
	if err != nil {
		return err
	}
	result, err := r.prepareFolder(ctx, st)
	if err == nil && result == nil {
		result, err = r.runProgram(ctx, st)
	}
	if err != nil {
		return errors.Join(err, r.recordInterruption(ctx))
	}
	return r.recordOutcome(ctx, result)
}

// claim makes this pod the only one that runs the program.
func (r *run) claim(ctx context.Context) (jobstate.State, error) {
	st, err := r.Store.EditState(ctx, func(s *jobstate.State) error {
		if s.Run.Token != r.Token || s.Run.Phase != jobstate.Requested {
			return jobstate.ErrOvertaken
		}
		s.Run.Phase, s.Run.Holder, s.Run.Heartbeat = jobstate.Running, r.holder, timestamp()
		return nil
	})
	if err == nil && st.Folder.UsesParts {
		err = r.Store.TakeParts(ctx, r.Token)
	}
	r.folder, r.written = st.Folder, time.Now()
	return st, err
}

func timestamp() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// result is what a program returned.
type result struct {
	jobstate.Outcome
	answer, kubeconfig []byte
}

func newFailure(format string, args ...any) *result {
	return &result{Outcome: jobstate.Outcome{Result: recipe.Failed, Problem: fmt.Sprintf(format, args...)}}
}

// prepareFolder restores the state folder and loads the recipe. It returns a result if the program
// cannot run.
func (r *run) prepareFolder(ctx context.Context, st jobstate.State) (*result, error) {
	var input recipe.Input
	if err := json.Unmarshal(st.Input, &input); err != nil {
		return newFailure("the input of the program cannot be read: %v", err), nil
	}
	dir := filepath.Join(r.Work, "state")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the state folder: %w", err)
	}
	packed, err := r.Store.ReadFolder(ctx, st.Folder)
	if err == nil {
		err = jobstate.UnpackFolder(packed, dir)
	}
	if err != nil && st.Run.Verb != recipe.Destroy { // destroy needs only the infraID
		if errors.Is(err, jobstate.ErrDamaged) {
			return newFailure("%v", err), nil
		}
		return nil, err
	}
	loaded, err := recipe.Load(filepath.Join(r.Recipes, r.Recipe))
	if err != nil {
		return newFailure("the image has no usable recipe %s: %v", r.Recipe, err), nil
	}
	if r.Version != "" {
		have, err := loaded.ContentVersion()
		if err != nil {
			return nil, err
		}
		if have != r.Version {
			return newFailure("the image contains version %s of recipe %s, and contained %s when hotspare read it: "+
				"set the digest of the image in spec.releaseImage of the ClusterImageSet",
				have, r.Recipe, r.Version), nil
		}
	}
	loaded = loaded.WithTimeouts(map[recipe.Verb]time.Duration{st.Run.Verb: r.Limit})
	r.cluster = recipe.Cluster{Recipe: loaded, Input: input, Dir: dir, Secrets: r.Secrets, Log: r.log, StopGrace: r.StopGrace}
	return nil, nil
}

// runProgram runs the program, and stores the state folder and heartbeats meanwhile. It returns an error
// if the program was interrupted.
func (r *run) runProgram(ctx context.Context, st jobstate.State) (*result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		r.saveUntilEnd(ctx, stop)
	}()
	out, err := r.callVerb(ctx, st.Run.Verb)
	cause := context.Cause(ctx)
	stop(nil)
	<-saved
	var failed *recipe.VerbError
	switch {
	case errors.As(err, &failed):
		out.Result, out.Problem = failed.Outcome, failed.Problem
	case err != nil && cause != nil:
		return nil, fmt.Errorf("the program was ended: %w", cause)
	case err != nil:
		return newFailure("%v", err), nil
	}
	return out, nil
}

// callVerb runs the program, and what follows it.
func (r *run) callVerb(ctx context.Context, v recipe.Verb) (*result, error) {
	out := &result{Outcome: jobstate.Outcome{Result: recipe.Done}}
	var answer any
	var err error
	switch v {
	case recipe.Prepare:
		answer, err = r.cluster.Prepare(ctx)
	case recipe.Observe:
		var ms cloud.Machines
		ms, _, err = r.cluster.Observe(ctx)
		answer = newObservation(ms)
	case recipe.Kubeconfig:
		out.kubeconfig, err = r.readKubeconfig(ctx)
		return out, err
	default:
		var again bool
		again, err = r.cluster.Call(ctx, v)
		if again {
			out.Result = recipe.InProgress
		}
		if err == nil && !again && v == recipe.Create {
			// A failure is reported when the kubeconfig is asked for.
			out.kubeconfig, _ = r.readKubeconfig(ctx)
		}
		return out, err
	}
	if err == nil {
		out.answer, err = json.Marshal(answer)
	}
	return out, err
}

func (r *run) readKubeconfig(ctx context.Context) ([]byte, error) {
	raw, err := r.cluster.ReadKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return runner.InlineKubeconfig(r.cluster, raw)
}

func newObservation(ms cloud.Machines) recipe.Observation {
	o := recipe.Observation{APIVersion: recipe.APIVersion}
	for _, m := range ms {
		o.Machines = append(o.Machines, recipe.Machine{Name: m.Name, ControlPlane: m.ControlPlane, State: m.State, Reason: m.Reason})
	}
	return o
}

// saveUntilEnd stores the state folder until ctx ends. It stops the program if the run is no longer the
// current one, or if the hub could not be reached for too long: another pod may then replace this one.
func (r *run) saveUntilEnd(ctx context.Context, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(r.SaveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		limit, cancel := context.WithTimeout(ctx, r.HeartbeatTimeout/3)
		err := r.save(limit)
		cancel()
		switch {
		case err == nil || errors.Is(err, jobstate.ErrTooLarge) || ctx.Err() != nil:
		case errors.Is(err, jobstate.ErrOvertaken), time.Since(r.written) > r.HeartbeatTimeout:
			fmt.Fprintf(r.Out, "ending the program: %v\n", err)
			stop(err)
			return
		default:
			fmt.Fprintf(r.Out, "storing the state folder: %v\n", err) // the next attempt may succeed
		}
	}
}

// save stores the state folder if it has changed, or confirms that this pod is alive if it is time.
func (r *run) save(ctx context.Context) error {
	packed, err := jobstate.PackFolder(r.cluster.Dir, excludedFiles...)
	if err != nil && !errors.Is(err, jobstate.ErrTooLarge) {
		return err
	}
	changed := err == nil && jobstate.HashFolder(packed) != r.folder.Digest
	if !changed && time.Since(r.written) < r.HeartbeatInterval {
		return nil
	}
	return errors.Join(err, r.write(ctx, packed, changed, func(s *jobstate.State) { s.Run.Heartbeat = timestamp() }))
}

// write stores the folder, if it has changed, together with an edit of the state.
func (r *run) write(ctx context.Context, packed []byte, changed bool, edit func(*jobstate.State)) error {
	folder := r.folder
	if changed {
		var err error
		if folder, err = r.storeFolder(ctx, packed); err != nil {
			return err
		}
	}
	_, err := r.Store.EditState(ctx, func(s *jobstate.State) error {
		if err := r.confirmCurrent(s); err != nil {
			return err
		}
		s.Folder, s.Log = folder, r.log.text()
		edit(s)
		return nil
	})
	if err == nil {
		r.folder, r.written = folder, time.Now()
	}
	return err
}

// confirmCurrent returns jobstate.ErrOvertaken unless this pod still runs the program.
func (r *run) confirmCurrent(s *jobstate.State) error {
	if s.Run.Token != r.Token || s.Run.Phase != jobstate.Running || s.Run.Holder != r.holder {
		return jobstate.ErrOvertaken
	}
	return nil
}

// storeFolder stores a large folder in parts. It returns where the folder is.
func (r *run) storeFolder(ctx context.Context, packed []byte) (jobstate.Folder, error) {
	if len(packed) <= jobstate.MaxInline {
		return jobstate.Folder{Inline: packed, Digest: jobstate.HashFolder(packed), UsesParts: r.folder.UsesParts}, nil
	}
	if !r.folder.UsesParts {
		_, err := r.Store.EditState(ctx, func(s *jobstate.State) error {
			s.Folder.UsesParts = true
			return r.confirmCurrent(s)
		})
		if err == nil {
			err = r.Store.TakeParts(ctx, r.Token)
		}
		if err != nil {
			return jobstate.Folder{}, err
		}
		r.folder.UsesParts = true
	}
	return r.Store.WriteParts(ctx, r.Token, r.folder, packed)
}

// recordOutcome stores the outcome with the final state folder. It retries until the pod is ended,
// because no other process knows the outcome.
func (r *run) recordOutcome(ctx context.Context, out *result) error {
	packed, err := r.packFinalFolder()
	if err != nil && out.Result != recipe.Failed {
		out = newFailure("%v", err)
	}
	for {
		changed := packed != nil && jobstate.HashFolder(packed) != r.folder.Digest
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWriteTimeout)
		err := r.write(limit, packed, changed, out.store)
		cancel()
		var large *jobstate.TooLargeError
		switch {
		case errors.As(err, &large) && (changed || out.Result != recipe.Failed):
			out, packed = newFailure("%v: keep large data elsewhere", err), nil // the stored folder remains
			continue
		case err == nil, errors.As(err, &large), errors.Is(err, jobstate.ErrOvertaken), ctx.Err() != nil:
			return err
		}
		fmt.Fprintf(r.Out, "recording the outcome: %v\n", err)
		select {
		case <-ctx.Done():
		case <-time.After(r.SaveInterval):
		}
	}
}

// packFinalFolder returns the packed state folder; nil if there is none.
func (r *run) packFinalFolder() ([]byte, error) {
	if r.cluster.Dir == "" {
		return nil, nil
	}
	packed, err := jobstate.PackFolder(r.cluster.Dir, excludedFiles...)
	if err != nil {
		return nil, err
	}
	return packed, nil
}

// store writes the result to the state.
func (r *result) store(s *jobstate.State) {
	s.Run.Phase, s.Run.Interruptions = jobstate.Ended, 0
	s.Outcome, s.Answer = r.Outcome, r.answer
	if len(s.Outcome.Problem) > jobstate.MaxProblem {
		s.Outcome.Problem = strings.ToValidUTF8(s.Outcome.Problem[:jobstate.MaxProblem-10], "") + "…"
	}
	s.Kubeconfig = r.kubeconfig
}

// recordInterruption stores that the program was interrupted, with the state folder that it left.
func (r *run) recordInterruption(ctx context.Context) error {
	packed, err := r.packFinalFolder()
	if err != nil {
		packed = nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalWriteTimeout)
	defer cancel()
	return r.write(ctx, packed, packed != nil, func(s *jobstate.State) {
		s.Run.Phase = jobstate.Interrupted
		s.Run.Interruptions++
	})
}

// Describe records the definition of a recipe in the state. It runs no program of the recipe.
func Describe(ctx context.Context, o Options) error {
	r := &run{Options: o, holder: o.Pod + "/" + rand.Text()[:8], log: &logTail{out: o.Out}}
	if _, err := r.claim(ctx); err != nil {
		return err
	}
	return r.recordOutcome(ctx, r.describeRecipe())
}

func (r *run) describeRecipe() *result {
	dir := filepath.Join(r.Recipes, r.Recipe)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return newInvalid("the image has no recipe %q in %s: %s", r.Recipe, r.Recipes, listRecipes(r.Recipes))
	}
	loaded, err := recipe.Load(dir)
	if err != nil {
		return newInvalid("%v", err)
	}
	definition, err := recipe.NewDefinition(loaded)
	if err != nil {
		return newInvalid("%v", err)
	}
	if missing := loaded.Needs.Missing(); len(missing) > 0 {
		return newInvalid("recipe %s needs programs that are not in the PATH of its image: %v: install them in the image", r.Recipe, missing)
	}
	out := &result{Outcome: jobstate.Outcome{Result: recipe.Done}}
	if out.answer, err = json.Marshal(definition); err != nil {
		return newInvalid("%v", err)
	}
	return out
}

func newInvalid(format string, args ...any) *result {
	out := newFailure(format, args...)
	out.Result = recipe.Invalid
	return out
}

// listRecipes says which recipes an image contains.
func listRecipes(dir string) string {
	found, err := filepath.Glob(filepath.Join(dir, "*", recipe.FileName))
	if err != nil || len(found) == 0 {
		return "it contains no recipe: copy the folders of recipes there"
	}
	names := make([]string, len(found))
	for i, path := range found {
		names[i] = filepath.Base(filepath.Dir(path))
	}
	return fmt.Sprintf("use one of %v", names)
}
