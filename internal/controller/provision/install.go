package provision

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/ownership"
	"hotspare.io/hotspare/internal/provision"
)

func (p *pass) ensureFinalizerAndLabels(ctx context.Context, _ provision.Step) error {
	return p.patchCluster(ctx, func(cd *hivev1.ClusterDeployment) {
		controllerutil.AddFinalizer(cd, hivev1.FinalizerDeprovision)
		addLabels(cd, provision.ClusterLabels(cd.Spec.Platform, cd.Labels))
	})
}

// createAttempt prepares the names of what the attempt will create, then creates its
// ClusterProvision. If that already exists, the cache was stale: then the existing names are used
// and the newly prepared ones are dropped. This is why Prepare creates nothing.
func (p *pass) createAttempt(ctx context.Context, s provision.Step) error {
	md, err := p.clusterExecutor().Prepare(ctx, p.attemptRequest(s.Attempt))
	if err == nil {
		err = p.confirmNewInfraID(ctx, s, md.InfraID)
	}
	if err != nil {
		answer, err := p.toAnswer(install.Result{}, err)
		p.prepare = withInstallWaitsPrefix(answer)
		return err
	}
	cp := p.newAttempt(s, md)
	if err := controllerutil.SetControllerReference(p.cluster, cp, p.Client.Scheme()); err != nil {
		return err
	}
	err = p.Client.Create(ctx, cp)
	if apierrors.IsAlreadyExists(err) {
		return p.readExistingAttempt(ctx, s.Name)
	}
	if err != nil {
		return err
	}
	p.attempts = append(p.attempts, cp)
	p.recordEvent("ProvisionStarted", "Install", "Started attempt %d as ClusterProvision %s", s.Attempt, s.Name)
	return nil
}

// confirmNewInfraID returns an error if another attempt or another cluster uses the infraID: what the
// attempt creates could not be distinguished from the other's resources.
func (p *pass) confirmNewInfraID(ctx context.Context, s provision.Step, infraID string) error {
	for _, cp := range p.attempts {
		if *cp.Spec.InfraID == infraID && cp.Spec.Attempt != s.Attempt {
			return &install.PrepareFailedError{Err: fault.NewWait(time.Minute,
				"the installer returned infraID %s for attempt %d, and attempt %d has used it: each attempt needs another infraID",
				infraID, s.Attempt, cp.Spec.Attempt)}
		}
	}
	err := ownership.ConfirmOwner(ctx, p.Client, p.cluster, infraID)
	if fault.KindOf(err) == fault.Denied { // nothing is recorded yet, so the installer may return another one
		return &install.PrepareFailedError{Err: fault.NewWait(time.Minute, "the installer returned an infraID that is in use: %s", err.Error())}
	}
	return err
}

// readExistingAttempt reads an attempt that was recorded before.
func (p *pass) readExistingAttempt(ctx context.Context, name string) error {
	if err := p.listAttempts(ctx, p.Live); err != nil {
		return err
	}
	if p.attemptByName(name) == nil {
		return fmt.Errorf("ClusterProvision %s exists but lacks its owner, its label or its infraID", name)
	}
	return nil
}

func (p *pass) newAttempt(s provision.Step, md install.Metadata) *hivev1.ClusterProvision {
	cp := &hivev1.ClusterProvision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace,
			Name:      s.Name,
			Labels:    map[string]string{hivev1.LabelClusterDeployment: p.cluster.Name},
		},
		Spec: hivev1.ClusterProvisionSpec{
			ClusterDeploymentRef: corev1.LocalObjectReference{Name: p.cluster.Name},
			Attempt:              s.Attempt,
			Stage:                hivev1.StageProvisioning,
			InfraID:              &md.InfraID,
			ClusterID:            &md.ClusterID,
			MetadataJSON:         &hivev1.MetadataJSON{Raw: md.Raw},
		},
	}
	if p.isFake() { // the install cannot fail, and ends in this pass, or in a later one that repeats it
		setComplete(&cp.Spec, p.cluster)
	}
	if before := p.latestAttempt(); before != nil {
		cp.Spec.PrevProvisionName = &before.Name
		cp.Spec.PrevInfraID = before.Spec.InfraID
		cp.Spec.PrevClusterID = before.Spec.ClusterID
	}
	return cp
}

// publishMetadata stores metadata.json, then writes its name and the attempt into the cluster: a
// client that sees the names finds the Secret.
func (p *pass) publishMetadata(ctx context.Context, s provision.Step) error {
	md := recordedMetadata(p.attemptByInfraID(s.InfraID))
	if err := p.storeMetadata(ctx, md); err != nil {
		return err
	}
	return p.patchCluster(ctx, func(cd *hivev1.ClusterDeployment) { setMetadata(cd, md) })
}

