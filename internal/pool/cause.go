package pool

// A Cause is the reason for a step, from a closed list: programs compare causes, people read
// Step.Reason.
type Cause string

// Causes of steps that bind, start, stop and create clusters, and of deletions that are not
// followed by the creation of a replacement.
const (
	// ClaimWaiting: a claim waits for a cluster.
	ClaimWaiting Cause = "claim_waiting"
	// BindingIncomplete: the first of the two writes of a binding was done, the second was not.
	BindingIncomplete Cause = "binding_incomplete"
	// BelowRunningCount: fewer clusters than spec.runningCount run, or are starting, without a
	// claim.
	BelowRunningCount Cause = "below_running_count"
	// GatesNotChecked: the gates of the pool are checked before the cluster hibernates for the first time.
	GatesNotChecked Cause = "gates_not_checked"
	// StepsNotTaken: the cluster takes the steps of the pool's bootstrap before it hibernates for the first time.
	StepsNotTaken Cause = "steps_not_taken"
	// StepsAdded: the cluster was installed before the pool's bootstrap had steps, and takes them now.
	StepsAdded Cause = "steps_added"
	// AboveRunningCount: spec.runningCount clusters run, or are about to, without this one.
	AboveRunningCount Cause = "above_running_count"
	// LadderFull: the cluster sleeps less deeply than the pool's ladder of depths allows.
	LadderFull Cause = "ladder_full"
	// BelowSize: the pool has fewer unclaimed clusters than spec.size.
	BelowSize Cause = "below_size"
	// AboveSize: the pool has more unclaimed clusters than spec.size.
	AboveSize Cause = "above_size"
	// MarkedForRemoval: the cluster has the annotation that removes it from its pool.
	MarkedForRemoval Cause = "marked_for_removal"
	// ClaimReleased: the claim that the cluster was bound to is being deleted, or was deleted.
	ClaimReleased Cause = "claim_released"
	// ClaimMissing: the claim that the cluster was bound to has not existed for ten minutes.
	ClaimMissing Cause = "claim_missing"
	// ClaimServed: the claim that the cluster was bound to has another cluster.
	ClaimServed Cause = "claim_served"
	// PoolDeleted: the pool is being deleted.
	PoolDeleted Cause = "pool_deleted"
)

// Causes of steps that concern the pool itself, its customizations, and the names that are recorded
// for new clusters.
const (
	// FinalizerMissing: the pool does not have hotspare's finalizer.
	FinalizerMissing Cause = "finalizer_missing"
	// CustomizationInvalid: a customization of the inventory does not apply to the pool.
	CustomizationInvalid Cause = "customization_invalid"
	// NameRecorded: the name of a new cluster is recorded, and the cluster does not exist yet.
	NameRecorded Cause = "name_recorded"
	// CustomizationExhausted: no customization is left for a recorded name.
	CustomizationExhausted Cause = "customization_exhausted"
	// NamespaceForeign: the namespace of a recorded name was not created for the pool.
	NamespaceForeign Cause = "namespace_foreign"
	// SecretsOutdated: the Secrets of a recorded name were created before an edit of the pool, or
	// of a Secret that it refers to.
	SecretsOutdated Cause = "secrets_outdated"
)

// Causes of deletions that are followed by the creation of a replacement: the reasons why a member
// is broken, and Stale.
const (
	// InstallFailed: its install has failed permanently.
	InstallFailed Cause = "install_failed"
	// PowerFailed: starting or stopping it failed until the deadline, or its machines failed while
	// it should start.
	PowerFailed Cause = "power_failed"
	// ResumeTimedOut: its resume has taken longer than the resume timeout.
	ResumeTimedOut Cause = "resume_timed_out"
	// Unreachable: it has been unreachable for longer than the resume timeout.
	Unreachable Cause = "unreachable"
	// Unready: it had come up, and has not been ready for longer than the resume timeout.
	Unready Cause = "unready"
	// StepFailed: a step of the pool's ClusterBootstrap has failed for good, or was not done within its timeout.
	StepFailed Cause = "step_failed"
	// GateFailed: a gate of the pool's ClusterBootstrap has failed for longer than its gateTimeout.
	GateFailed Cause = "gate_failed"
	// Displaced: another cluster has its customization.
	Displaced Cause = "displaced"
	// Withdrawn: its customization was removed from the inventory, or is being deleted.
	Withdrawn Cause = "withdrawn"
	// Stale: it was made from another version of the pool or of its customization, or does not
	// record the version.
	Stale Cause = "stale"
)

// IsDefect reports whether c is a reason to delete a cluster because it is broken.
func (c Cause) IsDefect() bool {
	switch c {
	case InstallFailed, PowerFailed, ResumeTimedOut, Unreachable, Unready, StepFailed, GateFailed, Displaced, Withdrawn:
		return true
	default:
		return false
	}
}
