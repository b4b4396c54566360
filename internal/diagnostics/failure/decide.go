// Package failure decides when diagnostics of a cluster are worth collecting: when it has failed, and when it is
// released and its claim requests them.
//
// It is a decider: it has no client and no clock. A cluster that a pool counts as broken is deleted at once, so a
// failure with a deadline counts from half of its time: then the cluster can still be examined.
package failure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
)

// Kind is a kind of failure, or of another cause of a bundle.
type Kind string

// The kinds of failures. Release is none: the claim of a cluster requests a bundle.
const (
	Install Kind = "install"
	Resume  Kind = "resume"
	Outage  Kind = "outage"
	Step    Kind = "step"
	Gate    Kind = "gate"
	Release Kind = "release"
)

// String says in a few words what has happened.
func (k Kind) String() string {
	switch k {
	case Install:
		return "an install attempt failed"
	case Resume:
		return "a resume did not succeed"
	case Outage:
		return "it was not reachable or not ready"
	case Step:
		return "a step of the bootstrap was not done"
	case Gate:
		return "a gate failed"
	case Release:
		return "it was released"
	default:
		return string(k)
	}
}

// DefaultResumePatience is the time that a resume may take if the pool has no resume timeout.
const DefaultResumePatience = 10 * time.Minute

// ReleaseLimit is how long after its deletion a cluster is not destroyed because its bundle is not stored yet.
const ReleaseLimit = 2 * time.Minute

// Snapshot is a cluster as it is now.
type Snapshot struct {
	Now     time.Time
	Cluster *hivev1.ClusterDeployment
	// Claim is the claim of a cluster that is being deleted; nil if it has none.
	Claim *hivev1.ClusterClaim
	// ResumeTimeout is that of the pool; 0 if there is none.
	ResumeTimeout time.Duration
}

// Failure is something that has failed for good, or probably will. Two failures of one cluster are the same if
// they have the same kind and time.
type Failure struct {
	Kind Kind
	// Since identifies the attempt: when the install attempt failed, the resume began, the step began in this run,
	// the gates began to fail, or the cluster was deleted.
	Since time.Time
	// Message says what has failed, for people.
	Message string
}

// Plan says whether there is a failure now, and when the cluster should be looked at again.
type Plan struct {
	// Failure is nil if there is none.
	Failure *Failure
	// Next is when a failure is due by time alone; 0 if none is.
	Next time.Duration
}

// finders return a failure of a cluster and when it is due; the zero time if there is none.
var finders = []func(Snapshot) (Failure, time.Time){findInstall, findResume, findOutage, findStep, findGate}

// IsPossible reports whether a cluster has a failure that is due now or later, or is released by a claim that may
// request a bundle.
func IsPossible(cd *hivev1.ClusterDeployment) bool {
	if ref := cd.Spec.ClusterPoolRef; cd.DeletionTimestamp != nil && ref != nil && ref.ClaimName != "" {
		return true
	}
	return slices.ContainsFunc(finders, func(find func(Snapshot) (Failure, time.Time)) bool {
		_, due := find(Snapshot{Cluster: cd})
		return !due.IsZero()
	})
}

// Decide finds the failure of a cluster that is diagnosed next.
func Decide(s Snapshot) Plan {
	if f := FindRelease(s.Cluster, s.Claim); f != nil {
		return Plan{Failure: f}
	}
	for _, find := range finders {
		f, due := find(s)
		switch {
		case due.IsZero():
		case due.After(s.Now):
			return Plan{Next: due.Sub(s.Now)}
		default:
			return Plan{Failure: &f}
		}
	}
	return Plan{}
}

// FindRelease returns the release of a cluster that is being deleted if its claim requests a bundle; nil otherwise.
// It does not matter who has deleted the claim or the cluster, or why. claim may be nil.
func FindRelease(cd *hivev1.ClusterDeployment, claim *hivev1.ClusterClaim) *Failure {
	if cd.DeletionTimestamp == nil || claim == nil || !hivev1.IsTrue(claim.Annotations, hivev1.AnnotationDiagnoseAtRelease) {
		return nil
	}
	if ref := cd.Spec.ClusterPoolRef; ref == nil || ref.Namespace != claim.Namespace || ref.ClaimName != claim.Name {
		return nil
	}
	return &Failure{Kind: Release, Since: cd.DeletionTimestamp.Time, Message: fmt.Sprintf("claim %s/%s requests a bundle", claim.Namespace, claim.Name)}
}

// maxClusterName is how much of a cluster's name is part of the name of a bundle.
const maxClusterName = 100

// BundleName returns the name of the bundle about a failure. It is the same whenever it is computed.
func BundleName(cd *hivev1.ClusterDeployment, f Failure) string {
	uid, _, _ := strings.Cut(string(cd.UID), "-")
	name := cd.Name[:min(len(cd.Name), maxClusterName)]
	return fmt.Sprintf("%s-%s-%s-%s.tar.gz", name, string(f.Kind), f.Since.UTC().Format("20060102T150405Z"), uid)
}

// FindReport returns the condition about the bundle of a failure; nil if there is none.
func FindReport(cd *hivev1.ClusterDeployment, f Failure) *hivev1.Condition {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterDiagnosed)
	if c == nil || !strings.Contains(c.Message, BundleName(cd, f)) {
		return nil
	}
	return c
}

// IsSettled reports whether the bundle of a failure is stored, or is not tried again. It decides only that nothing
// more is done about this failure of this one cluster, and that nothing waits for its bundle.
func IsSettled(cd *hivev1.ClusterDeployment, f Failure) bool {
	c := FindReport(cd, f)
	return c != nil && c.Reason != hivev1.ReasonBundleDelayed
}