func (p *pass) storeMetadata(ctx context.Context, md install.Metadata) error {
	return p.storeSecret(ctx, p.newSecret(metadataSecret(p.cluster), "metadata", map[string][]byte{hivev1.SecretKeyMetadata: md.Raw}))
}

// setMetadata records the attempt that installs a cluster, and the names of its Secrets.
func setMetadata(cd *hivev1.ClusterDeployment, md install.Metadata) {
	cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
		ClusterID:                md.ClusterID,
		InfraID:                  md.InfraID,
		AdminKubeconfigSecretRef: *kubeconfigSecret(cd),
		AdminPasswordSecretRef:   passwordSecret(cd),
		MetadataJSONSecretRef:    metadataSecret(cd),
	}
}

func (p *pass) storeCredentials(ctx context.Context, _ provision.Step) error {
	err := p.storeSecret(ctx, p.newSecret(kubeconfigSecret(p.cluster), "kubeconfig", map[string][]byte{
		hivev1.SecretKeyKubeconfig: p.result.Kubeconfig,
	}))
	if err != nil {
		return err
	}
	return p.storeSecret(ctx, p.newSecret(passwordSecret(p.cluster), "kubeadmincreds", map[string][]byte{
		hivev1.SecretKeyUsername: []byte("kubeadmin"),
		hivev1.SecretKeyPassword: []byte(p.result.Password),
	}))
}

// markInstalled sets spec.installed. For a cluster that does not know its attempt yet, it publishes the metadata, too.
func (p *pass) markInstalled(ctx context.Context, s provision.Step) error {
	md := recordedMetadata(p.attemptByInfraID(s.InfraID))
	isPublished := recordedInfraID(p.cluster) == s.InfraID
	if !isPublished {
		if err := p.storeMetadata(ctx, md); err != nil {
			return err
		}
	}
	err := p.patchCluster(ctx, func(cd *hivev1.ClusterDeployment) {
		if !isPublished {
			setMetadata(cd, md)
		}
		cd.Spec.Installed = true
		addLabels(cd, provision.VersionLabels(p.result.Version))
	})
	if err == nil {
		p.recordEvent("Installed", "Install", "The cluster is installed")
		p.Metrics.RecordInstall(p.cluster)
	}
	return err
}

func (p *pass) completeAttempt(ctx context.Context, s provision.Step) error {
	return p.patchAttempt(ctx, s, func(spec *hivev1.ClusterProvisionSpec) { setComplete(spec, p.cluster) })
}

// setComplete sets the stage of an attempt that has installed cd.
func setComplete(spec *hivev1.ClusterProvisionSpec, cd *hivev1.ClusterDeployment) {
	spec.Stage = hivev1.StageComplete
	spec.AdminKubeconfigSecretRef = kubeconfigSecret(cd)
	spec.AdminPasswordSecretRef = passwordSecret(cd)
}

// maxLogSize limits the stored log: an object can have about one megabyte.
const maxLogSize = 64 << 10

// failAttempt stores the reason, then that the attempt failed: the backoff counts from the
// reason, so it must exist once the stage says failed.
func (p *pass) failAttempt(ctx context.Context, s provision.Step) error {
	err := p.setAttemptCondition(ctx, s, hivev1.ProvisionFailed, p.install.Reason, p.install.Message)
	if err != nil {
		return err
	}
	log := p.redactSecrets(p.result.Log)
	log = strings.ToValidUTF8(log[max(0, len(log)-maxLogSize):], "")
	err = p.patchAttempt(ctx, s, func(spec *hivev1.ClusterProvisionSpec) {
		spec.Stage = hivev1.StageFailed
		spec.InstallLog = &log
	})
	if err == nil {
		p.recordWarning("ProvisionFailed", "Install", "Attempt %d failed: %s", s.Attempt, p.install.Message)
	}
	return err
}

func (p *pass) recordCleanup(ctx context.Context, s provision.Step) error {
	err := p.setAttemptCondition(ctx, s, provision.DestroyedCondition, "Destroyed", "All resources of the attempt are deleted.")
	if err == nil {
		p.recordEvent("Destroyed", "Destroy", "Destroyed %s, the resources of attempt %d", s.InfraID, s.Attempt)
	}
	return err
}

func (p *pass) deleteAttempt(ctx context.Context, s provision.Step) error {
	cp := p.attemptByName(s.Name)
	err := p.Client.Delete(ctx, cp, client.Preconditions{UID: &cp.UID})
	return client.IgnoreNotFound(err)
}
