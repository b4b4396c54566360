package job_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/job/state"
)

// TestFaultsOfAnInstall tests the table of docs/install.md: the faults, and the effect of each on
// the attempts. Each cluster is deleted at the end; nothing may be left.
func TestFaultsOfAnInstall(t *testing.T) {
	t.Parallel()
	at := func(place string, then func(*lab)) func(*lab) {
		return func(l *lab) {
			must(t, l.cloud.HangAt(place))
			l.until("the installer is at "+place, l.hangs(place))
			if place == "late" {
				l.until("that the cluster comes up is written", func() bool {
					s, err := state.Decode(l.stateSecret(hivev1.SecretTypeInstall).Data)
					return err == nil && s.Bootstrapped
				})
			}
			then(l)
			must(t, l.cloud.ReleaseHang(place))
		}
	}
	fails := func(name string) func(*lab) { return func(l *lab) { must(t, l.cloud.InjectFault(name, 1)) } }
	killed := func(l *lab) { l.pod("create").kill() }
	const interrupted = state.ReasonInterrupted + " complete"
	for name, c := range map[string]struct {
		happens func(*lab)
		want    string
	}{
		"nothing":                                    {func(*lab) {}, "complete"},
		"the network cannot be made":                 {fails("fail-network"), "QuotaExceeded complete"},
		"the bootstrap machine cannot be made":       {fails("fail-bootstrap"), "QuotaExceeded complete"},
		"the control plane cannot be made":           {fails("fail-masters"), "QuotaExceeded complete"},
		"it fails late, with a kubeconfig left":      {fails("fail-late"), "ClusterInitializationFailed complete"},
		"the pod dies while it prepares":             {at("prepare", func(l *lab) { l.pod("prepare").kill() }), "complete"},
		"the pod dies before its mark":               {func(l *lab) { l.dies["create"] = afterReading }, "complete"},
		"the pod dies right after its mark":          {func(l *lab) { l.dies["create"] = afterWriting }, interrupted},
		"the pod dies while it creates":              {at("masters", killed), interrupted},
		"the pod dies while the cluster comes up":    {at("late", killed), "complete"},
		"the pod is evicted while it creates":        {at("masters", (*lab).evict), interrupted},
		"the pod is evicted while it comes up":       {at("late", func(l *lab) { l.delete(l.podOf("create")) }), "complete"},
		"the Job is deleted while it creates":        {at("masters", func(l *lab) { l.delete(l.job("create")); l.interrupted() }), interrupted},
		"the Job is deleted while it comes up":       {at("late", func(l *lab) { l.delete(l.job("create")) }), "complete"},
		"the manager restarts while it creates":      {at("masters", (*lab).restart), "complete"},
		"the node is lost while it creates":          {at("masters", func(l *lab) { killed(l); l.reboot() }), interrupted},
		"two pods at once":                           {func(l *lab) { l.lapse = time.Minute; at("masters", (*lab).twin)(l) }, "complete"},
		"the state is deleted while it creates":      {at("masters", func(l *lab) { l.delete(l.stateSecret(hivev1.SecretTypeInstall)) }), state.ReasonLost + " complete"},
		"the installer ends well without metadata":   {fails("no-metadata"), "complete"},
		"the credentials have expired for a moment":  {fails("expired"), "complete"},
		"the installer does not hear SIGTERM":        {func(l *lab) { fails("deaf")(l); at("masters", (*lab).evict)(l) }, interrupted},
		"the prepare Job is deleted while it runs":   {at("prepare", func(l *lab) { l.delete(l.job("prepare")) }), "complete"},
		"the manager restarts after it has prepared": {at("network", (*lab).restart), "complete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			c.happens(l)
			l.until("the cluster is installed", l.installed)
			l.until("its attempt is complete", func() bool { return strings.HasSuffix(l.attempts(), string(hivev1.StageComplete)) })
			if got := l.attempts(); got != c.want {
				t.Errorf("the attempts came to %q, want %q", got, c.want)
			}
			if n := len(l.cloud.ListClusters()); n != 1 {
				t.Errorf("there are %d clusters", n)
			}
			l.remove()
		})
	}
}

// evict deletes the pod of an installer, and waits until the pod has ended: a quick installer could
// finish before it is signaled.
func (l *lab) evict() {
	l.t.Helper()
	l.delete(l.podOf("create"))
	l.interrupted()
}

func (l *lab) interrupted() {
	l.t.Helper()
	l.until("the attempt has failed", func() bool { return l.attempts() == state.ReasonInterrupted })
}

