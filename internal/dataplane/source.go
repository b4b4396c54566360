package dataplane

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/capacity/facts"
)

// accepted gets it a cluster: the name is recorded first, then the claim, or the
// ClusterDeployment, is made.
func (s Seen) accepted(p *Plan) {
	s.enter(p, v1alpha1.PhaseAccepted)
	ref := s.ref()
	switch {
	case !s.managed() || ref.KubeconfigSecret != nil:
		s.enter(p, v1alpha1.PhaseProvisioning)
		return
	case ref.Claim != nil && s.Claim != nil, ref.Deployment != nil && s.Cluster != nil:
		s.taken(p)
		return
	}
	step, none := s.source()
	if none.why != "" {
		s.sourceless(p, none)
		return
	}
	if have := s.Plane.Spec.ClusterRef; have == nil {
		p.do(Step{Verb: Name, Ref: step.Ref})
	} else if (have.Claim == nil) != (step.Claim == nil) || named(*have) != s.Plane.Name {
		s.fail(p, v1alpha1.ReasonNoSource,
			"%s of spec.clusterRef does not exist, and is not what its FleetRegion makes: leave spec.clusterRef out, or set spec.ownership to Registered.", named(*have))
		return
	}
	step.Ref = nil
	p.do(step)
	s.enter(p, v1alpha1.PhaseProvisioning)
}

// named is what a reference names.
func named(ref v1alpha1.ClusterReference) string {
	for _, r := range []*v1alpha1.NameReference{ref.Claim, ref.Deployment, ref.KubeconfigSecret} {
		if r != nil {
			return r.Name
		}
	}
	return ""
}

// taken goes on with what there is under the recorded name, if that is its own: a pass
// before this one has made it.
func (s Seen) taken(p *Plan) {
	switch ref := s.ref(); {
	case ref.Claim != nil && !Owned(s.Plane, s.Claim):
		s.fail(p, v1alpha1.ReasonNameTaken, "ClusterClaim %s was made for something else: delete it, or make a DataPlane of another name.", ref.Claim.Name)
	case ref.Deployment != nil && !Owned(s.Plane, s.Cluster):
		s.fail(p, v1alpha1.ReasonNameTaken, "ClusterDeployment %s was made for something else: delete it, or make a DataPlane of another name.", ref.Deployment.Name)
	default:
		s.enter(p, v1alpha1.PhaseProvisioning)
	}
}

// lack is why there is no source of clusters, in a word and in words; empty when there is one.
type lack struct{ reason, why string }

func no(format string, args ...any) lack {
	return lack{v1alpha1.ReasonNoSource, fmt.Sprintf(format, args...)}
}

// sourceless waits a while for a source of clusters, and then fails.
func (s Seen) sourceless(p *Plan, none lack) {
	left := s.Plane.CreationTimestamp.Add(grace).Sub(s.Now)
	if left <= 0 {
		s.fail(p, none.reason, "There is no cluster to be had: %s.", none.why)
		return
	}
	s.not(p, none.reason, "There is no cluster to be had yet: %s.", none.why)
	p.again(min(left, soon))
}

// source is the step that makes its claim or its ClusterDeployment, with what to record
// first; or why there is none.
func (s Seen) source() (Step, lack) {
	if s.Region == nil {
		return Step{}, no("%s", s.NoRegion)
	}
	own := metav1.ObjectMeta{
		Namespace: s.Plane.Namespace, Name: s.Plane.Name,
		Annotations: map[string]string{v1alpha1.AnnotationDataPlane: string(s.Plane.UID)},
	}
	name := &v1alpha1.NameReference{Name: s.Plane.Name}
	if d := s.Region.Spec.ClusterSource.Deployment; d != nil {
		cd, none := s.template(d)
		if none.why != "" {
			return Step{}, none
		}
		cd.ObjectMeta = own
		return Step{Verb: CreateCluster, Ref: &v1alpha1.ClusterReference{Deployment: name}, Cluster: cd}, lack{}
	}
	pool, none := s.pool()
	if none.why != "" {
		return Step{}, none
	}
	claim := &hivev1.ClusterClaim{ObjectMeta: own, Spec: hivev1.ClusterClaimSpec{ClusterPoolName: pool}}
	return Step{Verb: CreateClaim, Ref: &v1alpha1.ClusterReference{Claim: name}, Claim: claim}, lack{}
}

func (s Seen) template(d *v1alpha1.DeploymentSource) (*hivev1.ClusterDeployment, lack) {
	if d.MultiZone != s.Plane.Spec.MultiZone {
		return nil, no("spec.clusterSource.deployment of FleetRegion %s has multiZone %t", s.Region.Name, d.MultiZone)
	}
	allowed, all := d.Template.Allowed()
	if !all {
		return nil, no("spec.clusterSource.deployment.template of FleetRegion %s sets fields that it must not, such as installed, clusterMetadata, "+
			"clusterPoolRef or an installer image: take them out", s.Region.Name)
	}
	cd := &hivev1.ClusterDeployment{}
	raw, err := json.Marshal(allowed)
	if err == nil {
		err = json.Unmarshal(raw, &cd.Spec)
	}
	if err != nil {
		return nil, no("spec.clusterSource.deployment.template of FleetRegion %s is no spec of a ClusterDeployment", s.Region.Name)
	}
	cd.Spec.ClusterName = s.Plane.Name
	return cd, lack{}
}

// pool chooses a pool with the right zones whose clusters are for good: the first of
// them, and after each failure the next.
func (s Seen) pool() (string, lack) {
	source := s.Region.Spec.ClusterSource.Claim
	if source == nil {
		return "", no("FleetRegion %s has no spec.clusterSource", s.Region.Name)
	}
	var fit []string
	none := no("spec.clusterSource of FleetRegion %s has no pool with multiZone %t", s.Region.Name, s.Plane.Spec.MultiZone)
	for _, ref := range source.Pools {
		pool := s.Pools[ref.PoolRef.Name]
		switch {
		case ref.MultiZone != s.Plane.Spec.MultiZone:
		case pool == nil:
			none = no("there is no ClusterPool %s in namespace %s", ref.PoolRef.Name, s.Plane.Namespace)
		case facts.Unsuitable(pool) != "":
			none = lack{v1alpha1.ReasonPoolUnsuitable, facts.Unsuitable(pool)}
		default:
			fit = append(fit, pool.Name)
		}
	}
	if len(fit) == 0 {
		return "", none
	}
	return fit[s.Failures%len(fit)], lack{}
}
