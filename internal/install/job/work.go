package job

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job/state"
)

// verb is the work that a Job runs the installer for.
type verb string

const (
	resolve verb = "resolve"
	prepare verb = "prepare"
	create  verb = "create"
	destroy verb = "destroy"
)

// operation is an attempt or a destruction: a state, and Jobs that are named after it.
type operation struct {
	state.Store
	hub    client.Client
	target install.ClusterTarget
	// provision is the name of the attempt's ClusterProvision, if it is known.
	provision string
}

func (e *Executor) newOperation(p install.ClusterTarget, name string) operation {
	key := types.NamespacedName{Namespace: p.Cluster.Namespace, Name: name}
	return operation{Store: state.Store{API: e.hub, Key: key}, hub: e.hub, target: p}
}

func (e *Executor) installOperation(req install.Request) operation {
	w := e.newOperation(req.ClusterTarget, operationName(req.ClusterTarget, fmt.Sprintf("install-%d", req.Attempt), ""))
	w.provision = req.Name
	return w
}

func (e *Executor) destroyOperation(p install.ClusterTarget, infraID string) operation {
	return e.newOperation(p, operationName(p, "destroy", infraID))
}

// maxPrefix leaves room for the rest of the name in the 63 characters of a Job's name.
const maxPrefix = 30

// operationName returns a name for what, derived from the cluster. It depends not only on the
// cluster's name, because another cluster may have that name later.
func operationName(p install.ClusterTarget, what, which string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s", p.UID, what, which))
	prefix := p.Cluster.Name
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix] + "x" // a name must not end with a dot
	}
	return fmt.Sprintf("%s-%s-%s", prefix, what, hex.EncodeToString(sum[:])[:8])
}

// jobNames returns the possible names for the Job of a verb, the preferred one first. Clients of
// Hive look for <ClusterProvision>-provision, and for <ClusterDeployment>-uninstall of a cluster
// that is being deleted. Such a name may be too long, or used by the Job of an earlier cluster with
// that name; the last name is always usable.
func (w operation) jobNames(v verb) []string {
	wellKnown := ""
	switch {
	case v == create && w.provision != "":
		wellKnown = w.provision + "-provision"
	case v == destroy && w.target.Deleting:
		wellKnown = w.target.Cluster.Name + "-uninstall"
	}
	own := w.Key.Name + "-" + string(v)
	if wellKnown == "" || len(wellKnown) > validation.DNS1123LabelMaxLength {
		return []string{own}
	}
	return []string{wellKnown, own}
}

// findJob returns the Job of a verb, or nil. names are those of the Job, or, without a Job, the
// possible names that no other Job has.
func (w operation) findJob(ctx context.Context, v verb) (found *batchv1.Job, names []string, err error) {
	all := w.jobNames(v)
	for i, name := range all {
		var job batchv1.Job
		err := w.hub.Get(ctx, types.NamespacedName{Namespace: w.Key.Namespace, Name: name}, &job)
		switch {
		case apierrors.IsNotFound(err):
			names = append(names, name)
		case err != nil:
			return nil, nil, fmt.Errorf("reading Job %s: %w", name, err)
		case i == len(all)-1 || w.ownsJob(&job):
			return &job, []string{name}, nil
		}
	}
	return nil, names, nil
}

// ownsJob reports whether the Job was created for this attempt or destruction.
func (w operation) ownsJob(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "Secret" && o.Name == w.Key.Name
	})
}

// setHiveJobLabels labels a Job as clients of Hive expect it.
func (w operation) setHiveJobLabels(labels map[string]string, v verb) {
	labels[hivev1.LabelInstaller] = string(v)
	switch v {
	case resolve:
		labels[hivev1.LabelJobType], labels[hivev1.LabelImageSet] = hivev1.JobTypeImageSet, "true"
	case prepare, create:
		labels[hivev1.LabelJobType], labels[hivev1.LabelInstall] = hivev1.JobTypeProvision, "true"
		labels[hivev1.LabelClusterProvision] = w.provision
	case destroy:
		labels[hivev1.LabelJobType], labels[hivev1.LabelUninstall] = hivev1.JobTypeDeprovision, "true"
		labels[hivev1.LabelClusterDeprovision] = w.target.Cluster.Name
	}
}

// clusterLabels returns the labels of every object that is created for a cluster.
func (w operation) clusterLabels() map[string]string {
	return map[string]string{hivev1.LabelClusterDeployment: w.target.Cluster.Name}
}

// infraIDLabelValue returns an infraID as a label value. Installers generate valid ones.
func infraIDLabelValue(infraID string) string {
	if len(validation.IsValidLabelValue(infraID)) == 0 {
		return infraID
	}
	sum := sha256.Sum256([]byte(infraID))
	return hex.EncodeToString(sum[:])[:32]
}

func (w operation) newObjectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Key.Namespace, Name: name, Labels: w.clusterLabels()}
}

