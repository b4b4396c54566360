package provision

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/provision"
)

// selectInstallChanges selects the updates of clusters that are being installed or deleted, and those of installed clusters
// that a pass could depend on. The others are what claims, power states and reachability change in clusters all the time.
func selectInstallChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*hivev1.ClusterDeployment), e.ObjectNew.(*hivev1.ClusterDeployment) //nolint:forcetypeassert // the watch is of one kind
		if !isSettled(before) || !isSettled(after) || before.ResourceVersion == after.ResourceVersion {   // nothing has changed: a resync
			return true
		}
		return !equality.Semantic.DeepEqual(copyInstallFields(before), copyInstallFields(after))
	}}
}

// isSettled reports whether the install of a cluster is done and reported, and the cluster is not being deleted.
func isSettled(cd *hivev1.ClusterDeployment) bool {
	return cd.Spec.Installed && cd.Status.InstalledTimestamp != nil && cd.Unreadable == "" && !isDeleting(cd)
}

// copyInstallFields returns a cluster with only what a pass over an installed cluster depends on, or reports. Parts of it are shared with cd.
func copyInstallFields(cd *hivev1.ClusterDeployment) *hivev1.ClusterDeployment {
	out := &hivev1.ClusterDeployment{Spec: cd.Spec}
	out.Labels, out.Annotations, out.Finalizers, out.OwnerReferences = cd.Labels, cd.Annotations, cd.Finalizers, cd.OwnerReferences
	out.Spec.PowerState, out.Spec.ClusterPoolRef, out.Spec.HibernateAfter = "", nil, nil
	status := &cd.Status
	out.Status = hivev1.ClusterDeploymentStatus{
		ProvisionRef: status.ProvisionRef, InstallRestarts: status.InstallRestarts,
		InstallStartedTimestamp: status.InstallStartedTimestamp, InstalledTimestamp: status.InstalledTimestamp,
	}
	for _, typ := range provision.ConditionTypes() {
		if c := condition.Find(status.Conditions, typ); c != nil {
			out.Status.Conditions = append(out.Status.Conditions, *c)
		}
	}
	return out
}

// awaitingImageSet returns requests for the clusters that wait to be installed from an image set.
func (r *Reconciler) awaitingImageSet(ctx context.Context, imageSet client.Object) []ctrl.Request {
	return r.listAwaitingClusters(ctx, func(cd *hivev1.ClusterDeployment) bool {
		return imageSetName(cd) == imageSet.GetName()
	})
}

// awaitingSecret returns requests for the clusters whose install reads a Secret, or for the one
// cluster for which an installer's pod reports in it.
func (r *Reconciler) awaitingSecret(ctx context.Context, secret client.Object) []ctrl.Request {
	switch labels := secret.GetLabels(); labels[hivev1.LabelSecretType] {
	case hivev1.SecretTypeInstall, hivev1.SecretTypeDestroy:
		return []ctrl.Request{{NamespacedName: types.NamespacedName{
			Namespace: secret.GetNamespace(), Name: labels[hivev1.LabelClusterDeployment],
		}}}
	}
	if name := client.ObjectKeyFromObject(secret); name == r.GlobalPullSecret || slices.Contains(r.CertificateAuthorities, name) {
		return r.listAwaitingClusters(ctx, func(*hivev1.ClusterDeployment) bool { return true })
	}
	return r.listAwaitingClusters(ctx, func(cd *hivev1.ClusterDeployment) bool {
		return slices.Contains([]string{installConfigName(cd), pullSecretName(cd), sshKeyName(cd), credentialsName(cd), certificatesName(cd)}, secret.GetName())
	}, client.InNamespace(secret.GetNamespace()))
}

// awaitingCustomization returns requests for the clusters that name a customization for their
// manifests.
func (r *Reconciler) awaitingCustomization(ctx context.Context, c client.Object) []ctrl.Request {
	return r.listAwaitingClusters(ctx, func(cd *hivev1.ClusterDeployment) bool {
		return customizationName(cd) == c.GetName()
	}, client.InNamespace(c.GetNamespace()))
}

// listAwaitingClusters returns requests for the clusters that are not installed yet and for which
// needs returns true.
func (r *Reconciler) listAwaitingClusters(ctx context.Context, needs func(*hivev1.ClusterDeployment) bool, opts ...client.ListOption) []ctrl.Request {
	var list hivev1.ClusterDeploymentList
	// The list is only read: copying every cluster would be wasteful.
	if err := r.Client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "listing clusters that wait")
		return nil
	}
	var found []ctrl.Request
	for i := range list.Items {
		if cd := &list.Items[i]; !cd.Spec.Installed && needs(cd) {
			found = append(found, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}})
		}
	}
	return found
}

func imageSetName(cd *hivev1.ClusterDeployment) string {
	if p := cd.Spec.Provisioning; p != nil && p.ImageSetRef != nil {
		return p.ImageSetRef.Name
	}
	return ""
}

func installConfigName(cd *hivev1.ClusterDeployment) string {
	if p := cd.Spec.Provisioning; p != nil && p.InstallConfigSecretRef != nil {
		return p.InstallConfigSecretRef.Name
	}
	return ""
}

func pullSecretName(cd *hivev1.ClusterDeployment) string {
	if ref := cd.Spec.PullSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

func sshKeyName(cd *hivev1.ClusterDeployment) string {
	if p := cd.Spec.Provisioning; p != nil && p.SSHPrivateKeySecretRef != nil {
		return p.SSHPrivateKeySecretRef.Name
	}
	return ""
}

func credentialsName(cd *hivev1.ClusterDeployment) string {
	if ref := cd.Spec.Platform.Settings().CredentialsSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

func certificatesName(cd *hivev1.ClusterDeployment) string {
	if ref := cd.Spec.Platform.Settings().CertificatesSecretRef; ref != nil {
		return ref.Name
	}
	return ""
}

func customizationName(cd *hivev1.ClusterDeployment) string {
	if p := cd.Spec.Provisioning; p != nil && p.CustomizationRef != nil {
		return p.CustomizationRef.Name
	}
	return ""
}
