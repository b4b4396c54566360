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

// The errand is a PodDisruptionBudget that selects no pod: it does nothing, needs no
// image and no policy is about it, and the controller manager writes into its status
// which generation of it it has seen.
const (
	errandNamespace = metav1.NamespaceSystem
	errandName      = "hotspare-resume"
	// errandMark is the annotation with the errand's mark, errandLabel what no pod has.
	errandMark    = "hotspare.io/resume"
	errandLabel   = "hotspare.io/no-pod"
	errandPurpose = "kubernetes.io/description"
)

// Send asks the controller manager of the cluster whose admin kubeconfig is in the
// Secret to act. Refused says in a few stable words why the cluster never will take
// such an errand; one that could only not be sent now is sent again. An error is the
// hub's own.
func (c *Connector) Send(ctx context.Context, secret types.NamespacedName, mark string) (sent bool, refused string, err error) {
	a, trouble, err := c.connect(ctx, secret)
	if err != nil || trouble != "" {
		return false, "", err
	}
	err = a.send(ctx, mark)
	return err == nil, refusal(err), nil
}

// Dismiss takes the errand away; one that cannot be is left, it does no harm. An
// error is the hub's own.
func (c *Connector) Dismiss(ctx context.Context, secret types.NamespacedName) error {
	a, trouble, err := c.connect(ctx, secret)
	if err != nil || trouble != "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_ = a.policy.PodDisruptionBudgets(errandNamespace).Delete(ctx, errandName, metav1.DeleteOptions{})
	return nil
}

// send makes the errand, or changes the one of an earlier resume so that it is to be
// seen again.
func (a *asker) send(ctx context.Context, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	budgets := a.policy.PodDisruptionBudgets(errandNamespace)
	_, err := budgets.Create(ctx, newErrand(mark), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	old, err := budgets.Get(ctx, errandName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the errand: %w", err)
	}
	least := intstr.FromInt32(1)
	if n := old.Spec.MinAvailable; n != nil && *n == least {
		least = intstr.FromInt32(0)
	}
	old.Spec.MinAvailable, old.Spec.MaxUnavailable = &least, nil
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, errandMark, mark)
	_, err = budgets.Update(ctx, old, metav1.UpdateOptions{})
	return err
}

func newErrand(mark string) *policyv1.PodDisruptionBudget {
	least := intstr.FromInt32(0)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: errandNamespace, Name: errandName,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "hotspare"},
			Annotations: map[string]string{
				errandMark:    mark,
				errandPurpose: "Selects no pod. That its status follows shows hotspare that the controller manager acts after a resume.",
			},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{errandLabel: "true"}},
		},
	}
}

// errand looks whether the controller manager has reacted.
func (a *asker) errand(ctx context.Context) (power.Errand, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b, err := a.policy.PodDisruptionBudgets(errandNamespace).Get(ctx, errandName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return power.Errand{}, nil
	case apierrors.IsForbidden(err):
		return power.Errand{Refused: refusal(err)}, nil
	case err != nil:
		return power.Errand{}, fmt.Errorf("reading the errand: %w", err)
	}
	return power.Errand{
		Mark: b.Annotations[errandMark],
		Done: b.Generation > 0 && b.Status.ObservedGeneration >= b.Generation,
	}, nil
}

// refusal says why the cluster will never take the errand; "" when it may, later.
func refusal(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "the admin kubeconfig may not write PodDisruptionBudgets in namespace " + errandNamespace + ", or a policy of the cluster forbids it"
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "the cluster has no PodDisruptionBudgets"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return "the cluster refuses PodDisruptionBudget " + errandName
	default:
		return ""
	}
}
