package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
)

// A Snapshot is everything that the verdict about one spare cluster depends on.
type Snapshot struct {
	Requirement Requirement
	// Running is set while the cluster is an installed, unclaimed cluster of a pool that runs: see IsCheckable.
	Running bool
	// AwaitsSteps is set while the gates are not checked because the cluster has not taken every step of the
	// ClusterBootstrap.
	AwaitsSteps bool
	// Undecided is set while it is not recorded whether the cluster is older than the steps, and so must not take them first.
	// Nothing is checked or written then; the record causes another pass.
	Undecided bool
	// Fake is set if the cluster exists only as an API object. It passes every gate.
	Fake bool
	// RunStartedAt identifies the current run; zero if it is unknown.
	RunStartedAt time.Time
	// Record is status.gates; nil if there is none. Reported reports whether the condition GatesPassed exists.
	Record   *hivev1.GateRecord
	Reported bool
	// Answers are those of the gates that GatesToCheck returns, by name.
	Answers map[string]Answer
	// PodProblem says why the pods of gates could not be deleted when HasPodsToDelete is set; empty if they were.
	PodProblem string
	Now        time.Time
}

// An Answer is what one gate found.
type Answer struct {
	Passed bool
	// Message explains an answer that is not Passed. It is stable while the cause is the same, and contains no
	// secrets.
	Message string
}

// A Plan is what to write into the status of a cluster.
type Plan struct {
	// Record is the new status.gates; nil removes it.
	Record *hivev1.GateRecord
	// Condition is the new condition GatesPassed; the zero Value removes it.
	Condition condition.Value
	// Next is the time until the cluster must be reconciled again even if nothing changes; 0 if only a change
	// matters.
	Next time.Duration
}

// IsCheckable reports whether the gates of a cluster can be checked now: it is an unclaimed cluster of a pool
// that runs and should run.
func IsCheckable(cd *hivev1.ClusterDeployment) bool {
	ref := cd.Spec.ClusterPoolRef
	return ref != nil && ref.PoolName != "" && ref.ClaimName == "" && cd.DeletionTimestamp == nil && cd.Unreadable == "" &&
		cd.Spec.Installed && cd.Spec.PowerState != hivev1.PowerHibernating && cd.Status.PowerState == hivev1.StatusRunning
}

// RunStart returns when the current run of a cluster began: its resume, or its install if it has not been
// resumed. It is zero if that is unknown.
func RunStart(cd *hivev1.ClusterDeployment) time.Time {
	switch t := cd.Status.PowerTransition; {
	case t != nil && t.Target == hivev1.PowerRunning:
		return t.StartedAt.Time
	case cd.Status.InstalledTimestamp != nil:
		return cd.Status.InstalledTimestamp.Time
	default:
		return time.Time{}
	}
}

// PassedVersion returns the version of the gates that a cluster has passed in its current run; empty if it has
// passed none.
func PassedVersion(cd *hivev1.ClusterDeployment) string {
	r := cd.Status.Gates
	if r == nil || !r.Passed || !isOfRun(r, RunStart(cd)) {
		return ""
	}
	return r.Version
}

// FailingVersion returns the version of the gates of which one fails in the current run of a cluster; empty if
// none does, or if they have not been checked.
func FailingVersion(cd *hivev1.ClusterDeployment) string {
	r := cd.Status.Gates
	if r == nil || r.Passed || r.FailedSince == nil || !isOfRun(r, RunStart(cd)) {
		return ""
	}
	return r.Version
}

func isOfRun(r *hivev1.GateRecord, run time.Time) bool {
	if r.RunStartedAt == nil {
		return run.IsZero()
	}
	return r.RunStartedAt.Time.Equal(run)
}

// EndRun removes the verdict about a run that has ended from the status of a cluster. Whoever writes that the
// cluster does not run calls it for the same write: no verdict outlives the run. A cluster without a verdict
// remains as it is.
func EndRun(cd *hivev1.ClusterDeployment, now time.Time) {
	st := &cd.Status
	if st.PowerState == hivev1.StatusRunning || st.Gates == nil {
		return
	}
	if ref := cd.Spec.ClusterPoolRef; ref != nil && ref.ClaimName != "" {
		st.Gates = nil
		condition.Remove(&st.Conditions, hivev1.ClusterGatesPassed)
		return
	}
	st.Gates = &hivev1.GateRecord{FirstPassedAt: st.Gates.FirstPassedAt}
	condition.Apply(&st.Conditions, hivev1.ClusterGatesPassed, notRunning, now)
}

// Forget removes the verdict from the status of a cluster that begins the steps of a bootstrap, also that it has ever passed: its
// gates are checked when every step is done. Whoever writes that it begins them calls it for the same write.
func Forget(cd *hivev1.ClusterDeployment, now time.Time) {
	st := &cd.Status
	if st.Gates == nil {
		return
	}
	st.Gates = nil
	condition.Apply(&st.Conditions, hivev1.ClusterGatesPassed, awaitsSteps, now)
}

var awaitsSteps = condition.Unknown(hivev1.ReasonGatesNotChecked, "hotspare checks the gates when every step of the bootstrap is done.")

var notRunning = condition.Unknown(hivev1.ReasonGatesNotChecked, "The cluster does not run: hotspare checks its gates when it runs.")

// GatesToCheck returns the gates that must be checked for the next verdict.
func (s Snapshot) GatesToCheck() []v1alpha1.Gate {
	if !s.Running || s.AwaitsSteps || s.Undecided || s.Fake || s.Requirement.Problem != "" {
		return nil
	}
	var out []v1alpha1.Gate
	for _, g := range s.Requirement.Gates {
		if !slices.Contains(s.passedOnce(), g.Name) {
			out = append(out, g)
		}
	}
	return out
}

