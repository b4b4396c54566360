package provision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/provision"
)

// createDeprovision creates the ClusterDeprovision. Destroying does not depend on it: nothing can
// be created in a namespace that is being deleted, and an earlier cluster's ClusterDeprovision of
// the same name may still exist.
func (p *pass) createDeprovision(ctx context.Context, s provision.Step) error {
	cd := p.cluster
	record := &hivev1.ClusterDeprovision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cd.Namespace,
			Name:      cd.Name,
			Labels:    map[string]string{hivev1.LabelClusterDeployment: cd.Name},
		},
		Spec: hivev1.ClusterDeprovisionSpec{
			InfraID:     s.InfraID,
			ClusterName: cd.Spec.ClusterName,
			BaseDomain:  cd.Spec.BaseDomain,
		},
	}
	if m := cd.Spec.ClusterMetadata; m != nil {
		record.Spec.InfraID, record.Spec.ClusterID = m.InfraID, m.ClusterID
		record.Spec.MetadataJSONSecretRef = m.MetadataJSONSecretRef
	}
	if err := controllerutil.SetControllerReference(cd, record, p.Client.Scheme()); err != nil {
		return err
	}
	err := p.Client.Create(ctx, record)
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	if err == nil {
		p.deprovision = record
	}
	return err
}

// reportNoBundle records that no bundle of diagnostics is written, where the user of the claim and the administrator
// of the hub look.
func (p *pass) reportNoBundle(context.Context, provision.Step) error {
	const message = "no bundle of diagnostics is written: this hub stores none; to store bundles, its administrator must start hotspare-manager with --diagnostics"
	p.recordWarning("BundleNotWritten", "CollectDiagnostics", message)
	p.Events.Eventf(p.claim, p.cluster, corev1.EventTypeWarning, "BundleNotWritten", "CollectDiagnostics", message)
	return nil
}

func (p *pass) reportDestroyFailure(ctx context.Context, s provision.Step) error {
	return p.patchDeprovisionStatus(ctx, func(status *hivev1.ClusterDeprovisionStatus) {
		condition.Set(&status.Conditions, hivev1.DeprovisionFailed, corev1.ConditionTrue, provision.ReasonDestroyFailed, s.Message, p.now)
	})
}

func (p *pass) completeDeprovision(ctx context.Context, _ provision.Step) error {
	err := p.patchDeprovisionStatus(ctx, func(status *hivev1.ClusterDeprovisionStatus) {
		status.Completed = true
		condition.Set(&status.Conditions, hivev1.DeprovisionFailed, corev1.ConditionFalse, "Destroyed", "All resources of the cluster are deleted.", p.now)
	})
	if err == nil {
		p.recordEvent("Destroyed", "Destroy", "Destroyed everything that was recorded of the cluster")
	}
	return err
}

// patchDeprovisionStatus writes the status of the ClusterDeprovision, if there is one.
func (p *pass) patchDeprovisionStatus(ctx context.Context, edit func(*hivev1.ClusterDeprovisionStatus)) error {
	if p.deprovision == nil {
		return nil
	}
	before := p.deprovision.DeepCopy()
	edit(&p.deprovision.Status)
	kstatus.ReportClusterDeprovision(p.deprovision, p.cluster.Status.Conditions, p.now)
	_, err := patch.Status(ctx, p.Client, before, p.deprovision)
	return err
}

func (p *pass) removeFinalizer(ctx context.Context, _ provision.Step) error {
	err := p.patchCluster(ctx, func(cd *hivev1.ClusterDeployment) {
		controllerutil.RemoveFinalizer(cd, hivev1.FinalizerDeprovision)
	})
	return client.IgnoreNotFound(err)
}
