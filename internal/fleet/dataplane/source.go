package dataplane

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	casesensitivejson "sigs.k8s.io/json"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fleet/facts"
)

// planAccepted gets a cluster for the data plane: it first records the name, then creates the claim
// or the ClusterDeployment.
func (s Snapshot) planAccepted(p *Plan) {
	s.enterPhase(p, v1alpha1.PhaseAccepted)
	ref := s.clusterRef()
	switch {
	case !s.isManaged() || ref.KubeconfigSecret != nil:
		s.enterPhase(p, v1alpha1.PhaseProvisioning)
		return
	case ref.Claim != nil && s.Claim != nil, ref.Deployment != nil && s.Cluster != nil:
		s.adoptCluster(p)
		return
	}
	step, none := s.createClusterStep()
	if none.message != "" {
		s.awaitSource(p, none)
		return
	}
	if have := s.Plane.Spec.ClusterRef; have == nil {
		p.addSteps(Step{Verb: RecordClusterRef, Ref: step.Ref})
	} else if (have.Claim == nil) != (step.Claim == nil) || clusterRefName(*have) != s.Plane.Name {
		s.failPlane(p, v1alpha1.ReasonNoSource,
			"%s of spec.clusterRef does not exist, and its FleetRegion creates no such object: remove spec.clusterRef, or set spec.ownership to Registered.", clusterRefName(*have))
		return
	}
	step.Ref = nil
	p.addSteps(step)
	s.enterPhase(p, v1alpha1.PhaseProvisioning)
}

// clusterRefName returns the name in a reference.
func clusterRefName(ref v1alpha1.ClusterReference) string {
	for _, r := range []*v1alpha1.NameReference{ref.Claim, ref.Deployment, ref.KubeconfigSecret} {
		if r != nil {
			return r.Name
		}
	}
	return ""
}

// adoptCluster continues with the existing object of the recorded name, if the data plane owns it:
// an earlier pass has created it.
func (s Snapshot) adoptCluster(p *Plan) {
	switch ref := s.clusterRef(); {
	case ref.Claim != nil && !OwnsObject(s.Plane, s.Claim):
		s.failPlane(p, v1alpha1.ReasonNameTaken, "ClusterClaim %s was created for something else: delete it, or create a DataPlane with another name.", ref.Claim.Name)
	case ref.Deployment != nil && !OwnsObject(s.Plane, s.Cluster):
		s.failPlane(p, v1alpha1.ReasonNameTaken, "ClusterDeployment %s was created for something else: delete it, or create a DataPlane with another name.", ref.Deployment.Name)
	default:
		s.enterPhase(p, v1alpha1.PhaseProvisioning)
	}
}

// sourceProblem is why there is no source of clusters, as a reason and a message; empty when there
// is one.
type sourceProblem struct{ reason, message string }

func newSourceProblem(format string, args ...any) sourceProblem {
	return sourceProblem{v1alpha1.ReasonNoSource, fmt.Sprintf(format, args...)}
}

// awaitSource waits for a source of clusters, and fails the data plane after sourceGracePeriod.
func (s Snapshot) awaitSource(p *Plan, none sourceProblem) {
	left := s.Plane.CreationTimestamp.Add(sourceGracePeriod).Sub(s.Now)
	if left <= 0 {
		s.failPlane(p, none.reason, "No cluster is available: %s.", none.message)
		return
	}
	s.setNotReady(p, none.reason, "No cluster is available yet: %s.", none.message)
	p.requeueAfter(min(left, retryInterval))
}

// createClusterStep returns the step that creates the claim or the ClusterDeployment, with the
// reference to record first; or why there is none.
func (s Snapshot) createClusterStep() (Step, sourceProblem) {
	if s.Region == nil {
		return Step{}, newSourceProblem("%s", s.NoRegion)
	}
	own := metav1.ObjectMeta{
		Namespace: s.Plane.Namespace, Name: s.Plane.Name,
		Annotations: map[string]string{v1alpha1.AnnotationDataPlane: string(s.Plane.UID)},
	}
	name := &v1alpha1.NameReference{Name: s.Plane.Name}
	if d := s.Region.Spec.ClusterSource.Deployment; d != nil {
		cd, none := s.buildDeployment(d)
		if none.message != "" {
			return Step{}, none
		}
		cd.ObjectMeta = own
		return Step{Verb: CreateCluster, Ref: &v1alpha1.ClusterReference{Deployment: name}, Cluster: cd}, sourceProblem{}
	}
	pool, none := s.choosePool()
	if none.message != "" {
		return Step{}, none
	}
	claim := &hivev1.ClusterClaim{ObjectMeta: own, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: pool}}
	return Step{Verb: CreateClaim, Ref: &v1alpha1.ClusterReference{Claim: name}, Claim: claim}, sourceProblem{}
}

func (s Snapshot) buildDeployment(d *v1alpha1.DeploymentSource) (*hivev1.ClusterDeployment, sourceProblem) {
	if d.MultiZone != s.Plane.Spec.MultiZone {
		return nil, newSourceProblem("spec.clusterSource.deployment of FleetRegion %s has multiZone %t", s.Region.Name, d.MultiZone)
	}
	allowed, all := d.Template.Allowed()
	if !all {
		return nil, newSourceProblem("spec.clusterSource.deployment.template of FleetRegion %s sets fields that it must not, such as installed, clusterMetadata, "+
			"clusterPoolRef or an installer image: remove them", s.Region.Name)
	}
	cd := &hivev1.ClusterDeployment{}
	raw, err := json.Marshal(allowed)
	if err == nil { // as the admission policies read it: a key is another one if its case differs
		err = casesensitivejson.UnmarshalCaseSensitivePreserveInts(raw, &cd.Spec)
	}
	if err != nil {
		return nil, newSourceProblem("spec.clusterSource.deployment.template of FleetRegion %s is not the spec of a ClusterDeployment", s.Region.Name)
	}
	cd.Spec.ClusterName = s.Plane.Name
	return cd, sourceProblem{}
}

// choosePool returns a pool with the right zone layout whose clusters are permanent: the first one,
// and after each failure the next.
func (s Snapshot) choosePool() (string, sourceProblem) {
	source := s.Region.Spec.ClusterSource.Claim
	if source == nil {
		return "", newSourceProblem("FleetRegion %s has no spec.clusterSource", s.Region.Name)
	}
	var fit []string
	none := newSourceProblem("spec.clusterSource of FleetRegion %s has no pool with multiZone %t", s.Region.Name, s.Plane.Spec.MultiZone)
	for _, ref := range source.Pools {
		pool := s.Pools[ref.PoolRef.Name]
		switch {
		case ref.MultiZone != s.Plane.Spec.MultiZone:
		case pool == nil:
			none = newSourceProblem("ClusterPool %s does not exist in namespace %s", ref.PoolRef.Name, s.Plane.Namespace)
		case facts.PoolUnsuitableReason(pool) != "":
			none = sourceProblem{v1alpha1.ReasonPoolUnsuitable, facts.PoolUnsuitableReason(pool)}
		default:
			fit = append(fit, pool.Name)
		}
	}
	if len(fit) == 0 {
		return "", none
	}
	return fit[s.Failures%len(fit)], sourceProblem{}
}
