package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/install/job/installertest"
)

const noneConfig = `baseDomain: example.com
metadata: {name: %s}
platform: {none: {}}
pullSecret: '{"auths":{"quay.io":{"auth":"planted-pull-secret"}}}'
`

func TestAnInstallerMakesClustersInJobs(t *testing.T) {
	exe, err := installertest.BuildInstaller()
	if err != nil {
		t.Fatal(err)
	}
	cloud := installertest.Cloud(t.TempDir())
	h := own(t, "--installer", exe)
	ns := h.namespace(t)

	first := h.ordered(t, ns, "first", cloud)
	h.made(t, first)
	if first.Status.APIURL != "https://api.first.example.com:6443" {
		t.Errorf("its API is %q", first.Status.APIURL)
	}
	kubeconfig, password := h.adminSecrets(t, first)
	if len(kubeconfig.Data["kubeconfig"]) == 0 || string(password.Data["password"]) != "plant-ed0pw-aaaaa-bbbbb" {
		t.Error("its Secrets are not what the installer has made")
	}

	h.foundByClients(t, first)

	t.Log("hotspare is killed while a cluster comes up: it is waited for, and not made twice")
	if err := cloud.HangAt("late"); err != nil {
		t.Fatal(err)
	}
	second := h.ordered(t, ns, "second", cloud)
	eventually(t, "it is written that the cluster comes up", func(ctx context.Context) error { return h.comesUp(ctx, second) })
	h.kill(t)
	if err := cloud.ReleaseHang("late"); err != nil {
		t.Fatal(err)
	}
	h.restart(t)
	h.made(t, second)
	if second.Status.InstallRestarts != 0 {
		t.Errorf("it took %d attempts more", second.Status.InstallRestarts)
	}

	h.untold(t)
	for _, cd := range []*hivev1.ClusterDeployment{first, second} {
		h.delete(t, cd)
		h.gone(t, cd)
	}
	if left := cloud.ListClusters(); len(left) > 0 {
		t.Errorf("in the cloud there is still %v", left)
	}
	if v := cloud.ReadViolations(); v != "" {
		t.Errorf("the cloud complains:\n%s", v)
	}
	eventually(t, "nothing of the installs is left on the hub", func(ctx context.Context) error {
		var secrets corev1.SecretList
		if err := h.List(ctx, &secrets, client.InNamespace(ns), client.HasLabels{hivev1.LabelClusterDeployment}); err != nil {
			return err
		}
		if n := len(secrets.Items); n > 0 {
			return fmt.Errorf("%d Secrets are left, %s among them", n, secrets.Items[0].Name)
		}
		return nil
	})
}

// ordered creates a cluster that an installer, with env, is to make in a cloud.
func (h *hub) ordered(t *testing.T, ns, name string, cloud installertest.Cloud, env ...corev1.EnvVar) *hivev1.ClusterDeployment {
	t.Helper()
	config := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name + "-config"},
		Data:       map[string][]byte{hivev1.SecretKeyInstallConfig: fmt.Appendf(nil, noneConfig, name)},
	}
	cd := &hivev1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: hivev1.ClusterDeploymentSpec{
			ClusterName: name, BaseDomain: "example.com",
			Platform: hivev1.Platform{None: &runtime.RawExtension{Raw: []byte("{}")}},
			Provisioning: &hivev1.Provisioning{
				ReleaseImage:           "quay.io/ocp-release:4.18.20-x86_64",
				InstallConfigSecretRef: &corev1.LocalObjectReference{Name: config.Name},
				InstallerEnv:           append(env, corev1.EnvVar{Name: installertest.Env, Value: string(cloud)}),
			},
		},
	}
	h.create(t, config, cd)
	return cd
}

// made waits until a cluster is installed.
func (h *hub) made(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	eventually(t, "cluster "+cd.Name+" is installed", func(ctx context.Context) error {
		if err := h.Get(ctx, client.ObjectKeyFromObject(cd), cd); err != nil {
			return err
		}
		if !cd.Spec.Installed || cd.Status.APIURL == "" {
			return fmt.Errorf("its conditions are %+v", cd.Status.Conditions)
		}
		return nil
	})
}

// comesUp is an error until the state of a cluster's attempt says that it comes up.
func (h *hub) comesUp(ctx context.Context, cd *hivev1.ClusterDeployment) error {
	var list corev1.SecretList
	err := h.List(ctx, &list, client.InNamespace(cd.Namespace), client.MatchingLabels{
		hivev1.LabelClusterDeployment: cd.Name, hivev1.LabelSecretType: hivev1.SecretTypeInstall,
	})
	if err != nil || len(list.Items) == 0 {
		return errors.Join(err, errors.New("there is no attempt"))
	}
	if string(list.Items[0].Data["bootstrapped"]) != "true" {
		return fmt.Errorf("it is %s", list.Items[0].Data["phase"])
	}
	return nil
}

// untold fails if a planted secret is in a log, or something else than logs is left of
// pods that have ended.
func (h *hub) untold(t *testing.T) {
	t.Helper()
	var logs []string
	eventually(t, "of pods only logs are left", func(context.Context) error {
		var err error
		logs, err = filepath.Glob(filepath.Join(h.dir, "pods", "*", "*"))
		if err != nil || len(logs) == 0 {
			return errors.Join(err, errors.New("there are no logs"))
		}
		for _, path := range logs {
			if filepath.Base(path) != "log" {
				return fmt.Errorf("%s is left", path)
			}
		}
		return nil
	})
	for _, path := range append(logs, h.log()) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"planted-pull-secret", "plant-ed0pw", installertest.PlantedKey} {
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s tells the secret %q", path, secret)
			}
		}
	}
}

// foundByClients finds the install as cluster-curator does, by the name of its Job, and its
// log as the console of ACM does, by the labels of its pod.
func (h *hub) foundByClients(t *testing.T, cd *hivev1.ClusterDeployment) {
	t.Helper()
	var job batchv1.Job
	eventually(t, "the Job of the install succeeds", func(ctx context.Context) error {
		err := h.Get(ctx, types.NamespacedName{Namespace: cd.Namespace, Name: cd.Status.ProvisionRef.Name + "-provision"}, &job)
		if err == nil && (job.Status.Succeeded != 1 || job.Status.Active != 0) {
			return fmt.Errorf("it has the status %+v", job.Status)
		}
		return err
	})
	var pods corev1.PodList
	err := h.List(t.Context(), &pods, client.InNamespace(cd.Namespace), client.MatchingLabels{
		"hive.openshift.io/cluster-deployment-name": cd.Name, "hive.openshift.io/job-type": "provision",
		"hive.openshift.io/cluster-provision-name": cd.Status.ProvisionRef.Name, "job-name": job.Name,
	})
	if err != nil || len(pods.Items) != 1 {
		t.Errorf("its pods are %d: %v", len(pods.Items), err)
	}
}

func TestWithoutAnInstallerAClusterOfACloudSaysWhatIsMissing(t *testing.T) {
	h := shared(t)
	cd := h.ordered(t, h.namespace(t), "nowhere", "")
	eventually(t, "it is said", func(ctx context.Context) error {
		var now hivev1.ClusterDeployment
		if err := h.Get(ctx, types.NamespacedName{Namespace: cd.Namespace, Name: cd.Name}, &now); err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if c.Type == hivev1.ClusterRequirementsMet && strings.Contains(c.Message, "give hotspare up an installer (--installer)") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", now.Status.Conditions)
	})
	h.delete(t, cd)
}
