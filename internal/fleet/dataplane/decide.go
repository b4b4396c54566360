package dataplane

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// Intervals for checking what no watch reports.
const (
	// sourceGracePeriod is how much later than the data plane its FleetRegion or its pools may be
	// created: all of them may be in one file.
	sourceGracePeriod = time.Minute
	// retryInterval is the interval of checks while the data plane waits for such an object.
	retryInterval = 10 * time.Second
	// reinstallInterval is the interval at which the agent's manifests are applied again;
	// silentRetryInterval is the interval while the agent is silent.
	reinstallInterval   = 5 * time.Minute
	silentRetryInterval = time.Minute
)

// Decide returns what to do about a data plane, and its next status.
func Decide(s Snapshot) Plan {
	s.Now = s.Now.Truncate(time.Second) // the precision of times in the API
	p := Plan{Status: *s.Plane.Status.DeepCopy()}
	p.Status.ObservedGeneration = s.Plane.Generation
	if IsBeingRemoved(s.Plane) {
		s.planRemoval(&p)
		return p
	}
	if !slices.Contains(s.Plane.Finalizers, v1alpha1.FinalizerDataPlane) {
		p.addSteps(Step{Verb: AddFinalizer})
	}
	switch s.currentPhase() {
	case v1alpha1.PhaseAccepted:
		s.planAccepted(&p)
	case v1alpha1.PhaseProvisioning:
		s.planProvisioning(&p)
	case v1alpha1.PhaseProvisioned:
		s.planProvisioned(&p)
	case v1alpha1.PhaseWaitingForAgent:
		s.planWaitingForAgent(&p)
	default:
		s.planRunning(&p)
	}
	return p
}

// planProvisioning waits for a running cluster.
func (s Snapshot) planProvisioning(p *Plan) {
	s.enterPhase(p, v1alpha1.PhaseProvisioning)
	switch ref := s.clusterRef(); {
	case ref.KubeconfigSecret != nil:
		s.awaitSecret(p, ref.KubeconfigSecret.Name)
	case ref.Claim != nil:
		s.awaitClaim(p, ref.Claim.Name)
	case ref.Deployment != nil:
		s.awaitCluster(p, ref.Deployment.Name)
	default: // the API does not allow its removal, but a restored object may lack it
		s.failIfManaged(p, v1alpha1.ReasonClusterGone, "spec.clusterRef is missing, so it is unknown which cluster belongs to the data plane.")
	}
}

func (s Snapshot) awaitSecret(p *Plan, name string) {
	if s.Kubeconfig {
		s.enterPhase(p, v1alpha1.PhaseProvisioned)
		return
	}
	s.setNotReady(p, v1alpha1.ReasonClusterGone, "Secret %s with key kubeconfig does not exist in namespace %s: create it, or delete this DataPlane.", name, s.Plane.Namespace)
	p.requeueAfter(retryInterval) // Secrets are not watched
}

// futileReasons are the reasons of a claim that waits in vain.
var futileReasons = []string{hivev1.ReasonPoolNotFound, hivev1.ReasonPoolDeleting, hivev1.ReasonInvalidLifetime, hivev1.ReasonConflict}

func (s Snapshot) awaitClaim(p *Plan, name string) {
	c := s.Claim
	switch reason, why := s.claimProblem(name); {
	case c != nil && s.isManaged() && !OwnsObject(s.Plane, c):
		s.failPlane(p, v1alpha1.ReasonNameTaken, "ClusterClaim %s was created for something else: delete it, or create a DataPlane with another name.", name)
	case why != "":
		s.failIfManaged(p, reason, "%s", why)
	case s.Cluster != nil && s.Cluster.Spec.ClusterMetadata != nil && condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning):
		s.enterPhase(p, v1alpha1.PhaseProvisioned)
	case c.Spec.Namespace != "":
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterClaim %s has cluster %s, which is not running yet.", name, c.Spec.Namespace)
	default:
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterClaim %s is waiting %s.", name, describeClaimWait(c))
	}
}

