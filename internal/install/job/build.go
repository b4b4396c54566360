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
)

// Root is the folder in a pod that contains everything hotspare puts there.
const Root = "/run/hotspare"

// Folders in a pod.
const (
	binDir          = Root + "/bin"
	hubDir          = Root + "/hub"
	workDir         = Root + "/work"
	credentialsDir  = Root + "/credentials"
	certificatesDir = Root + "/certificates"
	authoritiesDir  = Root + "/certificate-authorities"
	manifestsDir    = Root + "/manifests"
	sshDir          = Root + "/ssh"
)

const (
	sshKey = "ssh-privatekey"
	// tokenSeconds is how long a pod's token is valid; a kubelet renews it.
	tokenSeconds = 3600
	// grace is a pod's termination grace period: it covers that of the installer and the last write.
	grace = 60 * time.Second
	// podRetries is how many pods a Job creates after the first.
	podRetries = 5
	// jobTTL is how long a Job is kept after it ends, so that people can read its log.
	jobTTL = 24 * time.Hour
	// jobTimeoutMargin is how much longer than its installer a Job may take.
	jobTimeoutMargin = 10 * time.Minute
)

// builder assembles a pod.
type builder struct {
	operation operation
	volumes   []corev1.Volume
	mounts    []corev1.VolumeMount
	args      []string
	env       []corev1.EnvVar
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// buildJob returns the Job of a verb. infraID identifies what the Job creates, if it creates
// something.
func (e *Executor) buildJob(w operation, v verb, image, infraID string) *batchv1.Job {
	b := &builder{operation: w, args: []string{
		"install-manager", string(v),
		"--namespace", w.Key.Namespace, "--state", w.Key.Name, "--hub", hubDir, "--work", workDir,
	}}
	b.mountEmptyDir("bin", binDir)
	b.mountEmptyDir("work", workDir)
	b.mountEmptyDir("tmp", "/tmp")
	b.mountHubAccess()
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
	b.args = append(b.args, "--limit", limit.String())
	b.env = append(b.env, w.target.Provisioning.InstallerEnv...)
	// Appended last, so that no user-defined variable can override it.
	b.env = append(b.env, corev1.EnvVar{Name: "HOTSPARE_POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})

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
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ServiceAccountName:            b.operation.Key.Name,
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(grace.Seconds())),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: e.RunAsUser, FSGroup: e.RunAsUser,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: b.volumes,
		// The installer's image does not contain hotspare, and hotspare's does not contain an installer.
		InitContainers: []corev1.Container{{
			Name: "hotspare", Image: e.Image, SecurityContext: restrictedSecurityContext(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command:      []string{e.Program, "install-manager", "copy", "--to", path.Join(binDir, "hotspare")},
			VolumeMounts: []corev1.VolumeMount{{Name: "bin", MountPath: binDir}},
		}},
		// People and scripts read the log of a container named hive, as they do with Hive.
		Containers: []corev1.Container{{
			Name: "hive", Image: image, SecurityContext: restrictedSecurityContext(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command: []string{path.Join(binDir, "hotspare")}, Args: b.args, Env: b.env, VolumeMounts: b.mounts,
		}},
	}
	if name := b.operation.target.PullSecret; name != "" {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: name}}
	}
	return spec
}

func restrictedSecurityContext() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func (b *builder) mountVolume(name, at string, source corev1.VolumeSource) {
	b.volumes = append(b.volumes, corev1.Volume{Name: name, VolumeSource: source})
	b.mounts = append(b.mounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: source.EmptyDir == nil})
}

func (b *builder) mountEmptyDir(name, at string) {
	b.mountVolume(name, at, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
}

func (b *builder) mountSecret(name, at, secret string) {
	b.mountVolume(name, at, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}})
}

// mountHubAccess mounts the files for access to the hub, at a path where no installer looks for
// them.
func (b *builder) mountHubAccess() {
	b.mountVolume("hub", hubDir, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To(int64(tokenSeconds))}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
	}}})
}

// mountCertificates makes the installer trust certificates in addition to those of its image: those
// that the platform names, and those that the hub has for all clusters. Go, in which the installer
// and its providers are written, reads all files of these folders in addition to the file with the
// image's certificates.
func (b *builder) mountCertificates(authorities *cabundle.Source) {
	var folders []string
	if name := certificatesSecretName(b.operation.target); name != "" {
		b.mountSecret("certificates", certificatesDir, name)
		folders = append(folders, certificatesDir)
	}
	if len(authorities.SecretNames()) > 0 {
		b.mountSecret("certificate-authorities", authoritiesDir, b.operation.authoritiesSecretName())
		folders = append(folders, authoritiesDir)
	}
	if len(folders) > 0 {
		folders = append(folders, "/etc/pki/tls/certs", "/etc/ssl/certs")
		b.env = append(b.env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: strings.Join(folders, ":")})
	}
}

func (b *builder) mountCredentials() {
	need, ok := credentialsByPlatform[b.operation.target.Platform.Name()]
	name := credentialsSecretName(b.operation.target)
	if !ok || name == "" {
		return
	}
	b.mountSecret("credentials", credentialsDir, name)
	b.args = append(b.args, "--credentials", credentialsDir)
	b.env = append(b.env, need.credentialsEnv(name, credentialsDir)...)
}

func (b *builder) mountManifests() {
	if ref := b.operation.target.Provisioning.ManifestsConfigMapRef; ref != nil {
		at := path.Join(manifestsDir, "configmap")
		b.mountVolume("manifests", at, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref}})
		b.args = append(b.args, "--manifests", at)
	}
	if ref := b.operation.target.Provisioning.ManifestsSecretRef; ref != nil {
		at := path.Join(manifestsDir, "secret")
		b.mountSecret("secret-manifests", at, ref.Name)
		b.args = append(b.args, "--manifests", at)
	}
}

func (b *builder) mountSSHKey() {
	if ref := b.operation.target.Provisioning.SSHPrivateKeySecretRef; ref != nil {
		b.mountSecret("ssh", sshDir, ref.Name)
		b.args = append(b.args, "--ssh-key", path.Join(sshDir, sshKey))
	}
}
