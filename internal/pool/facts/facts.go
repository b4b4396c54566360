// Package facts translates between API objects and the types that package pool decides on: it turns
// a pool, its clusters and its claims into a pool.Snapshot, and a pool.Report into the pool's
// status.
//
// It is pure, like a decider. The controller reads and writes the objects; hotspare pool plan reads
// them from files. Both use this package, so they report the same text for the same objects.
package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/claimpolicy"
	"hotspare.io/hotspare/internal/claimset"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/inventory"
	"hotspare.io/hotspare/internal/pool"
)

// Objects are a pool and the objects that belong to it, as read. This package does not change them.
type Objects struct {
	Pool *hivev1.ClusterPool
	// Clusters and Claims are all clusters and claims of the pool, by name.
	Clusters map[string]*hivev1.ClusterDeployment
	Claims   map[string]*hivev1.ClusterClaim
	// Policies are the ClaimPolicies of the pool's namespace. If PoliciesUnknown is set, the statuses of the
	// claims count instead, which a claim gets a moment after its creation.
	Policies        []claimpolicy.Policy
	PoliciesUnknown bool
	// Sets are the ClaimSets of the pool's namespace. If SetsUnknown is set, their claims count as claims without a
	// set.
	Sets        claimset.Sets
	SetsUnknown bool
	// Missing describes what the pool needs and lacks, one text each: the messages of InvalidFields and of
	// Dependency.
	Missing []string
	// Sources is the version of the objects that the pool refers to; see SourceVersion.
	Sources string
	// Recipe is the value of status.recipeVersion of the pool.
	Recipe string
	// Customizations are the existing ones among CustomizationNames, by name. Faults explains, for
	// some of them, why they cannot be applied to the pool's clusters.
	Customizations map[string]*hivev1.ClusterDeploymentCustomization
	Faults         map[string]string
	// Assumed names the customizations that were not read: they are assumed to be as they were when
	// the pool's status was written.
	Assumed map[string]bool
	// Roster has the members of the pool's last snapshot; nil reads all members anew.
	Roster *Roster
	// Gates is what the pool requires of its spares; nil if it is unknown: then the records of the clusters say
	// which of them have gates.
	Gates *gate.Requirement
	// Steps is what the steps of the pool's bootstrap require; unused if Gates is nil.
	Steps bootstrap.Requirement
	// WatchedSince is the value of Settings.WatchedSince.
	WatchedSince time.Time
}

// PoolSnapshot returns everything that the pool's next steps depend on; its lists are unordered, except ByAge.
// The objects do not contain the platform's room: a caller that knows it adds it to the settings.
// inventoryPlan is the result of DecideInventory.
func (o Objects) PoolSnapshot(inventoryPlan inventory.Plan, now time.Time) (pool.Snapshot, error) {
	set, err := ReadSettings(o.Pool, o.Missing)
	if err != nil {
		return pool.Snapshot{}, err
	}
	set.Sources, set.Recipe, set.WatchedSince = o.Sources, o.Recipe, o.WatchedSince
	set.Inventory, set.Free = len(o.Pool.Spec.Inventory) > 0, inventoryPlan.Free
	s := pool.Snapshot{Settings: set, Now: now, Claims: make([]pool.Claim, 0, len(o.Claims))}
	s.Settings.GatesFromRecords = o.Gates == nil
	if o.Gates != nil {
		s.Settings.Gates = o.Gates.Version
		s.Settings.Steps, s.Settings.StepsUnknown = o.Steps.Version, o.Steps.Problem != ""
	}
	read := func(cd *hivev1.ClusterDeployment) pool.Member {
		m := ReadMember(cd, now)
		m.Outdated, m.Withdrawn, m.Displaced = inventoryPlan.Outdated[m.Name], inventoryPlan.Withdrawn[m.Name], inventoryPlan.Displaced[m.Name]
		m.MarkUntakenSteps(&s.Settings)
		m.MarkUnpassedGates(&s.Settings)
		return m
	}
	if o.Roster != nil {
		s.ByAge = o.Roster.updateMembers(o.Clusters, newMarks(&s.Settings, inventoryPlan), read)
	} else {
		s.Members = make([]pool.Member, 0, len(o.Clusters))
		for _, cd := range o.Clusters {
			s.Members = append(s.Members, read(cd))
		}
	}
	s.Pending, s.Reserved, s.Unusable, s.Invalid = o.pendingNames(), inventoryPlan.Assigned, unassignedNames(inventoryPlan), o.invalidCustomizations(inventoryPlan)
	for _, c := range o.Claims {
		s.Claims = append(s.Claims, o.readClaim(c))
	}
	return s, nil
}

