package bootstrapstep

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// observeCluster reads what the next step of a cluster depends on.
func (r *Reconciler) observeCluster(ctx context.Context, cd *hivev1.ClusterDeployment) (bootstrap.Snapshot, error) {
	s := bootstrap.Snapshot{
		Running: gate.IsCheckable(cd), Fake: hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake), Adopted: facts.IsAdopted(cd),
		RunStartedAt: gate.RunStart(cd), Record: cd.Status.Bootstrap,
		Reported: condition.Find(cd.Status.Conditions, hivev1.ClusterBootstrapped) != nil, Now: r.Clock.Now(),
	}
	pool := types.NamespacedName{Namespace: cd.Spec.ClusterPoolRef.Namespace, Name: cd.Spec.ClusterPoolRef.PoolName}
	reader := sparerequirements.Reader{Cached: r.Client, Live: r.Live}
	required, err := reader.ReadRequirements(ctx, pool, &sparerequirements.Memo{}, s.Now)
	if err != nil {
		return s, err
	}
	s.Requirement = required.Steps
	if s.Requirement.Version == "" || s.Adopted || bootstrap.HasBegun(cd) {
		return s, nil
	}
	since, err := reader.ReadStepsSince(ctx, pool)
	m := facts.ReadMember(cd, s.Now)
	s.Undecided, s.AwaitsPool = since.IsZero(), m.IsOlderThanSteps(since)
	return s, err
}

// attempt attempts the step of a plan in the cluster. The last step is done when nothing of other versions remains in the
// cluster, because then a claim may get it. An adopted cluster may have begun the steps of another version: its first step
// begins when none of their programs runs any more.
func (r *Reconciler) attempt(ctx context.Context, cd *hivev1.ClusterDeployment, s bootstrap.Snapshot, p bootstrap.Plan) (bootstrap.Outcome, error) {
	if err := sparerequirements.ConfirmPoolNamespace(ctx, r.Client, cd); err != nil {
		return bootstrap.Outcome{}, err
	}
	secret := client.ObjectKey{Namespace: cd.Namespace}
	if md := cd.Spec.ClusterMetadata; md != nil {
		secret.Name = md.AdminKubeconfigSecretRef.Name
	}
	if p.RemoveOthers || s.Adopted && s.Requirement.IsFirst(*p.Attempt) {
		o, err := r.Spokes.RemoveOtherVersions(ctx, secret, s.Requirement.Version)
		if err != nil || !o.Done || p.RemoveOthers {
			return o, err
		}
	}
	o, err := r.Spokes.TakeStep(ctx, secret, *p.Attempt, s.Requirement.SecretTexts())
	if err != nil || !o.Done || !s.Requirement.IsLast(*p.Attempt) {
		return o, err
	}
	return r.Spokes.RemoveOtherVersions(ctx, secret, s.Requirement.Version)
}

// confirmCurrent returns a Conflict if the cluster was written since cd was read: a cache may still show a step in
// progress after a claim has got the cluster. The write of a plan confirms the same.
func (r *Reconciler) confirmCurrent(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	key := client.ObjectKeyFromObject(cd)
	var live hivev1.ClusterDeployment
	if err := r.Live.Get(ctx, key, &live); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	if live.ResourceVersion != cd.ResourceVersion || live.UID != cd.UID {
		return fault.New(fault.Conflict, fmt.Errorf("cluster %s has changed", key))
	}
	return nil
}
