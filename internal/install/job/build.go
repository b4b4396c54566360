package job

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/hubjob"
)

// Folders in a pod, in addition to those of package hubjob.
const (
	credentialsDir  = hubjob.Root + "/credentials"
	certificatesDir = hubjob.Root + "/certificates"
	authoritiesDir  = hubjob.Root + "/certificate-authorities"
	manifestsDir    = hubjob.Root + "/manifests"
	sshDir          = hubjob.Root + "/ssh"
)

const (
	sshKey = "ssh-privatekey"
	// podRetries is how many pods a Job creates after the first.
	podRetries = 5
	// jobTTL is how long a Job is kept after it ends, so that people can read its log.
	jobTTL = 24 * time.Hour
	// jobTimeoutMargin is how much longer than its installer a Job may take.
	jobTimeoutMargin = 10 * time.Minute
)

// builder assembles a pod.
type builder struct {
	hubjob.Builder
	operation operation
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// buildJob returns the Job of a verb. infraID identifies what the Job creates, if it creates
// something.
func (e *Executor) buildJob(w operation, v verb, image, infraID string) *batchv1.Job {
	b := &builder{operation: w, Builder: hubjob.Builder{Args: []string{
		"install-manager", string(v),
		"--namespace", w.Key.Namespace, "--state", w.Key.Name, "--hub", hubjob.HubDir, "--work", hubjob.WorkDir,
	}}}
	b.MountEmptyDir("bin", hubjob.BinDir)
	b.MountEmptyDir("work", hubjob.WorkDir)
	b.MountEmptyDir("tmp", "/tmp")
	b.MountHubAccess()
	limit := e.PrepareLimit
	if v != resolve {
		b.mountCertificates(e.CertificateAuthorities)
	}
	switch v {
	case prepare:
		b.mountCredentials()
		b.mountManifests()
	case create:
		limit = e.InstallLimit
		b.mountCredentials()
		b.mountSSHKey()
	case destroy:
		limit = e.DestroyLimit
		b.mountCredentials()
	}
	b.Args = append(b.Args, "--limit", limit.String())
	b.Env = append(b.Env, w.target.Provisioning.InstallerEnv...)
	b.AddPodName()

	job := &batchv1.Job{ObjectMeta: w.newObjectMeta(w.jobNames(v)[0])}
	w.setHiveJobLabels(job.Labels, v)
	if infraID != "" {
		job.Labels[hivev1.LabelInfraID] = infraIDLabelValue(infraID)
	}
	job.Spec = batchv1.JobSpec{
		BackoffLimit:            ptr.To(int32(podRetries)),
		ActiveDeadlineSeconds:   ptr.To(int64((limit + jobTimeoutMargin).Seconds())),
		TTLSecondsAfterFinished: ptr.To(int32(jobTTL.Seconds())),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(job.Labels)},
			Spec:       e.buildPodSpec(b, image),
		},
	}
	return job
}

func (e *Executor) buildPodSpec(b *builder, image string) corev1.PodSpec {
	return b.BuildPodSpec(hubjob.Images{
		Own: e.Image, Program: e.Program,
		Tool: image, Container: "hive", // people and scripts read the log of a container named hive, as they do with Hive
		RunAsUser: e.RunAsUser, PullSecret: b.operation.target.PullSecret, ServiceAccount: b.operation.Key.Name,
	})
}

// mountCertificates makes the installer trust certificates in addition to those of its image: those
// that the platform names, and those that the hub has for all clusters. Go, in which the installer
// and its providers are written, reads all files of these folders in addition to the file with the
// image's certificates.
func (b *builder) mountCertificates(authorities *cabundle.Source) {
	var folders []string
	if name := certificatesSecretName(b.operation.target); name != "" {
		b.MountSecret("certificates", certificatesDir, name)
		folders = append(folders, certificatesDir)
	}
	if len(authorities.SecretNames()) > 0 {
		b.MountSecret("certificate-authorities", authoritiesDir, b.operation.authoritiesSecretName())
		folders = append(folders, authoritiesDir)
	}
	if len(folders) > 0 {
		folders = append(folders, "/etc/pki/tls/certs", "/etc/ssl/certs")
		b.Env = append(b.Env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: strings.Join(folders, ":")})
	}
}

func (b *builder) mountCredentials() {
	need, ok := credentialsByPlatform[b.operation.target.Platform.Name()]
	name := credentialsSecretName(b.operation.target)
	if !ok || name == "" {
		return
	}
	b.MountSecret("credentials", credentialsDir, name)
	b.Args = append(b.Args, "--credentials", credentialsDir)
	b.Env = append(b.Env, need.credentialsEnv(name, credentialsDir)...)
}

func (b *builder) mountManifests() {
	if ref := b.operation.target.Provisioning.ManifestsConfigMapRef; ref != nil {
		at := path.Join(manifestsDir, "configmap")
		b.MountVolume("manifests", at, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref}})
		b.Args = append(b.Args, "--manifests", at)
	}
	if ref := b.operation.target.Provisioning.ManifestsSecretRef; ref != nil {
		at := path.Join(manifestsDir, "secret")
		b.MountSecret("secret-manifests", at, ref.Name)
		b.Args = append(b.Args, "--manifests", at)
	}
}

func (b *builder) mountSSHKey() {
	if ref := b.operation.target.Provisioning.SSHPrivateKeySecretRef; ref != nil {
		b.MountSecret("ssh", sshDir, ref.Name)
		b.Args = append(b.Args, "--ssh-key", path.Join(sshDir, sshKey))
	}
}