func (o Objects) readClaim(c *hivev1.ClusterClaim) pool.Claim {
	out := pool.Claim{
		Name: c.Name, Created: c.CreationTimestamp.Time, Cluster: c.Spec.Namespace, Deleting: c.DeletionTimestamp != nil,
		Unreadable: c.Unreadable != "", Held: IsHeld(c, len(o.Policies) > 0),
	}
	set := o.readSet(c, &out)
	out.Priority = o.priorityOf(c, set)
	if p := c.Status.Position; p != nil {
		out.Position = int(*p)
	}
	if at := c.Status.EstimatedReadyTime; at != nil {
		out.Ready = at.Time
	}
	return out
}

// readSet reads the set of a claim into out, and returns it; nil if the claim belongs to none. A claim that names a set
// which does not have it, or is being deleted, gets no cluster.
func (o Objects) readSet(c *hivev1.ClusterClaim, out *pool.Claim) *v1alpha1.ClaimSet {
	if o.SetsUnknown || len(c.OwnerReferences) == 0 {
		return nil
	}
	set, orphaned := o.Sets.FindSet(c)
	out.Held = out.Held || orphaned || set != nil && set.DeletionTimestamp != nil
	if set != nil {
		out.Set = pool.ClaimSet{Name: set.Name, Created: set.CreationTimestamp.Time, Size: int(set.Spec.Size)}
	}
	return set
}

// priorityOf returns the priority in effect of a claim, which is that of its set if it has one.
func (o Objects) priorityOf(c *hivev1.ClusterClaim, set *v1alpha1.ClaimSet) int {
	if c.Annotations[hivev1.AnnotationPriority] == "" && len(o.Policies) == 0 && c.Status.Priority == nil && set == nil {
		return 0
	}
	n := claimpolicy.LimitPriority(o.Policies, claimpolicy.ReadClaim(c).InSet(set))
	if o.PoliciesUnknown && c.Status.Priority != nil {
		n = min(n, int(*c.Status.Priority))
	}
	return n
}

// IsHeld reports whether a claim gets no cluster yet because no ClaimPolicy has admitted it. governed is
// set if the claim's namespace has a ClaimPolicy.
func IsHeld(c *hivev1.ClusterClaim, governed bool) bool {
	admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted)
	if admitted == nil {
		return governed
	}
	return admitted.Status != corev1.ConditionTrue
}

// pendingNames returns the recorded names for which no cluster exists yet.
func (o Objects) pendingNames() []string {
	var out []string
	for _, name := range o.Pool.Status.Pending {
		if o.Clusters[name] == nil {
			out = append(out, name)
		}
	}
	return out
}