// describeClaimWait returns what a claim without a cluster waits for.
func describeClaimWait(c *hivev1.ClusterClaim) string {
	if admitted := condition.Find(c.Status.Conditions, hivev1.ClaimAdmitted); admitted != nil && admitted.Status == corev1.ConditionFalse {
		return "to be admitted: " + admitted.Message
	}
	return "for a cluster of ClusterPool " + c.Spec.ClusterPoolName
}

// claimProblem returns why the claim cannot provide a permanent cluster; "" if it can.
func (s Snapshot) claimProblem(name string) (reason, why string) {
	c := s.Claim
	switch {
	case c == nil:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("ClusterClaim %s was removed before its cluster was running.", name)
	case c.DeletionTimestamp != nil:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("ClusterClaim %s was deleted before its cluster was running.", name)
	case c.Status.Lifetime != nil && *c.Status.Lifetime != "":
		return v1alpha1.ReasonPoolUnsuitable, fmt.Sprintf(
			"ClusterClaim %s expires after %s: remove claimLifetime from ClusterPool %s and spec.lifetime from ClaimPolicies that apply to it, or use another pool.",
			name, *c.Status.Lifetime, c.Spec.ClusterPoolName)
	}
	if pool := s.Pools[c.Spec.ClusterPoolName]; pool != nil && pool.DeletionTimestamp == nil {
		if why := facts.PoolUnsuitableReason(pool); why != "" {
			return v1alpha1.ReasonPoolUnsuitable, why + "."
		}
	}
	pending := condition.Find(c.Status.Conditions, hivev1.ClaimPending)
	if c.Spec.Namespace == "" && pending != nil && slices.Contains(futileReasons, pending.Reason) {
		return pending.Reason, fmt.Sprintf("ClusterClaim %s: %s.", name, pending.Message)
	}
	return "", ""
}

func (s Snapshot) awaitCluster(p *Plan, name string) {
	c := s.Cluster
	switch {
	case c == nil:
		s.failIfManaged(p, v1alpha1.ReasonClusterGone, "ClusterDeployment %s was removed before its cluster was running.", name)
	case s.isManaged() && !OwnsObject(s.Plane, c):
		s.failPlane(p, v1alpha1.ReasonNameTaken, "ClusterDeployment %s was created for something else: delete it, or create a DataPlane with another name.", name)
	case c.DeletionTimestamp != nil:
		s.failIfManaged(p, v1alpha1.ReasonClusterGone, "ClusterDeployment %s was deleted before its cluster was running.", name)
	case condition.IsTrue(c.Status.Conditions, hivev1.ClusterProvisionStopped):
		why := condition.Find(c.Status.Conditions, hivev1.ClusterProvisionStopped)
		s.failIfManaged(p, v1alpha1.ReasonInstallFailed, "ClusterDeployment %s: %s", name, why.Message)
	case s.isClusterRunning():
		s.enterPhase(p, v1alpha1.PhaseProvisioned)
	case c.Spec.Installed:
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterDeployment %s is installed, and its cluster is not running yet.", name)
	default:
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterDeployment %s is being installed.", name)
	}
}

// isClusterRunning reports whether the cluster is installed, is running, and is not being deleted.
func (s Snapshot) isClusterRunning() bool {
	c := s.Cluster
	return c != nil && c.DeletionTimestamp == nil && c.Spec.Installed && c.Spec.ClusterMetadata != nil && condition.IsTrue(c.Status.Conditions, hivev1.ClusterReady)
}

// failIfManaged fails a data plane that will not get its cluster. A Registered one waits instead:
// its cluster belongs to somebody else, and there is nothing of ours to release.
func (s Snapshot) failIfManaged(p *Plan, reason, format string, args ...any) {
	if s.isManaged() {
		s.failPlane(p, reason, format, args...)
		return
	}
	s.setNotReady(p, reason, format, args...)
}
