package dataplane

import (
	"fmt"
	"slices"
	"time"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/capacity/facts"
	"hotspare.io/hotspare/internal/condition"
)

// When to look again at what nobody tells us of.
const (
	// sourceGracePeriod is how long a FleetRegion, or its pools, may come after their data plane: one
	// file may have all of them.
	sourceGracePeriod = time.Minute
	// retryInterval is while something of that kind is waited for.
	retryInterval = 10 * time.Second
	// reinstallInterval is how often the agent's manifests are looked at, silent while it is silent.
	reinstallInterval   = 5 * time.Minute
	silentRetryInterval = time.Minute
)

// Decide says what to do about a data plane, and what to say of it.
func Decide(s Snapshot) Plan {
	s.Now = s.Now.Truncate(time.Second) // as the API keeps times
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

// planProvisioning waits for a cluster that runs.
func (s Snapshot) planProvisioning(p *Plan) {
	s.enterPhase(p, v1alpha1.PhaseProvisioning)
	switch ref := s.clusterRef(); {
	case ref.KubeconfigSecret != nil:
		s.awaitSecret(p, ref.KubeconfigSecret.Name)
	case ref.Claim != nil:
		s.awaitClaim(p, ref.Claim.Name)
	case ref.Deployment != nil:
		s.awaitCluster(p, ref.Deployment.Name)
	default: // nobody can take it away, but what was restored may lack it
		s.failIfManaged(p, v1alpha1.ReasonClusterGone, "spec.clusterRef is missing, so nobody knows which cluster is its own.")
	}
}

func (s Snapshot) awaitSecret(p *Plan, name string) {
	if s.Kubeconfig {
		s.enterPhase(p, v1alpha1.PhaseProvisioned)
		return
	}
	s.setNotReady(p, v1alpha1.ReasonClusterGone, "There is no Secret %s with key kubeconfig in namespace %s: make it, or delete this DataPlane.", name, s.Plane.Namespace)
	p.requeueAfter(retryInterval) // Secrets are not watched
}

// futileReasons are reasons of a claim that waits for nothing.
var futileReasons = []string{hivev1.ReasonPoolNotFound, hivev1.ReasonPoolDeleting, hivev1.ReasonInvalidLifetime, hivev1.ReasonConflict}

func (s Snapshot) awaitClaim(p *Plan, name string) {
	c := s.Claim
	switch reason, why := s.claimProblem(name); {
	case c != nil && s.isManaged() && !OwnsObject(s.Plane, c):
		s.failPlane(p, v1alpha1.ReasonNameTaken, "ClusterClaim %s was made for something else: delete it, or make a DataPlane of another name.", name)
	case why != "":
		s.failIfManaged(p, reason, "%s", why)
	case s.Cluster != nil && s.Cluster.Spec.ClusterMetadata != nil && condition.IsTrue(c.Status.Conditions, hivev1.ClaimClusterRunning):
		s.enterPhase(p, v1alpha1.PhaseProvisioned)
	case c.Spec.Namespace != "":
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterClaim %s has cluster %s, which does not run yet.", name, c.Spec.Namespace)
	default:
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterClaim %s waits for a cluster of ClusterPool %s.", name, c.Spec.ClusterPoolName)
	}
}

// claimProblem says why the claim will bring no cluster that lasts; "" if it may.
func (s Snapshot) claimProblem(name string) (reason, why string) {
	c := s.Claim
	switch {
	case c == nil:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("ClusterClaim %s is gone before it had a running cluster.", name)
	case c.DeletionTimestamp != nil:
		return v1alpha1.ReasonClusterGone, fmt.Sprintf("ClusterClaim %s was deleted before it had a running cluster.", name)
	case c.Status.Lifetime != nil && *c.Status.Lifetime != "":
		return v1alpha1.ReasonPoolUnsuitable, fmt.Sprintf("ClusterClaim %s ends after %s: take claimLifetime from ClusterPool %s, or name another.",
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
		s.failIfManaged(p, v1alpha1.ReasonClusterGone, "ClusterDeployment %s is gone before it ran.", name)
	case s.isManaged() && !OwnsObject(s.Plane, c):
		s.failPlane(p, v1alpha1.ReasonNameTaken, "ClusterDeployment %s was made for something else: delete it, or make a DataPlane of another name.", name)
	case c.DeletionTimestamp != nil:
		s.failIfManaged(p, v1alpha1.ReasonClusterGone, "ClusterDeployment %s was deleted before it ran.", name)
	case condition.IsTrue(c.Status.Conditions, hivev1.ClusterProvisionStopped):
		why := condition.Find(c.Status.Conditions, hivev1.ClusterProvisionStopped)
		s.failIfManaged(p, v1alpha1.ReasonInstallFailed, "ClusterDeployment %s: %s", name, why.Message)
	case s.isClusterRunning():
		s.enterPhase(p, v1alpha1.PhaseProvisioned)
	case c.Spec.Installed:
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterDeployment %s is installed, and does not run yet.", name)
	default:
		s.setNotReady(p, string(v1alpha1.PhaseProvisioning), "ClusterDeployment %s is being installed.", name)
	}
}

// isClusterRunning reports whether the cluster runs.
func (s Snapshot) isClusterRunning() bool {
	c := s.Cluster
	return c != nil && c.DeletionTimestamp == nil && c.Spec.Installed && c.Spec.ClusterMetadata != nil && condition.IsTrue(c.Status.Conditions, hivev1.ClusterReady)
}

// failIfManaged fails a data plane whose cluster will not come. A Registered one waits: whose
// cluster it is knows better, and nothing of it is ours to give back.
func (s Snapshot) failIfManaged(p *Plan, reason, format string, args ...any) {
	if s.isManaged() {
		s.failPlane(p, reason, format, args...)
		return
	}
	s.setNotReady(p, reason, format, args...)
}
