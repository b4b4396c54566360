package jobs

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/recipe"
)

const (
	// credentialsDir is $HOTSPARE_SECRETS, homeDir is $HOME.
	credentialsDir = hubjob.Root + "/credentials"
	homeDir        = hubjob.WorkDir + "/home"
	// containerName is the name of the container that runs the program.
	containerName = "recipe"
	// jobTTL is how long a Job is kept after it ends, so that people can read its log.
	jobTTL = time.Hour
	// timeoutMargin is how much longer than its program a Job may take, for example to pull the image.
	timeoutMargin = 15 * time.Minute
)

// workSize bounds the files of a program on its node. A pod that exceeds it is evicted.
var workSize = resource.MustParse("10Gi")

// describe is the verb of the Job that reads a recipe from its image. It is no program of a recipe.
const describe recipe.Verb = "describe"

// jobName returns the name of the Job of a run. It is derived from the token, so that a run has one Job.
func (q request) jobName(token string) string {
	return q.state.Name + "-" + string(q.verb) + "-" + strings.ToLower(token[:min(len(token), tokenInName)])
}

// tokenInName is the length of the part of a token in the name of a Job.
const tokenInName = 8

// buildJob returns the Job of a run.
func (h *hub) buildJob(q request, access hubjob.Access, token string) *batchv1.Job {
	command := "run"
	if q.verb == describe {
		command = "describe"
	}
	b := &hubjob.Builder{Args: []string{
		"recipe-manager", command, "--namespace", q.state.Namespace, "--state", q.state.Name, "--token", token,
		"--hub", hubjob.HubDir, "--work", hubjob.WorkDir, "--recipe", q.recipe, "--limit", q.limit.String(),
	}}
	if q.version != "" {
		b.Args = append(b.Args, "--version", q.version)
	}
	b.MountEmptyDir("bin", hubjob.BinDir)
	for name, at := range map[string]string{"work": hubjob.WorkDir, "home": homeDir, "tmp": "/tmp"} {
		b.MountVolume(name, at, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &workSize}})
	}
	b.MountHubAccess()
	if q.credentials != "" {
		b.MountSecret("credentials", credentialsDir, q.credentials)
		b.Args = append(b.Args, "--credentials", credentialsDir)
	}
	b.Env = []corev1.EnvVar{{Name: "HOME", Value: homeDir}}
	b.AddPodName()
	meta := access.NewObjectMeta(q.jobName(token))
	meta.Labels[hivev1.LabelInstaller] = string(q.verb)
	pod := b.BuildPodSpec(hubjob.Images{
		Own: h.Image, Program: h.Program, Tool: q.image, Container: containerName,
		RunAsUser: h.RunAsUser, PullSecret: q.pullSecret, ServiceAccount: q.state.Name,
	})
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		BackoffLimit:            ptr.To(int32(0)), // hotspare decides whether a program runs again
		ActiveDeadlineSeconds:   ptr.To(int64((q.limit + timeoutMargin).Seconds())),
		TTLSecondsAfterFinished: ptr.To(int32(jobTTL.Seconds())),
		Template:                corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: pod},
	}}
}
