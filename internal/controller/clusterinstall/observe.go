package clusterinstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/kstatus"
	"hotspare.io/hotspare/internal/patch"
	"hotspare.io/hotspare/internal/provision"
)

// needsObservation reports whether the cluster's install must be read: not once the cluster is
// installed and its status says so.
func needsObservation(cd *hivev1.ClusterDeployment) bool {
	switch {
	case cd.Spec.ClusterInstallRef == nil, cd.Unreadable != "", cd.DeletionTimestamp != nil, hivev1.IsTrue(cd.Annotations, hivev1.AnnotationReconcilePause):
		return false
	}
	return !cd.Spec.Installed || cd.Status.InstalledTimestamp == nil
}

func installKindOf(ref *hivev1.ClusterInstallReference) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: ref.Group, Version: ref.Version, Kind: ref.Kind}
}

// installGroup is the API group of Hive's installers. Objects of other groups are not read:
// otherwise any user who may write a ClusterDeployment could make hotspare act on the content of
// any object.
const installGroup = "extensions.hive.openshift.io"

// clusterInstall is the part of a ClusterInstall that the contract defines.
type clusterInstall struct {
	Spec struct {
		ClusterMetadata *hivev1.ClusterMetadata `json:"clusterMetadata"`
	} `json:"spec"`
	Status struct {
		Conditions []provision.Condition `json:"conditions"`
	} `json:"status"`
}

// observeInstall reads the object that the cluster names, and the resources that its installer
// reports.
func (r *Reconciler) observeInstall(ctx context.Context, cd *hivev1.ClusterDeployment) (provision.ClusterInstallSnapshot, *hivev1.ClusterMetadata, error) {
	ref := cd.Spec.ClusterInstallRef
	f := provision.ClusterInstallSnapshot{Kind: ref.Kind, Name: ref.Name, Installed: cd.Spec.Installed}
	if f.Installed {
		return f, nil, nil
	}
	if ref.Group != installGroup {
		f.Missing = fmt.Sprintf("spec.clusterInstallRef names kind %s of group %q: hotspare reads only kinds of group %s, such as AgentClusterInstall: use one of those.",
			ref.Kind, ref.Group, installGroup)
		return f, nil, nil
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(installKindOf(ref))
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: cd.Namespace, Name: ref.Name}, obj)
	if f.Missing = missingMessage(cd, err); f.Missing != "" {
		return f, nil, nil
	}
	if err != nil {
		return f, nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	if err := r.ensureWatched(installKindOf(ref)); err != nil {
		return f, nil, fmt.Errorf("watching %s: %w", ref.Kind, err)
	}
	var said clusterInstall
	raw, err := obj.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &said)
	}
	if err != nil {
		f.Missing = fmt.Sprintf("%s %s does not follow the ClusterInstall contract: %v: correct it.", ref.Kind, ref.Name, err)
		f.Unreadable = true
		return f, nil, nil
	}
	f.Conditions = map[string]provision.Condition{}
	for _, c := range said.Status.Conditions {
		f.Conditions[c.Type] = c
	}
	made := said.Spec.ClusterMetadata
	f.Metadata = made != nil && made.ClusterID != "" && made.InfraID != "" && made.AdminKubeconfigSecretRef.Name != ""
	have := cd.Spec.ClusterMetadata
	f.Recorded = f.Metadata && have != nil && have.InfraID == made.InfraID && have.ClusterID == made.ClusterID
	return f, made, nil
}

// missingMessage explains why the object does not exist, and what to do; "" for other errors.
func missingMessage(cd *hivev1.ClusterDeployment, err error) string {
	ref := cd.Spec.ClusterInstallRef
	var discovery *apierrors.StatusError
	switch {
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("spec.clusterInstallRef names kind %s of %s/%s, which this hub does not have: install the controller that provides it.", ref.Kind, ref.Group, ref.Version)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("spec.clusterInstallRef names %s %s, which does not exist in namespace %s: create it.", ref.Kind, ref.Name, cd.Namespace)
	case apierrors.IsForbidden(err) && errors.As(err, &discovery):
		return fmt.Sprintf("hotspare may not read %s of %s, which spec.clusterInstallRef names: allow its controllers to get, list and watch them.", ref.Kind, ref.Group)
	}
	return ""
}

// ensureWatched starts watching an existing kind, once.
func (r *Reconciler) ensureWatched(kind schema.GroupVersionKind) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch == nil || r.watched[kind] {
		return nil
	}
	if err := r.watch(kind); err != nil {
		return err
	}
	if r.watched == nil {
		r.watched = map[schema.GroupVersionKind]bool{}
	}
	r.watched[kind] = true
	return nil
}

// patchStatus writes the conditions, and the end of the install.
func (r *Reconciler) patchStatus(ctx context.Context, cd *hivev1.ClusterDeployment, plan provision.ClusterInstallPlan) error {
	before, now := cd.DeepCopy(), r.Clock.Now()
	for _, c := range plan.Conditions {
		condition.Set(&cd.Status.Conditions, c.Type, c.Status, c.Reason, c.Message, now)
	}
	for _, typ := range provision.ConditionTypes() {
		if condition.Find(cd.Status.Conditions, typ) == nil {
			condition.Set(&cd.Status.Conditions, typ, corev1.ConditionUnknown, hivev1.ReasonInitialized, "The state is not known yet.", now)
		}
	}
	if plan.Finish && cd.Status.InstalledTimestamp == nil {
		at := metav1.NewTime(now).Rfc3339Copy()
		if cd.Spec.Installed {
			at = cd.CreationTimestamp // it was adopted: the time is unknown
		}
		cd.Status.InstalledTimestamp = &at
	}
	if !cd.Spec.Installed {
		cd.Status.ObservedGeneration = cd.Generation // for installed clusters, package power sets it
	}
	kstatus.ReportClusterDeployment(cd, now)
	_, err := patch.Status(ctx, r.Client, before, cd)
	return err
}