// ReadSettings reads a pool's spec. missing describes the dependencies that the pool lacks; fake
// clusters are created without them.
func ReadSettings(p *hivev1.ClusterPool, missing []string) (pool.Settings, error) {
	version, err := pool.Version(p.Spec)
	if err != nil {
		return pool.Settings{}, err
	}
	sleep, _ := pool.ParseLadder(p.Annotations[hivev1.AnnotationSleepLadder]) // InvalidFields reports one that cannot be parsed
	set := pool.Settings{
		Sleep:         sleep,
		Size:          int(p.Spec.Size),
		RunningCount:  int(p.Spec.RunningCount),
		MaxSize:       intPointer(p.Spec.MaxSize),
		MaxConcurrent: intPointer(p.Spec.MaxConcurrent),
		Version:       version,
		Deleting:      p.DeletionTimestamp != nil,
		Fake:          IsFake(p),

		FinalizerMissing: !slices.Contains(p.Finalizers, hivev1.FinalizerPool),
	}
	set.FailedSteps.Version = p.Status.FailedStepsVersion
	if at := p.Status.FailedStepsTime; at != nil {
		set.FailedSteps.At = at.Time
	}
	if at := p.Status.StepsSince; at != nil {
		set.StepsSince = at.Time
	}
	if len(missing) > 0 && !IsFake(p) {
		set.Blocked = joinMessages(missing)
	}
	if d := ResumeTimeout(p); d != nil {
		set.ResumeTimeout, _ = d.Parse() // a stored value that cannot be parsed is no timeout; the schema refuses new ones
	}
	return set, nil
}

func intPointer(n *int32) *int {
	if n == nil {
		return nil
	}
	i := int(*n)
	return &i
}

// ResumeTimeout returns the enhancement's field or, if that is not set, Hive's; nil means no limit.
func ResumeTimeout(p *hivev1.ClusterPool) *hivev1.Duration {
	switch hc := p.Spec.HibernationConfig; {
	case p.Spec.PowerstateTransitionToRunningTimeout != nil:
		return p.Spec.PowerstateTransitionToRunningTimeout
	case hc != nil && hc.ResumeTimeout != "":
		return &hc.ResumeTimeout
	}
	return nil
}

// IsFake reports whether the pool's clusters exist only as API objects.
func IsFake(p *hivev1.ClusterPool) bool {
	return hivev1.IsTrue(p.Spec.Annotations, hivev1.AnnotationFake)
}

// IsMarkedForRemoval reports whether a user has marked the cluster for removal.
func IsMarkedForRemoval(cd *hivev1.ClusterDeployment) bool {
	return hivev1.IsTrue(cd.Annotations, hivev1.AnnotationRemove) || hivev1.IsTrue(cd.Annotations, hivev1.AnnotationRemoveLegacy)
}

// IsAdopted reports whether a user has added the cluster, which existed before, and its deletion does
// not destroy it (ADR 0024). A cluster that hotspare or another installer created says how it was
// installed.
func IsAdopted(cd *hivev1.ClusterDeployment) bool {
	return cd.Spec.Installed && cd.Spec.PreserveOnDelete && cd.Spec.Provisioning == nil && cd.Spec.ClusterInstallRef == nil
}

// ReadMember reads everything that a plan depends on from a cluster. Compare two results to find
// out whether a change of the cluster matters.
func ReadMember(cd *hivev1.ClusterDeployment, now time.Time) pool.Member {
	m := pool.Member{
		Name:      cd.Name,
		Created:   cd.CreationTimestamp.Time,
		Version:   cd.Annotations[hivev1.AnnotationPoolVersion],
		Sources:   cd.Annotations[hivev1.AnnotationSourceVersion],
		Recipe:    cd.Annotations[hivev1.AnnotationRecipeVersion],
		Adopted:   IsAdopted(cd),
		Deleting:  cd.DeletionTimestamp != nil,
		Protected: hivev1.IsTrue(cd.Annotations, hivev1.AnnotationProtectedDelete),
		Marked:    IsMarkedForRemoval(cd),
		Installed: cd.Spec.Installed,
		GaveUp:    condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionStopped),
		Failing:   !cd.Spec.Installed && condition.IsTrue(cd.Status.Conditions, hivev1.ClusterProvisionFailed),
		Wanted:    pool.Power(cd.Spec.PowerState),

		WantedDepth: cd.Annotations[hivev1.AnnotationSleepDepth],

		Begun:             hasInstallBegun(cd),
		RequirementsUnmet: requirementsUnmet(cd),
		DeletionError:     deletionError(cd),
		Paused:            pauseAnnotation(cd),

		Unreadable: cd.Unreadable,
	}
	// Nobody checks a cluster that is not reconciled: that it ran once says nothing.
	m.Running = cd.Status.PowerState == hivev1.StatusRunning && m.Wanted != pool.Hibernating && m.Paused != hivev1.AnnotationReconcilePause
	if cd.Spec.ClusterPoolRef != nil {
		m.Claim = cd.Spec.ClusterPoolRef.ClaimName
		if at := cd.Spec.ClusterPoolRef.ClaimedTimestamp; at != nil {
			m.ClaimedAt = at.Time
		}
	}
	if at := cd.Status.InstalledTimestamp; at != nil && !m.Adopted {
		m.InstalledAt = at.Time
		m.InstallTook = atLeastASecond(at.Sub(cd.CreationTimestamp.Time))
	}
	readPowerState(&m, cd, now)
	readSteps(&m, cd)
	readGates(&m, cd)
	return m
}

