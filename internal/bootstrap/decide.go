package bootstrap

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// A Snapshot is everything that the steps of one spare cluster depend on.
type Snapshot struct {
	Requirement Requirement
	// Running is set while the cluster is an installed, unclaimed cluster of a pool that runs.
	Running bool
	// Fake is set if the cluster exists only as an API object. Its steps are done without being taken.
	Fake bool
	// Adopted is set if the pool has not created the cluster and never replaces it: it takes the steps again
	// when they change before all are done.
	Adopted bool
	// AwaitsPool is set if the cluster was installed before its pool had steps, and has begun none: its pool decides when
	// it begins them, and records that it has.
	AwaitsPool bool
	// Undecided is set while the pool has not recorded since when it has steps: nothing is written then.
	Undecided bool
	// RunStartedAt identifies the current run; zero if it is unknown.
	RunStartedAt time.Time
	// Record is status.bootstrap; nil if there is none. Reported reports whether the condition Bootstrapped
	// exists.
	Record   *hivev1.BootstrapRecord
	Reported bool
	// Outcome is what the attempt that an earlier Plan requests came to; nil before the attempt.
	Outcome *Outcome
	Now     time.Time
}

// An Outcome is what an attempt at a step came to.
type Outcome struct {
	Done bool
	// Failed is set if the cluster refuses something, or reports a failure: it will not get better by waiting
	// alone, as far as is known.
	Failed bool
	// Final is set, with Failed, if no further attempt can do the step in this cluster unless somebody intervenes
	// there: a Job that has used all its retries does not run again.
	Final bool
	// Message explains an outcome that is not Done. It is stable while the cause is the same, and contains no
	// secrets.
	Message string
}

// A Plan is what to write into the status of a cluster, and then to do.
type Plan struct {
	// Unchanged is set if the status stays as it is: then Record and Condition mean nothing.
	Unchanged bool
	// Record is the new status.bootstrap; nil removes it.
	Record *hivev1.BootstrapRecord
	// Condition is the new condition Bootstrapped; the zero Value removes it.
	Condition condition.Value
	// Attempt is the step to attempt after the status was written; nil if there is none.
	Attempt *Step
	// RemoveOthers is set if there is no step to attempt, and what the steps of other versions have left in the cluster
	// must be removed from it before it counts as finished.
	RemoveOthers bool
	// Next is the time until the cluster must be reconciled again even if nothing changes; 0 if only a change
	// matters.
	Next time.Duration
}

// Delays of the next pass.
const (
	immediately     = time.Millisecond
	problemDelay    = 5 * time.Second // nobody reports when a ConfigMap or Secret is created
	minAttemptDelay = 250 * time.Millisecond
	maxAttemptDelay = 15 * time.Second
)

// finalDelay is the time between a final failure of a step and the end of its time. A bundle of diagnostics is collected
// meanwhile.
const finalDelay = 30 * time.Second

// Decide returns the plan. It begins a step only after the one before it is done, attempts a step only after its
// beginning is recorded, and continues with one version of the steps only.
func Decide(s Snapshot) Plan {
	switch {
	case s.isFinished():
		return Plan{Record: s.Record, Condition: condition.True(hivev1.ReasonStepsDone, "Every step of the bootstrap is done.")}
	case s.Requirement.Version == "" && s.Record == nil:
		return Plan{}
	case s.Record == nil && !s.Reported && !s.Running:
		return Plan{} // its other conditions say what it does
	case s.Requirement.Problem != "":
		return s.waitWith(problemDelay, condition.Unknown(hivev1.ReasonStepsNotTaken, "The steps of the bootstrap are not taken: "+s.Requirement.Problem+"."))
	case s.hasOtherVersion() && !s.Adopted:
		return s.waitWith(0, condition.False(hivev1.ReasonBootstrapChanged,
			"The bootstrap has changed before the cluster had taken all its steps: the pool replaces the cluster."))
	case !s.Running:
		return s.waitWith(0, condition.Unknown(hivev1.ReasonStepsNotTaken, "The cluster does not run: hotspare takes the next step of the bootstrap when it runs."))
	case s.Undecided:
		return Plan{Unchanged: true}
	case s.AwaitsPool:
		return s.waitWith(0, condition.Unknown(hivev1.ReasonStepsNotTaken, "The cluster was installed before the bootstrap of its pool had steps, and has taken none."))
	default:
		return s.advance()
	}
}

