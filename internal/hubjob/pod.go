// Package hubjob contains what the Jobs of hotspare on a hub have in common: each runs hotspare's
// program in the image of another tool, and may read and write only the Secrets with the state of its
// own work.
package hubjob

import (
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Root is the folder in a pod that contains everything hotspare puts there.
const Root = "/run/hotspare"

// Folders in a pod.
const (
	BinDir  = Root + "/bin"
	HubDir  = Root + "/hub"
	WorkDir = Root + "/work"
)

const (
	// tokenSeconds is how long a pod's token is valid; a kubelet renews it.
	tokenSeconds = 3600
	// GraceSeconds is a pod's termination grace period: it covers that of the program that the pod runs
	// and the last write.
	GraceSeconds = 60
)

// Builder assembles a pod.
type Builder struct {
	Volumes []corev1.Volume
	Mounts  []corev1.VolumeMount
	Args    []string
	Env     []corev1.EnvVar
}

// Images are what a pod runs.
type Images struct {
	// Own is hotspare's own image, with the program at the path Program.
	Own, Program string
	// Tool is the image in which the program runs; Container is the name of its container.
	Tool, Container string
	// RunAsUser is the user of the pod; nil leaves it to the hub or to the images.
	RunAsUser *int64
	// PullSecret is the name of the Secret for pulling images; empty if there is none.
	PullSecret string
	// ServiceAccount is the name of the pod's ServiceAccount.
	ServiceAccount string
}

// MountVolume mounts a volume, read-only unless it is an empty folder.
func (b *Builder) MountVolume(name, at string, source corev1.VolumeSource) {
	b.Volumes = append(b.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	b.Mounts = append(b.Mounts, corev1.VolumeMount{Name: name, MountPath: at, ReadOnly: source.EmptyDir == nil})
}

// MountEmptyDir mounts an empty folder, which ends with the pod.
func (b *Builder) MountEmptyDir(name, at string) {
	b.MountVolume(name, at, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
}

// MountSecret mounts each key of a Secret as a file.
func (b *Builder) MountSecret(name, at, secret string) {
	b.MountVolume(name, at, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}})
}

// MountHubAccess mounts the files for access to the hub, at a path where no tool looks for them.
func (b *Builder) MountHubAccess() {
	b.MountVolume("hub", HubDir, corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To(int64(tokenSeconds))}},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
	}}})
}

// AddPodName sets the variable from which the program knows the name of its pod. It must be the last
// variable, so that no user-defined one overrides it.
func (b *Builder) AddPodName() {
	b.Env = append(b.Env, corev1.EnvVar{Name: "HOTSPARE_POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}})
}

// BuildPodSpec returns the pod. Its init container copies the program, because the image of the tool
// does not contain hotspare, and hotspare's does not contain the tool. BinDir must be mounted.
func (b *Builder) BuildPodSpec(i Images) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ServiceAccountName:            i.ServiceAccount,
		AutomountServiceAccountToken:  ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To(int64(GraceSeconds)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: i.RunAsUser, FSGroup: i.RunAsUser,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Volumes: b.Volumes,
		InitContainers: []corev1.Container{{
			Name: "hotspare", Image: i.Own, SecurityContext: newSecurityContext(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command:      []string{i.Program, "install-manager", "copy", "--to", path.Join(BinDir, "hotspare")},
			VolumeMounts: []corev1.VolumeMount{{Name: "bin", MountPath: BinDir}},
		}},
		Containers: []corev1.Container{{
			Name: i.Container, Image: i.Tool, SecurityContext: newSecurityContext(), TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Command: []string{path.Join(BinDir, "hotspare")}, Args: b.Args, Env: b.Env, VolumeMounts: b.Mounts,
		}},
	}
	if i.PullSecret != "" {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: i.PullSecret}}
	}
	return spec
}

// newSecurityContext returns the most restrictive settings with which a program can run.
func newSecurityContext() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}