// How often a bundle that could not be stored is tried again: after shortestRetry, then whenever as much time has
// passed as had before, at most longestRetry, until retryLimit.
const (
	shortestRetry = 10 * time.Second
	longestRetry  = 10 * time.Minute
	retryLimit    = time.Hour
)

// NextTry returns when a bundle is tried again that was tried in vain, first and last at these times; the zero time
// if it is not. That of a release is not tried again after ReleaseLimit: then the cluster is being destroyed.
func NextTry(f Failure, first, last time.Time) time.Time {
	end := first.Add(retryLimit)
	if f.Kind == Release {
		end = f.Since.Add(ReleaseLimit)
	}
	next := last.Add(min(max(last.Sub(first), shortestRetry), longestRetry))
	if next.After(end) {
		return time.Time{}
	}
	return next
}

// findInstall returns the last failed install attempt, which is due at once.
func findInstall(s Snapshot) (Failure, time.Time) {
	if s.Cluster.Spec.Installed {
		return Failure{}, time.Time{}
	}
	for _, typ := range []string{hivev1.ClusterProvisionFailed, hivev1.ClusterProvisionStopped} {
		if c := condition.Find(s.Cluster.Status.Conditions, typ); c != nil && c.Status == corev1.ConditionTrue {
			at := c.LastTransitionTime.Time
			return Failure{Kind: Install, Since: at, Message: c.Message}, notBefore(at)
		}
	}
	return Failure{}, time.Time{}
}

// notBefore returns a time that is due now, also for a condition whose writer has set no time.
func notBefore(at time.Time) time.Time {
	if at.IsZero() {
		return time.Unix(0, 0)
	}
	return at
}

// findResume returns the resume in progress: it is due when a machine or the platform has failed, or at half of
// its time.
func findResume(s Snapshot) (Failure, time.Time) {
	t := s.Cluster.Status.PowerTransition
	if t == nil || t.Target != hivev1.PowerRunning || t.FinishedAt != nil || !s.Cluster.Spec.Installed {
		return Failure{}, time.Time{}
	}
	f := Failure{Kind: Resume, Since: t.StartedAt.Time, Message: t.LastError}
	if c := condition.Find(s.Cluster.Status.Conditions, hivev1.ClusterReady); f.Message == "" && c != nil {
		f.Message = c.Message
	}
	hibernating := condition.Find(s.Cluster.Status.Conditions, hivev1.ClusterHibernating)
	if t.MachinesFailed || hibernating != nil && hibernating.Reason == hivev1.ReasonFailedToStart {
		return f, notBefore(t.StartedAt.Time)
	}
	return f, t.StartedAt.Add(s.maxResumeTime())
}

// maxResumeTime is the time that a cluster may take to be ready again.
func (s Snapshot) maxResumeTime() time.Duration {
	if s.ResumeTimeout > 0 {
		return s.ResumeTimeout / 2
	}
	return DefaultResumePatience
}

// findOutage returns since when a cluster that had come up is not reachable or not ready. It is due at half of the
// time that a resume may take: after all of it, the pool counts the cluster as broken.
func findOutage(s Snapshot) (Failure, time.Time) {
	t := s.Cluster.Status.PowerTransition
	if t == nil || t.Target != hivev1.PowerRunning || t.FinishedAt == nil {
		return Failure{}, time.Time{}
	}
	list := s.Cluster.Status.Conditions
	if c := condition.Find(list, hivev1.ClusterUnreachable); c != nil && c.Status == corev1.ConditionTrue && c.Reason != hivev1.ReasonHibernating {
		return Failure{Kind: Outage, Since: c.LastTransitionTime.Time, Message: c.Message}, c.LastTransitionTime.Add(s.maxResumeTime())
	}
	if c := condition.Find(list, hivev1.ClusterReady); c != nil && c.Status == corev1.ConditionFalse {
		return Failure{Kind: Outage, Since: c.LastTransitionTime.Time, Message: c.Message}, c.LastTransitionTime.Add(s.maxResumeTime())
	}
	return Failure{}, time.Time{}
}

// findStep returns the step of the bootstrap that takes too long.
func findStep(s Snapshot) (Failure, time.Time) {
	r := s.Cluster.Status.Bootstrap
	if r == nil || r.StepStartedAt == nil || r.Deadline == nil || r.FinishedAt != nil {
		return Failure{}, time.Time{}
	}
	f := Failure{Kind: Step, Since: r.StepStartedAt.Time, Message: "step " + r.Step + " is not done"}
	if c := condition.Find(s.Cluster.Status.Conditions, hivev1.ClusterBootstrapped); c != nil {
		f.Message = c.Message
	}
	return f, halfway(r.StepStartedAt.Time, r.Deadline.Time)
}

// findGate returns the gates that keep failing.
func findGate(s Snapshot) (Failure, time.Time) {
	r := s.Cluster.Status.Gates
	if r == nil || r.Passed || r.FailedSince == nil || r.Deadline == nil {
		return Failure{}, time.Time{}
	}
	f := Failure{Kind: Gate, Since: r.FailedSince.Time, Message: "a gate fails"}
	if c := condition.Find(s.Cluster.Status.Conditions, hivev1.ClusterGatesPassed); c != nil {
		f.Message = c.Message
	}
	return f, halfway(r.FailedSince.Time, r.Deadline.Time)
}

func halfway(from, to time.Time) time.Time { return from.Add(max(0, to.Sub(from)) / 2) }