// HasPodsToDelete reports whether the cluster may have pods of gates although no gate is required any more: a gate may have
// been removed while its pod did not run yet.
func (s Snapshot) HasPodsToDelete() bool {
	return s.Requirement.Version == "" && s.Running && !s.Fake && (s.Record != nil || s.Reported)
}

// current returns the record if it is about the current run and version, otherwise nil.
func (s Snapshot) current() *hivev1.GateRecord {
	if r := s.Record; r != nil && r.Version == s.Requirement.Version && isOfRun(r, s.RunStartedAt) {
		return r
	}
	return nil
}

func (s Snapshot) passedOnce() []string {
	if r := s.current(); r != nil {
		return r.PassedOnce
	}
	return nil
}

// Decide returns the verdict. A gate without an answer has not passed.
func Decide(s Snapshot) Plan {
	switch {
	case s.PodProblem != "":
		return Plan{
			Record: &hivev1.GateRecord{FirstPassedAt: s.firstPassedAt()}, Next: maxRetryDelay,
			Condition: condition.Unknown(hivev1.ReasonGatesNotChecked, "There are no gates any more, and the pods of earlier ones cannot be deleted: "+s.PodProblem+"."),
		}
	case s.Requirement.Version == "":
		return Plan{}
	case s.Requirement.Problem != "":
		return Plan{
			Record:    &hivev1.GateRecord{FirstPassedAt: s.firstPassedAt()},
			Condition: condition.Unknown(hivev1.ReasonGatesNotChecked, "The gates are not checked: "+s.Requirement.Problem+"."),
		}
	case (!s.Running || s.AwaitsSteps) && s.Record == nil && !s.Reported:
		return Plan{} // it was never checked: its other conditions say what it does
	case !s.Running:
		return Plan{Record: &hivev1.GateRecord{FirstPassedAt: s.firstPassedAt()}, Condition: notRunning}
	case s.AwaitsSteps:
		return Plan{Record: &hivev1.GateRecord{FirstPassedAt: s.firstPassedAt()}, Condition: awaitsSteps}
	}
	record := &hivev1.GateRecord{Version: s.Requirement.Version, FirstPassedAt: s.firstPassedAt()}
	if !s.RunStartedAt.IsZero() {
		record.RunStartedAt = apiTime(s.RunStartedAt)
	}
	failures := s.applyAnswers(record)
	if len(failures) == 0 {
		return s.planPassed(record)
	}
	return s.planFailed(record, failures)
}

// applyAnswers records the gates that are not checked again, and returns what the others object, in the order
// of the gates.
func (s Snapshot) applyAnswers(record *hivev1.GateRecord) (failures []string) {
	once := s.passedOnce()
	for _, g := range s.Requirement.Gates {
		answer, answered := s.Answers[g.Name]
		switch {
		case s.Fake:
		case slices.Contains(once, g.Name), answer.Passed && IsCheckedOnce(g):
			record.PassedOnce = append(record.PassedOnce, g.Name)
		case !answered:
			failures = append(failures, g.Name+": it was not checked")
		case !answer.Passed:
			failures = append(failures, g.Name+": "+answer.Message)
		}
	}
	return failures
}

func (s Snapshot) planPassed(record *hivev1.GateRecord) Plan {
	record.Passed = true
	if record.FirstPassedAt == nil {
		record.FirstPassedAt = apiTime(s.Now)
	}
	p := Plan{Record: record, Next: s.Requirement.Interval, Condition: condition.True(hivev1.ReasonGatesPassed, "Every gate of the cluster passes.")}
	if s.Fake {
		p.Next, p.Condition.Message = 0, "The cluster is fake: it passes every gate."
	}
	return p
}

func (s Snapshot) planFailed(record *hivev1.GateRecord, failures []string) Plan {
	record.FailedSince = apiTime(s.Now)
	if r := s.current(); r != nil && r.FailedSince != nil {
		record.FailedSince = r.FailedSince
	}
	record.Deadline = apiTime(record.FailedSince.Add(s.Requirement.Timeout))
	return Plan{
		Record: record, Next: retryDelay(s.Now.Sub(record.FailedSince.Time)),
		Condition: condition.False(hivev1.ReasonGateFailed, describeFailures(failures)),
	}
}

// describeFailures returns a sentence about the gates that fail.
func describeFailures(failures []string) string {
	const most = 5
	words := strings.Join(failures[:min(len(failures), most)], "; ")
	if more := len(failures) - most; more > 0 {
		words += fmt.Sprintf("; and %d more", more)
	}
	if len(failures) == 1 {
		return "A gate fails: " + words + "."
	}
	return "Gates fail: " + words + "."
}

// Delays between two checks of gates that fail: a tenth of the time for which they have failed.
const (
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = 15 * time.Second
)

func retryDelay(failing time.Duration) time.Duration {
	return min(max(failing/10, minRetryDelay), maxRetryDelay)
}

func (s Snapshot) firstPassedAt() *metav1.Time {
	if s.Record == nil {
		return nil
	}
	return s.Record.FirstPassedAt
}

// Changes reports whether the verdict of the plan differs from that of the condition before it, which is nil if
// there was none.
func (p Plan) Changes(before *hivev1.Condition) bool {
	was := corev1.ConditionUnknown
	if before != nil {
		was = before.Status
	}
	return p.Condition.Status != was && p.Condition.Status != corev1.ConditionUnknown && p.Condition.Status != ""
}

func apiTime(t time.Time) *metav1.Time {
	out := metav1.NewTime(t.Truncate(time.Second))
	return &out
}