// readSteps reads how far a cluster has come in the steps of a bootstrap.
func readSteps(m *pool.Member, cd *hivev1.ClusterDeployment) {
	r := cd.Status.Bootstrap
	if r == nil {
		return
	}
	m.Steps, m.StepsDone = r.Version, r.FinishedAt != nil
	if m.StepsDone {
		m.StepsDoneAt = r.FinishedAt.Time
	}
	if m.StepsDone || r.StepStartedAt == nil || r.Deadline == nil || !bootstrap.IsOfRun(r, gate.RunStart(cd)) {
		return
	}
	m.StepSince, m.StepDeadline = r.StepStartedAt.Time, r.Deadline.Time
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterBootstrapped); c != nil && c.Status == corev1.ConditionFalse {
		m.StepFailure = strings.TrimRight(c.Message, ".")
	}
}

// readGates reads what gates found in the current run of a cluster.
func readGates(m *pool.Member, cd *hivev1.ClusterDeployment) {
	r := cd.Status.Gates
	if r == nil {
		return
	}
	m.HasGates, m.GatesEverPassed = true, r.FirstPassedAt != nil
	m.GatesPassed, m.GatesFailing = gate.PassedVersion(cd), gate.FailingVersion(cd)
	if m.GatesFailing == "" {
		return
	}
	m.GatesFailingSince, m.GatesDeadline = r.FailedSince.Time, r.FailedSince.Time
	if r.Deadline != nil {
		m.GatesDeadline = r.Deadline.Time
	}
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterGatesPassed); c != nil && c.Status == corev1.ConditionFalse {
		m.GatesFailure = strings.TrimRight(c.Message, ".")
	}
}

// hasInstallBegun reports whether a controller has picked up the install of the cluster.
func hasInstallBegun(cd *hivev1.ClusterDeployment) bool {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterRequirementsMet)
	return cd.Spec.Installed || c != nil && c.Status != corev1.ConditionUnknown
}

// requirementsUnmet describes what the install of a cluster lacks, so that it cannot begin; "" if
// nothing is known to be missing.
func requirementsUnmet(cd *hivev1.ClusterDeployment) string {
	if cd.Spec.Installed {
		return ""
	}
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterRequirementsMet)
	if c == nil || c.Status != corev1.ConditionFalse {
		return ""
	}
	return cmp.Or(c.Message, c.Reason, hivev1.ClusterRequirementsMet+" is False")
}

// deletionError explains why a cluster that is being deleted is not destroyed; "" if nothing is
// known to block the deletion.
func deletionError(cd *hivev1.ClusterDeployment) string {
	if cd.DeletionTimestamp == nil {
		return ""
	}
	if words := foreignFinalizers(cd); words != "" {
		return words
	}
	if hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause) {
		return fmt.Sprintf("it is paused: remove its annotation %s", hivev1.AnnotationReconcilePause)
	}
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterDeprovisionLaunchError)
	if c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