// IsFinished reports whether a cluster has taken every step of one version of a bootstrap.
func IsFinished(cd *hivev1.ClusterDeployment) bool {
	return cd.Status.Bootstrap != nil && cd.Status.Bootstrap.FinishedAt != nil
}

// HasBegun reports whether a cluster has begun the steps of a bootstrap, or its pool has let it begin them.
func HasBegun(cd *hivev1.ClusterDeployment) bool {
	return cd.Status.Bootstrap != nil && cd.Status.Bootstrap.Version != ""
}

func (s Snapshot) isFinished() bool { return s.Record != nil && s.Record.FinishedAt != nil }

// hasOtherVersion reports whether the cluster has begun the steps of another version.
func (s Snapshot) hasOtherVersion() bool {
	return s.Record != nil && s.Record.Version != "" && s.Record.Version != s.Requirement.Version
}

// waitWith returns the plan of a cluster that takes no step now. Its step begins anew, with all of its time.
func (s Snapshot) waitWith(next time.Duration, c condition.Value) Plan {
	if !s.Running {
		next = 0
	}
	return Plan{Record: suspend(s.Record), Condition: c, Next: next}
}

// suspend returns a record without a step in progress.
func suspend(r *hivev1.BootstrapRecord) *hivev1.BootstrapRecord {
	if r == nil {
		return nil
	}
	return &hivev1.BootstrapRecord{Version: r.Version, StepsDone: r.StepsDone, FinishedAt: r.FinishedAt}
}

// advance returns the plan of a cluster that runs and has not finished.
func (s Snapshot) advance() Plan {
	done := s.stepsDone()
	switch {
	case s.Fake:
		return s.finish(s.Requirement.stepNames())
	case len(s.Requirement.Steps) == 0:
		return s.removeOthers()
	case !s.hasBegun(done):
		return s.begin(done)
	case s.Outcome == nil:
		return Plan{Unchanged: true, Attempt: &s.Requirement.Steps[len(done)]}
	case s.Outcome.Done:
		return s.begin(append(slices.Clip(done), s.Requirement.Steps[len(done)].Name))
	default:
		return s.waitForStep(done)
	}
}

// removeOthers returns the plan of a cluster that has begun steps of a bootstrap that has none any more. A Job of these
// steps may still run in it, with rights and with values of Secrets.
func (s Snapshot) removeOthers() Plan {
	switch {
	case s.Outcome == nil:
		return Plan{Unchanged: true, RemoveOthers: true}
	case s.Outcome.Done:
		return s.finish(nil)
	default:
		return s.waitWith(problemDelay, condition.False(hivev1.ReasonStepInProgress,
			"The bootstrap has no steps any more: "+strings.TrimRight(s.Outcome.Message, ".")+"."))
	}
}

// stepsDone returns the steps of the required version that are done.
func (s Snapshot) stepsDone() []string {
	if s.Record == nil || s.Record.Version != s.Requirement.Version {
		return nil
	}
	n := 0
	for n < min(len(s.Record.StepsDone), len(s.Requirement.Steps)) && s.Record.StepsDone[n] == s.Requirement.Steps[n].Name {
		n++
	}
	return s.Record.StepsDone[:n]
}

// hasBegun reports whether the record says that the step after those in done is in progress in the current run.
func (s Snapshot) hasBegun(done []string) bool {
	r := s.Record
	return r != nil && r.Version == s.Requirement.Version && len(r.StepsDone) == len(done) && len(done) < len(s.Requirement.Steps) &&
		r.Step == s.Requirement.Steps[len(done)].Name && r.StepStartedAt != nil && IsOfRun(r, s.RunStartedAt)
}