// twin gives the create Job a second pod.
func (l *lab) twin() {
	l.t.Helper()
	first := l.podOf("create")
	second := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: first.Name + "-twin", Labels: first.Labels, OwnerReferences: first.OwnerReferences},
		Spec:       first.Spec,
	}
	must(l.t, l.hub.Create(l.t.Context(), second))
	one := l.pod("create")
	l.until("the second pod runs", func() bool { return l.pod("create") != one })
	// Longer than the heartbeat timeout of a pod.
	end := time.Now().Add(time.Second)
	l.until("the second pod has waited", func() bool { return time.Now().After(end) })
}

// TestFaultsOfADestruction tests the other half of the table.
func TestFaultsOfADestruction(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*testing.T, *lab){
		"the installer fails, then does not": func(t *testing.T, l *lab) {
			must(t, l.cloud.InjectFault("fail-destroy", 2))
			l.delete(l.cd())
			l.until("it is said", l.tells(hivev1.ClusterDeprovisionLaunchError, "a disk is in use"))
		},
		"its pod dies": func(t *testing.T, l *lab) {
			must(t, l.cloud.HangAt("destroy"))
			l.delete(l.cd())
			l.until("it destroys", l.hangs("destroy"))
			l.pod("destroy").kill()
			must(t, l.cloud.ReleaseHang("destroy"))
		},
		"its Job is deleted": func(t *testing.T, l *lab) {
			must(t, l.cloud.HangAt("destroy"))
			l.delete(l.cd())
			l.until("it destroys", l.hangs("destroy"))
			l.delete(l.job("destroy"))
			must(t, l.cloud.ReleaseHang("destroy"))
		},
		"the attempt's state is gone": func(_ *testing.T, l *lab) {
			l.delete(l.stateSecret(hivev1.SecretTypeInstall))
			l.delete(l.cd())
		},
		"its own state is deleted": func(t *testing.T, l *lab) {
			must(t, l.cloud.HangAt("destroy"))
			l.delete(l.cd())
			l.until("it destroys", l.hangs("destroy"))
			l.delete(l.stateSecret(hivev1.SecretTypeDestroy))
			must(t, l.cloud.ReleaseHang("destroy"))
		},
		"the credentials are gone": func(t *testing.T, l *lab) {
			l.delete(awsAccount())
			l.delete(l.cd())
			l.until("it is said", l.tells(hivev1.ClusterDeprovisionLaunchError, `Secret "aws", named by spec.platform.aws.credentialsSecretRef, does not exist: create it in namespace ns`))
			must(t, l.hub.Create(t.Context(), awsAccount()))
		},
		"the namespace takes no Job": func(_ *testing.T, l *lab) {
			l.ending = true
			l.delete(l.cd())
			l.until("it is said", l.tells(hivev1.ClusterDeprovisionLaunchError, "namespace ns is being deleted and accepts no Job"))
			l.ending = false
		},
		"the manager restarts": func(t *testing.T, l *lab) {
			must(t, l.cloud.HangAt("destroy"))
			l.delete(l.cd())
			l.until("it destroys", l.hangs("destroy"))
			l.restart()
			must(t, l.cloud.ReleaseHang("destroy"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.until("the cluster is installed", l.installed)
			happens(t, l)
			l.until("the cluster is gone", l.gone)
			if left := l.cloud.ListClusters(); len(left) > 0 {
				t.Errorf("in the cloud there is still %v", left)
			}
		})
	}
}

func TestAClusterThatIsDeletedWhileItIsMadeIsDestroyedAfterwards(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"prepare", "network", "masters", "late"} {
		t.Run("at "+place, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			must(t, l.cloud.HangAt(place))
			l.until("the installer is at "+place, l.hangs(place))
			l.remove()
		})
	}
}

func TestNothingIsDestroyedWhileAPodMayStillMakeIt(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	must(t, l.cloud.HangAt("masters"))
	l.until("the installer makes masters", l.hangs("masters"))
	lost := l.podOf("create")
	lost.Spec.NodeName, lost.Name, lost.ResourceVersion = "another", "on-a-lost-node", ""
	must(t, l.hub.Create(t.Context(), lost))
	lost.Status.Phase = corev1.PodRunning
	must(t, l.hub.Status().Update(t.Context(), lost))
	l.delete(l.cd())
	l.until("it is said", l.tells(hivev1.ClusterDeprovisionLaunchError, "pod on-a-lost-node, which creates"))
	for _, note := range l.cloud.ReadNotes() {
		if note == "destroy" {
			t.Error("it was destroyed while a pod may make it")
		}
	}
	must(t, l.hub.Delete(t.Context(), lost, client.GracePeriodSeconds(0)))
	l.until("the cluster is gone", l.gone)
}

