package remote

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"hotspare.io/hotspare/internal/power"
)

// The resume probe is a PodDisruptionBudget that selects no pod. It has no effect, needs no
// image, and no admission policy concerns it; and the controller manager writes into its status
// which generation it has seen.
const (
	probeNamespace = metav1.NamespaceSystem
	probeName      = "hotspare-resume"
	// probeMarkAnnotation contains the probe's mark. probeSelectorLabel is a label that no pod has.
	probeMarkAnnotation   = "hotspare.io/resume"
	probeSelectorLabel    = "hotspare.io/no-pod"
	descriptionAnnotation = "kubernetes.io/description"
)

// CreateResumeProbe creates the resume probe in the cluster whose admin kubeconfig is in the
// Secret, so that its controller manager must react. Refused says in a few stable words why the
// cluster will never accept a probe; other failures of the cluster are retried. An error is the
// hub's own.
func (c *Connector) CreateResumeProbe(ctx context.Context, secret types.NamespacedName, mark string) (sent bool, refused string, err error) {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return false, "", err
	}
	err = a.createOrUpdateProbe(ctx, mark)
	return err == nil, probeRefusal(err), nil
}

// DeleteResumeProbe deletes the resume probe. If that fails in the cluster, the probe is left
// there; it does no harm. An error is the hub's own.
func (c *Connector) DeleteResumeProbe(ctx context.Context, secret types.NamespacedName) error {
	a, trouble, err := c.connectSpoke(ctx, secret)
	if err != nil || trouble != "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_ = a.policy.PodDisruptionBudgets(probeNamespace).Delete(ctx, probeName, metav1.DeleteOptions{})
	return nil
}

// createOrUpdateProbe creates the probe, or changes the one of an earlier resume so that the
// controller manager must react to it again.
func (sc *spokeClient) createOrUpdateProbe(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	budgets := sc.policy.PodDisruptionBudgets(probeNamespace)
	_, err := budgets.Create(ctx, newResumeProbe(mark), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old, err := budgets.Get(ctx, probeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the resume probe: %w", err)
	}
	least := intstr.FromInt32(1)
	if n := old.Spec.MinAvailable; n != nil && *n == least {
		least = intstr.FromInt32(0)
	}
	old.Spec.MinAvailable, old.Spec.MaxUnavailable = &least, nil
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, probeMarkAnnotation, mark)
	_, err = budgets.Update(ctx, old, metav1.UpdateOptions{})
	return err
}

func newResumeProbe(mark string) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(0)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: probeNamespace, Name: probeName,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "hotspare"},
			Annotations: map[string]string{
				probeMarkAnnotation:   mark,
				descriptionAnnotation: "Selects no pod. When its status is updated, hotspare knows that the controller manager works after a resume.",
			},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{probeSelectorLabel: "true"}},
		},
	}
}

// readResumeProbe reads whether the controller manager has reacted to the probe.
func (sc *spokeClient) readResumeProbe(ctx context.Context) (power.ResumeProbe, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b, err := sc.policy.PodDisruptionBudgets(probeNamespace).Get(ctx, probeName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return power.ResumeProbe{}, nil
	case apierrors.IsForbidden(err):
		return power.ResumeProbe{Refused: probeRefusal(err)}, nil
	case err != nil:
		return power.ResumeProbe{}, fmt.Errorf("reading the resume probe: %w", err)
	}
	return power.ResumeProbe{
		Mark: b.Annotations[probeMarkAnnotation],
		Done: b.Generation > 0 && b.Status.ObservedGeneration >= b.Generation,
	}, nil
}

// probeRefusal returns why the cluster will never accept the probe; "" if it may accept it later.
func probeRefusal(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "the admin kubeconfig may not write PodDisruptionBudgets in namespace " + probeNamespace + ", or a policy of the cluster forbids it"
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "the cluster has no PodDisruptionBudgets"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "the cluster rejects PodDisruptionBudget " + probeName
	default:
		return ""
	}
}