// IsOfRun reports whether the step in progress of a record began in a run.
func IsOfRun(r *hivev1.BootstrapRecord, run time.Time) bool {
	if r.RunStartedAt == nil {
		return run.IsZero()
	}
	return r.RunStartedAt.Time.Equal(run)
}

// begin returns the plan that records the beginning of the next step, or the end of the last one.
func (s Snapshot) begin(done []string) Plan {
	if len(done) == len(s.Requirement.Steps) {
		return s.finish(done)
	}
	step := s.Requirement.Steps[len(done)]
	record := &hivev1.BootstrapRecord{
		Version: s.Requirement.Version, StepsDone: done, Step: step.Name,
		StepStartedAt: apiTime(s.Now), Deadline: apiTime(s.Now.Add(step.Timeout)),
	}
	if !s.RunStartedAt.IsZero() {
		record.RunStartedAt = apiTime(s.RunStartedAt)
	}
	return Plan{
		Record: record, Attempt: &step, Next: immediately,
		Condition: condition.False(hivev1.ReasonStepInProgress, s.describeStep(done)+" begins."),
	}
}

func (s Snapshot) finish(done []string) Plan {
	return Plan{
		Record:    &hivev1.BootstrapRecord{Version: s.Requirement.Version, StepsDone: done, FinishedAt: apiTime(s.Now)},
		Condition: condition.True(hivev1.ReasonStepsDone, "Every step of the bootstrap is done."),
	}
}

// waitForStep returns the plan after an attempt that did not end the step.
func (s Snapshot) waitForStep(done []string) Plan {
	reason, record := hivev1.ReasonStepInProgress, s.Record
	if s.Outcome.Failed {
		reason = hivev1.ReasonStepFailed
	}
	if s.Outcome.Final {
		record = shortenTimeout(record, s.Now)
	}
	return Plan{
		Record: record, Next: attemptDelay(s.Now.Sub(s.Record.StepStartedAt.Time)),
		Condition: condition.False(reason, s.describeStep(done)+": "+strings.TrimRight(s.Outcome.Message, ".")+"."),
	}
}

// shortenTimeout returns a record whose step in progress has at most finalDelay left: the pool does not wait for the
// end of the timeout before it replaces the cluster.
func shortenTimeout(r *hivev1.BootstrapRecord, now time.Time) *hivev1.BootstrapRecord {
	deadline := apiTime(now.Add(finalDelay))
	if r.Deadline != nil && !r.Deadline.After(deadline.Time) {
		return r
	}
	shortened := r.DeepCopy()
	shortened.Deadline = deadline
	return shortened
}

// describeStep names the next step.
func (s Snapshot) describeStep(done []string) string {
	return fmt.Sprintf("Step %d of %d, %s", len(done)+1, len(s.Requirement.Steps), s.Requirement.Steps[len(done)].Name)
}

// attemptDelay returns the delay between two attempts at a step: a tenth of the time that it has taken.
func attemptDelay(taken time.Duration) time.Duration {
	return min(max(taken/10, minAttemptDelay), maxAttemptDelay)
}

func (r Requirement) stepNames() []string {
	out := make([]string, 0, len(r.Steps))
	for _, s := range r.Steps {
		out = append(out, s.Name)
	}
	return out
}

func apiTime(t time.Time) *metav1.Time {
	out := metav1.NewTime(t.Truncate(time.Second))
	return &out
}

// EndRun removes the step in progress from the record of a cluster whose run has ended. Whoever writes that the
// cluster does not run calls it for the same write: the step begins anew in the next run, with all of its time.
func EndRun(cd *hivev1.ClusterDeployment) {
	if r := cd.Status.Bootstrap; cd.Status.PowerState != hivev1.StatusRunning && r != nil && r.Step != "" {
		cd.Status.Bootstrap = suspend(r)
	}
}