func TestAPodIsToldThatTheOneBeforeHasEnded(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.lapse = time.Hour
	must(t, l.cloud.HangAt("masters"))
	l.until("the installer makes masters", l.hangs("masters"))
	l.pod("create").kill()
	must(t, l.cloud.ReleaseHang("masters"))
	l.interrupted()
	l.remove()
}

func TestAnInstallConfigThatTheInstallerDoesNotAccept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	must(t, l.cloud.InjectFault("invalid", 1))
	l.until("it is said", l.tells(hivev1.ClusterRequirementsMet, `False/InstallConfigValidationFailed: failed to fetch Master Machines`))
	if len(l.cloud.ListClusters()) > 0 {
		t.Error("something was made")
	}
	must(t, l.hub.Update(t.Context(), secret("config", hivev1.SecretKeyInstallConfig, installConfig+"fips: false\n")))
	l.until("the cluster is installed", l.installed)
	l.remove()
}

func TestAnInstallWaitsForItsCredentials(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.delete(awsAccount())
	l.until("it is said", l.tells(hivev1.ClusterRequirementsMet, `Secret "aws", named by spec.platform.aws.credentialsSecretRef, does not exist`))
	half := awsAccount()
	delete(half.Data, "aws_secret_access_key")
	must(t, l.hub.Create(t.Context(), half))
	l.until("the key is named", l.tells(hivev1.ClusterRequirementsMet, "has no key aws_secret_access_key: add it"))
	l.delete(half)
	must(t, l.hub.Create(t.Context(), awsAccount()))
	l.until("the cluster is installed", l.installed)
	l.remove()
}

func TestAnInstallThatTakesTooLongFails(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.limits = time.Second
	l.restart()
	must(t, l.cloud.HangAt("masters"))
	l.until("the attempt has failed", func() bool { return l.attempts() == state.ReasonTimeout })
	must(t, l.cloud.ReleaseHang("masters"))
	l.remove()
}

func TestPodsThatDoNotBeginSayWhy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"no node has room": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available",
			}}},
			"cannot be scheduled: 0/3 nodes are available",
		},
		"the image cannot be pulled": {
			corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Image: "q/installer", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"}},
			}}},
			"cannot pull image q/installer: check that the image exists and that the pull secret gives access to it",
		},
		"a Secret is missing": {
			corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: `secret "x" not found`}},
			}}},
			`cannot start: secret "x" not found`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.nodeless = true
			l.step()
			made := l.job("prepare")
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "stuck", Labels: map[string]string{"batch.kubernetes.io/job-name": made.Name}}}
			must(t, l.hub.Create(t.Context(), p))
			p.Status = c.status
			must(t, l.hub.Status().Update(t.Context(), p))
			l.until("it is said", l.tells(hivev1.ClusterProvisioned, c.want))
			l.until("it is reported as in Hive", l.tells(hivev1.ClusterInstallLaunchError, c.want))
			must(t, l.hub.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
			l.nodeless = false
			l.until("the cluster is installed", l.installed)
			l.until("it is reported no longer", func() bool { return strings.HasPrefix(l.says(hivev1.ClusterInstallLaunchError), "False") })
			l.remove()
		})
	}
}

func TestCredentialsThatThePlatformRefusesAreReported(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	must(t, l.cloud.InjectFault("expired", 1))
	l.until("it is reported", l.tells(hivev1.ClusterAuthenticationFailure, "True/PlatformAuthError: "))
	if got := l.says(hivev1.ClusterAuthenticationFailure); !strings.Contains(got, "cannot call AWS (ExpiredToken)") {
		t.Errorf("AuthenticationFailure is %s", got)
	}
	l.until("the cluster is installed", l.installed)
	l.until("it is reported no longer", l.tells(hivev1.ClusterAuthenticationFailure, "False/"))
	l.remove()
}

