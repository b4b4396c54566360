package clustergate

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/bootstrap"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/gate"
	"hotspare.io/hotspare/internal/pool/facts"
	"hotspare.io/hotspare/internal/sparerequirements"
)

// observeCluster reads what the verdict about a cluster depends on, and checks the gates if it runs.
func (r *Reconciler) observeCluster(ctx context.Context, cd *hivev1.ClusterDeployment) (gate.Snapshot, error) {
	s := gate.Snapshot{
		Running: gate.IsCheckable(cd), Fake: hivev1.IsTrue(cd.Annotations, hivev1.AnnotationFake),
		RunStartedAt: gate.RunStart(cd), Record: cd.Status.Gates,
		Reported: condition.Find(cd.Status.Conditions, hivev1.ClusterGatesPassed) != nil,
	}
	var err error
	pool := types.NamespacedName{Namespace: cd.Spec.ClusterPoolRef.Namespace, Name: cd.Spec.ClusterPoolRef.PoolName}
	reader := sparerequirements.Reader{Cached: r.Client}
	if s.Requirement, err = reader.ReadGates(ctx, pool); err != nil {
		return s, err
	}
	if s.Requirement.AfterSteps && !bootstrap.IsFinished(cd) {
		since, err := reader.ReadStepsSince(ctx, pool)
		if err != nil {
			return s, err
		}
		m := facts.ReadMember(cd, r.Clock.Now())
		s.Undecided = since.IsZero() && !m.Adopted && !bootstrap.HasBegun(cd)
		s.AwaitsSteps = !m.IsOlderThanSteps(since)
	}
	gates := s.GatesToCheck()
	if len(gates) > 0 {
		if err := sparerequirements.ConfirmPoolNamespace(ctx, r.Client, cd); err != nil {
			return s, err
		}
		if s.Answers, err = r.Spokes.CheckGates(ctx, kubeconfigSecret(cd), gates, runLabel(s)); err != nil {
			return s, fmt.Errorf("checking gates: %w", err)
		}
	}
	if s.HasPodsToDelete() {
		if err := sparerequirements.ConfirmPoolNamespace(ctx, r.Client, cd); err != nil {
			return s, err
		}
		if s.PodProblem, err = r.Spokes.DeleteGatePods(ctx, kubeconfigSecret(cd)); err != nil {
			return s, fmt.Errorf("deleting the pods of gates: %w", err)
		}
	}
	s.Now = r.Clock.Now()
	return s, nil
}

// runLabel identifies a run of a cluster and a version of its gates as the value of a label.
func runLabel(s gate.Snapshot) string {
	return s.Requirement.Version + "-" + strconv.FormatInt(max(s.RunStartedAt.Unix(), 0), 10)
}

// kubeconfigSecret returns the name of the Secret with the cluster's admin kubeconfig.
func kubeconfigSecret(cd *hivev1.ClusterDeployment) types.NamespacedName {
	name := client.ObjectKey{Namespace: cd.Namespace}
	if md := cd.Spec.ClusterMetadata; md != nil {
		name.Name = md.AdminKubeconfigSecretRef.Name
	}
	return name
}