// pauseAnnotation returns the annotation that keeps hotspare from starting or stopping a cluster,
// or from working on it at all; "" if there is none.
func pauseAnnotation(cd *hivev1.ClusterDeployment) string {
	switch {
	case hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause):
		return hivev1.AnnotationReconcilePause
	case cd.Spec.Installed && hivev1.IsTrue(cd.Annotations, hivev1.AnnotationPowerPause):
		return hivev1.AnnotationPowerPause
	}
	return ""
}

// foreignFinalizers explains which finalizers remain on a deleted cluster after hotspare has
// removed its own; "" while one of hotspare's own remains.
func foreignFinalizers(cd *hivev1.ClusterDeployment) string {
	own := func(f string) bool { return f == hivev1.FinalizerDeprovision || f == hivev1.FinalizerLease }
	if len(cd.Finalizers) == 0 || slices.ContainsFunc(cd.Finalizers, own) {
		return ""
	}
	return fmt.Sprintf("the ClusterDeployment has finalizers that hotspare does not remove: %s: their owners must remove them", strings.Join(cd.Finalizers, ", "))
}

// isIndependentOfTime reports whether ReadMember returns the same for the cluster at any time.
func isIndependentOfTime(cd *hivev1.ClusterDeployment) bool {
	t := cd.Status.PowerTransition
	return t == nil || t.FinishedAt != nil || t.Deadline == nil
}

// atLeastASecond rounds a duration between two API times, which have whole seconds, up to one
// second: a shorter duration is only known to be no longer than that.
func atLeastASecond(d time.Duration) time.Duration { return max(time.Second, d) }

func readPowerState(m *pool.Member, cd *hivev1.ClusterDeployment, now time.Time) {
	if c := condition.Find(cd.Status.Conditions, hivev1.ClusterHibernating); c != nil && c.Status != corev1.ConditionTrue {
		m.PowerFailed = slices.Contains([]string{hivev1.ReasonFailedToStart, hivev1.ReasonFailedToStop}, c.Reason)
	}
	wantsRun := m.Wanted == pool.Running && m.Installed && !m.Running
	if t := cd.Status.PowerTransition; t != nil {
		readPowerTransition(m, *t, wantsRun, now)
	}
	if wantsRun {
		m.UnreachableSince = unreachableSince(cd)
		m.UnreadySince = unreadySince(cd)
	}
}

// unreachableSince returns since when a cluster that should run is unreachable; zero if it is
// reachable. A hibernating cluster is unreachable too, with the same condition status: that time
// does not count against its resume.
func unreachableSince(cd *hivev1.ClusterDeployment) time.Time {
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterUnreachable)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason == hivev1.ReasonHibernating {
		return time.Time{}
	}
	since := c.LastTransitionTime.Time
	if t := cd.Status.PowerTransition; t != nil && t.Target == hivev1.PowerRunning && t.StartedAt.After(since) {
		return t.StartedAt.Time
	}
	return since
}

// unreadySince returns since when a cluster that had come up is not ready; zero if it is ready, or
// has not come up.
func unreadySince(cd *hivev1.ClusterDeployment) time.Time {
	t := cd.Status.PowerTransition
	c := condition.Find(cd.Status.Conditions, hivev1.ClusterReady)
	if t == nil || t.Target != hivev1.PowerRunning || t.FinishedAt == nil || c == nil || c.Status != corev1.ConditionFalse {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

func readPowerTransition(m *pool.Member, t hivev1.PowerTransition, wantsRun bool, now time.Time) {
	up := t.Target == hivev1.PowerRunning
	if up {
		m.ResumedFrom = t.Depth
	}
	switch {
	case t.FinishedAt != nil && up:
		m.ResumeTook = atLeastASecond(t.FinishedAt.Sub(t.StartedAt.Time))
	case t.FinishedAt != nil && m.Wanted == pool.Hibernating:
		m.Depth = t.Depth
	case t.FinishedAt == nil:
		if wantsRun && up {
			m.ResumingSince = t.StartedAt.Time
		}
		m.MachinesFailed = wantsRun && t.MachinesFailed
		m.PowerTimedOut = m.PowerFailed && t.Deadline != nil && !now.Before(t.Deadline.Time)
	}
}