func TestTheInstallerIsLookedUpInTheRelease(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.options.InstallerImage = ""
	l.options.Retry = time.Minute
	l.restart()
	l.until("it is said that the release tells nothing", l.tells(hivev1.ClusterProvisioned, "reading the installer's image from release image quay.io/ocp-release:4.18.20-x86_64 failed"))
	must(t, writeFile(l.cloudFile("image-references"),
		`{"spec":{"tags":[{"name":"installer","from":{"name":"q/i@sha256:1"}},{"name":"cli","from":{"name":"q/c@sha256:2"}}]}}`))
	l.until("the cluster is installed", l.installed)
	s := l.cd().Status
	if s.InstallerImage == nil || *s.InstallerImage != "q/i@sha256:1" || *s.CLIImage != "q/c@sha256:2" {
		t.Errorf("the status tells %v and %v", s.InstallerImage, s.CLIImage)
	}
	if image := l.job("create").Spec.Template.Spec.Containers[0].Image; image != "q/i@sha256:1" {
		t.Errorf("the Job runs in %s", image)
	}

	// Users who may write the status must not choose what runs with the credentials.
	cd := l.cd()
	cd.Status.InstallerImage = ptr.To("evil.example/installer")
	must(t, l.hub.Status().Update(t.Context(), cd))
	must(t, l.cloud.HangAt("destroy"))
	l.delete(l.cd())
	l.until("the cluster is being destroyed", l.hangs("destroy"))
	if image := l.job("destroy").Spec.Template.Spec.Containers[0].Image; image != "q/i@sha256:1" {
		t.Errorf("the Job that destroys the cluster runs in %s", image)
	}
	must(t, l.cloud.ReleaseHang("destroy"))
	l.until("the cluster is gone", l.gone)
}

func TestADestructionWithoutMetadataSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.until("the cluster is installed", l.installed)
	id := l.cd().Spec.ClusterMetadata.InfraID
	var list hivev1.ClusterProvisionList
	must(t, l.hub.List(t.Context(), &list))
	must(t, errors.Join(l.hub.Delete(t.Context(), &list.Items[0]), l.hub.Delete(t.Context(), secret("c1-metadata-json", "", ""))))
	l.delete(l.cd())
	l.until("it is said", l.tells(hivev1.ClusterDeprovisionLaunchError, "the metadata.json of "+id+" is missing"))
	must(t, l.hub.Create(t.Context(), secret("c1-metadata-json", "metadata.json", `{"clusterName":"c1","clusterID":"x","infraID":"`+id+`"}`)))
	l.until("the cluster is gone", l.gone)
	if left := l.cloud.ListClusters(); len(left) > 0 {
		t.Errorf("in the cloud there is still %v", left)
	}
}

// A ClusterProvision may name any infraID, and the Job that destroys runs with the
// credentials of the cloud.
func TestAForgedAttemptDestroysNothingOfAnotherCluster(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.until("the cluster is installed", l.installed)
	own := l.cd().Spec.ClusterMetadata.InfraID
	const theirs = "victim-abcde"
	pool := hivev1.ClusterPoolReference{Namespace: "pools", PoolName: "p", ClaimName: "x"}
	victim := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "victim", Name: "victim", UID: "victim"},
		Spec:       hivev1.ClusterDeploymentSpec{ClusterPoolRef: &pool, ClusterMetadata: &hivev1.ClusterMetadata{InfraID: theirs}},
	}
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "victim", Labels: map[string]string{
		hivev1.LabelPoolName: pool.PoolName, hivev1.LabelPoolNamespace: pool.Namespace,
	}}}
	forged := &hivev1.ClusterProvision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "forged", Labels: map[string]string{hivev1.LabelClusterDeployment: "c1"}},
		Spec: hivev1.ClusterProvisionSpec{
			Stage: hivev1.StageFailed, InfraID: ptr.To(theirs),
			MetadataJSON: &hivev1.MetadataJSON{Raw: []byte(`{"clusterName":"victim","clusterID":"x","infraID":"` + theirs + `"}`)},
		},
	}
	must(t, controllerutil.SetControllerReference(l.cd(), forged, kinds(t)))
	must(t, errors.Join(l.hub.Create(t.Context(), home), l.hub.Create(t.Context(), victim), l.hub.Create(t.Context(), forged)))

	l.delete(l.cd())
	l.until("it is said whose it is", l.tells(hivev1.ClusterDeprovisionLaunchError, "infraID "+theirs+" belongs to ClusterDeployment victim/victim"))
	var jobs batchv1.JobList
	must(t, l.hub.List(t.Context(), &jobs, client.MatchingLabels{hivev1.LabelInstaller: "destroy", hivev1.LabelInfraID: theirs}))
	if len(jobs.Items) > 0 {
		t.Errorf("Job %s destroys %s", jobs.Items[0].Name, theirs)
	}
	l.delete(forged)
	l.until("the cluster is gone", l.gone)
	if left := l.cloud.ListClusters(); len(left) > 0 {
		t.Errorf("in the cloud there is still %v of %s", left, own)
	}
}
