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

// Root is the folder in a pod below which everything is that hotspare puts there.
const Root = "/run/hotspare"

// Folders of a pod.
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
	// grace is what a pod gets to end, that of its installer and of the last write.
	grace = 60 * time.Second
	// pods is how many a Job makes after the first.
	pods = 5
	// keptFor is how long a Job is kept after its end, for people to read its log.
	keptFor = 24 * time.Hour
	// slack is how much longer than its installer a Job may take.
	slack = 10 * time.Minute
)

// builder puts a pod together.
type builder struct {
	w       work
	volumes []corev1.Volume
	mounts  []corev1.VolumeMount
	args    []string
	env     []corev1.EnvVar
}

func sorted(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// build is the Job of a verb. infraID is that of what it makes, if it makes something.
func (e *Executor) build(w work, v verb, image, infraID string) *batchv1.Job {
	b := &builder{w: w, args: []string{
		"install-manager", string(v),
		"--namespace", w.Key.Namespace, "--state", w.Key.Name, "--hub", hubDir, "--work", workDir,
	}}
	b.empty("bin", binDir)
	b.empty("work", workDir)
	b.empty("tmp", "/tmp")
	b.hub()
	limit := e.PrepareLimit
	if v != resolve {
		b.trust(e.CertificateAuthorities)
	}
	switch v {
	case prepare:
		b.credentials()
		b.manifests()
	case create:
		limit = e.InstallLimit
		b.credentials()
		b.ssh()
	case destroy:
		limit = e.DestroyLimit
		b.credentials()
	}
	b.args = append(b.args, "--limit", limit.String())
	b.env = append(b.env, w.place.Provisioning.InstallerEnv...)
	// Last, so that nobody's environment can change it.
	b.env = append(b.env, corev1.EnvVar{Name: "HOTSPARE_POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})

	job := &batchv1.Job{ObjectMeta: w.meta(w.names(v)[0])}
	w.describe(job.Labels, v)
	if infraID != "" {
		job.Labels[hivev1.LabelInfraID] = labelValue(infraID)
	}
	job.Spec = batchv1.JobSpec{
		BackoffLimit:            ptr.To(int32(pods)),
		ActiveDeadlineSeconds:   ptr.To(int64((limit + slack).Seconds())),
		TTLSecondsAfterFinished: ptr.To(int32(keptFor.Seconds())),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(job.Labels)},
			Spec:       e.podSpec(b, image),
		},
	}
	return job
}

func (e *Executor) podSpec(b *builder, image string) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ServiceAccountName:            b.w.Key.Name,
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(grace.Seconds())),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: e.RunAsUser, FSGroup: e.RunAsUser,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: b.volumes,
		// The installer's image has no hotspare, and hotspare's no installer.
		InitContainers: []corev1.Container{{
			Name: "hotspare", Image: e.Image, SecurityContext: confined(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command:      []string{e.Program, "install-manager", "copy", "--to", path.Join(binDir, "hotspare")},
			VolumeMounts: []corev1.VolumeMount{{Name: "bin", MountPath: binDir}},
		}},
		// People and scripts ask for the log of container hive, as they know it from Hive.
		Containers: []corev1.Container{{
			Name: "hive", Image: image, SecurityContext: confined(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command: []string{path.Join(binDir, "hotspare")}, Args: b.args, Env: b.env, VolumeMounts: b.mounts,
		}},
	}
	if name := b.w.place.PullSecret; name != "" {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: name}}
	}
	return spec
}

func confined() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func (b *builder) mount(name, at string, source corev1.VolumeSource) {
	b.volumes = append(b.volumes, corev1.Volume{Name: name, VolumeSource: source})
	b.mounts = append(b.mounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: source.EmptyDir == nil})
}

func (b *builder) empty(name, at string) {
	b.mount(name, at, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
}

func (b *builder) secret(name, at, secret string) {
	b.mount(name, at, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}})
}

// hub mounts what reaches the hub, at a place where no installer looks for it.
func (b *builder) hub() {
	b.mount("hub", hubDir, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To(int64(tokenSeconds))}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
	}}})
}

// trust has the installer trust certificates in addition to those of its image: those that
// the platform names, and those that the hub has for all clusters. Go, in which the installer
// and its providers are written, reads all files of these folders, and beside them the file
// with the image's certificates.
func (b *builder) trust(authorities *cabundle.Source) {
	var folders []string
	if name := certificatesName(b.w.place); name != "" {
		b.secret("certificates", certificatesDir, name)
		folders = append(folders, certificatesDir)
	}
	if len(authorities.Names()) > 0 {
		b.secret("certificate-authorities", authoritiesDir, b.w.authoritiesName())
		folders = append(folders, authoritiesDir)
	}
	if len(folders) > 0 {
		folders = append(folders, "/etc/pki/tls/certs", "/etc/ssl/certs")
		b.env = append(b.env, corev1.EnvVar{Name: "SSL_CERT_DIR", Value: strings.Join(folders, ":")})
	}
}

func (b *builder) credentials() {
	need, ok := accesses[b.w.place.Platform.Name()]
	name := credentialsName(b.w.place)
	if !ok || name == "" {
		return
	}
	b.secret("credentials", credentialsDir, name)
	b.args = append(b.args, "--credentials", credentialsDir)
	b.env = append(b.env, need.variables(name, credentialsDir)...)
}

func (b *builder) manifests() {
	if ref := b.w.place.Provisioning.ManifestsConfigMapRef; ref != nil {
		at := path.Join(manifestsDir, "configmap")
		b.mount("manifests", at, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref}})
		b.args = append(b.args, "--manifests", at)
	}
	if ref := b.w.place.Provisioning.ManifestsSecretRef; ref != nil {
		at := path.Join(manifestsDir, "secret")
		b.secret("secret-manifests", at, ref.Name)
		b.args = append(b.args, "--manifests", at)
	}
}

func (b *builder) ssh() {
	if ref := b.w.place.Provisioning.SSHPrivateKeySecretRef; ref != nil {
		b.secret("ssh", sshDir, ref.Name)
		b.args = append(b.args, "--ssh-key", path.Join(sshDir, sshKey))
	}
}