// createStateSecret stores a State unless there is one. The cluster owns it, and it owns all other
// created objects: deleting it, also by hand, ends its Jobs.
func (w operation) createStateSecret(ctx context.Context, st state.State) error {
	secret := &corev1.Secret{ObjectMeta: w.newObjectMeta(w.Key.Name), Data: st.Encode()}
	secret.Labels[hivev1.LabelSecretType] = hivev1.SecretTypeInstall
	if len(st.Metadata) > 0 {
		secret.Labels[hivev1.LabelSecretType] = hivev1.SecretTypeDestroy
	}
	secret.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: hivev1.GroupVersion.String(), Kind: "ClusterDeployment",
		Name: w.target.Cluster.Name, UID: w.target.UID, Controller: ptr.To(true),
	}}
	if err := w.hub.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Secret %s: %w", w.Key.Name, err)
	}
	return nil
}

// createPodResources creates what a pod needs to read and write its state, and no more than that.
func (w operation) createPodResources(ctx context.Context, parts int) (owner []metav1.OwnerReference, err error) {
	var secret corev1.Secret
	if err := w.hub.Get(ctx, w.Key, &secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", w.Key.Name, err)
	}
	access := hubjob.Access{State: &secret, Labels: w.clusterLabels()}
	for part := range parts {
		access.Parts = append(access.Parts, state.PartSecretName(w.Key.Name, part))
	}
	return access.OwnerReferences(), access.Create(ctx, w.hub)
}

// authoritiesSecretName names the Secret with the hub's CA certificates for the pods of w: they can
// mount Secrets of their own namespace only.
func (w operation) authoritiesSecretName() string { return w.Key.Name + "-ca-bundle" }

// writeAuthorities writes the hub's current CA certificates to the Secret that the next pod of w
// mounts. It does nothing if the hub has none.
func (e *Executor) writeAuthorities(ctx context.Context, w operation, owner []metav1.OwnerReference) error {
	bundle, err := e.CertificateAuthorities.Read(ctx)
	if err != nil || len(bundle) == 0 {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: w.newObjectMeta(w.authoritiesSecretName()), Data: map[string][]byte{cabundle.Key: bundle}}
	secret.OwnerReferences = owner
	err = w.hub.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = w.rewriteAuthorities(ctx, bundle)
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", secret.Name, err)
	}
	return nil
}

func (w operation) rewriteAuthorities(ctx context.Context, bundle []byte) error {
	var secret corev1.Secret
	if err := w.hub.Get(ctx, types.NamespacedName{Namespace: w.Key.Namespace, Name: w.authoritiesSecretName()}, &secret); err != nil {
		return err
	}
	if len(secret.Data) == 1 && bytes.Equal(secret.Data[cabundle.Key], bundle) {
		return nil
	}
	before := secret.DeepCopy()
	secret.Data = map[string][]byte{cabundle.Key: bundle}
	return w.hub.Patch(ctx, &secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// runJob creates a Job with everything that it needs. An existing Job is not an error.
func (e *Executor) runJob(ctx context.Context, w operation, v verb, image, infraID string) error {
	parts := 0
	if v == prepare || v == create {
		parts = state.MaxParts
	}
	owner, err := w.createPodResources(ctx, parts)
	if err == nil && v != resolve {
		err = e.writeAuthorities(ctx, w, owner)
	}
	if err != nil {
		return explainNamespaceRefusal(w.target, infraID, err)
	}
	_, names, err := w.findJob(ctx, v)
	if err != nil {
		return err
	}
	b := e.buildJob(w, v, image, infraID)
	b.Name, b.OwnerReferences = names[0], owner
	err = w.hub.Create(ctx, b)
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return explainNamespaceRefusal(w.target, infraID, fmt.Errorf("creating Job %s: %w", b.Name, err))
}

func explainNamespaceRefusal(p install.ClusterTarget, infraID string, err error) error {
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	if infraID == "" {
		infraID = "the cluster"
	}
	return namespaceTerminatingError(p, infraID)
}

// resolveInstallerImage returns the image that contains the installer. While it is being looked up,
// the error is fault.Wait.
func (e *Executor) resolveInstallerImage(ctx context.Context, w operation, st state.State) (string, error) {
	for _, known := range []string{e.InstallerImage, w.target.Provisioning.InstallerImageOverride, st.InstallerImage} {
		if known != "" {
			return known, nil
		}
	}
	if w.target.ReleaseImage == "" {
		return "", fault.NewDenied("the installer of ClusterDeployment %s is unknown: name its image in spec.provisioning.installerImageOverride, "+
			"or recreate the ClusterImageSet that spec.provisioning.imageSetRef names", w.target.Cluster.Name)
	}
	seen, err := w.observeJob(ctx, resolve)
	switch {
	case err != nil:
		return "", err
	case !seen.Exists && len(seen.LivePods) == 0:
		if err := e.runJob(ctx, w, resolve, w.target.ReleaseImage, ""); err != nil {
			return "", err
		}
		return "", seen.NewWaitingError("is reading the installer's image from release image " + w.target.ReleaseImage)
	case !seen.Ended:
		return "", seen.NewWaitingError("is reading the installer's image from release image " + w.target.ReleaseImage)
	}
	left := e.Retry - e.Clock.Since(seen.EndedAt)
	if left <= 0 {
		return "", firstError(w.deleteJob(ctx, resolve), fault.NewWait(hubjob.PollInterval, "the installer's image is read again from release image %s", w.target.ReleaseImage))
	}
	return "", fault.NewWait(left, "reading the installer's image from release image %s failed: %s", w.target.ReleaseImage, seen.FailureMessage())
}

func firstError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
