package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job/state"
)

func placeOn(platform hivev1.Platform) install.ClusterTarget {
	return install.ClusterTarget{Cluster: types.NamespacedName{Namespace: "ns", Name: "c1"}, UID: "uid", Platform: platform}
}

func section(raw string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(raw)} }

const named1 = `{"credentialsSecretRef":{"name":"creds"}}`

func TestEachPlatformGetsItsCredentialsTheWayItsInstallerReadsThem(t *testing.T) {
	for name, c := range map[string]struct {
		platform hivev1.Platform
		want     string
	}{
		"aws":       {hivev1.Platform{AWS: section(named1)}, "AWS_ACCESS_KEY_ID=creds/aws_access_key_id? AWS_SECRET_ACCESS_KEY=creds/aws_secret_access_key? AWS_SESSION_TOKEN=creds/aws_session_token?"},
		"azure":     {hivev1.Platform{Azure: section(named1)}, "AZURE_AUTH_LOCATION=/run/hotspare/credentials/osServicePrincipal.json"},
		"gcp":       {hivev1.Platform{GCP: section(named1)}, "GOOGLE_CREDENTIALS=/run/hotspare/credentials/osServiceAccount.json"},
		"ibmcloud":  {hivev1.Platform{IBMCloud: section(named1)}, "IC_API_KEY=creds/ibmcloud_api_key"},
		"openstack": {hivev1.Platform{OpenStack: section(named1)}, "OS_CLIENT_CONFIG_FILE=/run/hotspare/credentials/clouds.yaml"},
		"vsphere": {
			hivev1.Platform{VSphere: section(`{"credentialsSecretRef":{"name":"creds"},"certificatesSecretRef":{"name":"ca"}}`)},
			"SSL_CERT_DIR=/run/hotspare/certificates:/etc/pki/tls/certs:/etc/ssl/certs",
		},
		"nutanix":   {hivev1.Platform{Nutanix: section(named1)}, ""},
		"none":      {hivev1.Platform{None: section(`{}`)}, ""},
		"baremetal": {hivev1.Platform{BareMetal: section(`{}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(nil, Options{Image: "q/hotspare"})
			pod := e.buildJob(e.installOperation(install.Request{ClusterTarget: placeOn(c.platform)}), create, "q/installer", "c1-x").Spec.Template.Spec
			var got []string
			for _, v := range pod.Containers[0].Env {
				text := v.Name + "=" + v.Value
				if v.ValueFrom != nil && v.ValueFrom.SecretKeyRef != nil {
					ref := v.ValueFrom.SecretKeyRef
					text += ref.Name + "/" + ref.Key
					if ref.Optional != nil {
						text += "?"
					}
				}
				if v.Name != "HOTSPARE_POD" {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
			mounted := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "credentials" && v.Secret.SecretName == "creds" })
			if wants := credentialsSecretName(placeOn(c.platform)) != ""; mounted != wants {
				t.Errorf("credentials are mounted: %t, want %t", mounted, wants)
			}
			if !slices.Contains(SupportedPlatforms(), name) {
				t.Errorf("%s is not among the platforms", name)
			}
		})
	}
}

func TestCertificatesAreTrustedBesideThoseOfTheImage(t *testing.T) {
	const theImages = "/etc/pki/tls/certs:/etc/ssl/certs"
	own := placeOn(hivev1.Platform{VSphere: section(`{"credentialsSecretRef":{"name":"creds"},"certificatesSecretRef":{"name":"ca"}}`)})
	none := placeOn(hivev1.Platform{None: section(`{}`)})
	var hub cabundletest.Secret
	for name, tc := range map[string]struct {
		place       install.ClusterTarget
		authorities *cabundle.Source
		verb        verb
		env         string
		mounted     string
	}{
		"neither":                     {none, nil, create, "", ""},
		"the platform's":              {own, nil, create, "/run/hotspare/certificates:" + theImages, "ca at /run/hotspare/certificates"},
		"the hub's":                   {none, hub.NewSource(), create, "/run/hotspare/certificate-authorities:" + theImages, "STATE-ca-bundle at /run/hotspare/certificate-authorities"},
		"both, to prepare":            {own, hub.NewSource(), prepare, "/run/hotspare/certificates:/run/hotspare/certificate-authorities:" + theImages, "ca at /run/hotspare/certificates, STATE-ca-bundle at /run/hotspare/certificate-authorities"},
		"both, to destroy":            {own, hub.NewSource(), destroy, "/run/hotspare/certificates:/run/hotspare/certificate-authorities:" + theImages, "ca at /run/hotspare/certificates, STATE-ca-bundle at /run/hotspare/certificate-authorities"},
		"a look into a release image": {own, hub.NewSource(), resolve, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(nil, Options{Image: "q/hotspare", CertificateAuthorities: tc.authorities})
			w := e.installOperation(install.Request{ClusterTarget: tc.place})
			pod := e.buildJob(w, tc.verb, "q/installer", "c1-x").Spec.Template.Spec
			var env, mounted []string
			for _, v := range pod.Containers[0].Env {
				if strings.HasPrefix(v.Name, "SSL_") || strings.HasPrefix(v.Name, "AWS_CA") {
					env = append(env, v.Value)
				}
			}
			for _, m := range pod.Containers[0].VolumeMounts {
				i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.Secret != nil })
				if i >= 0 && strings.HasPrefix(m.Name, "certificate") && m.ReadOnly {
					mounted = append(mounted, strings.Replace(pod.Volumes[i].Secret.SecretName, w.Key.Name, "STATE", 1)+" at "+m.MountPath)
				}
			}
			if got := strings.Join(env, " "); got != tc.env {
				t.Errorf("SSL_CERT_DIR is %q, want %q", got, tc.env)
			}
			if got := strings.Join(mounted, ", "); got != tc.mounted {
				t.Errorf("mounted are %q, want %q", got, tc.mounted)
			}
		})
	}
}

func TestAPodTakesTheProgramFromWhereTheImageHasIt(t *testing.T) {
	for program, want := range map[string]string{"": "/hotspare", "/hotspare-manager": "/hotspare-manager"} {
		e := New(nil, Options{Image: "q/hotspare", Program: program})
		pod := e.buildJob(e.installOperation(install.Request{ClusterTarget: placeOn(hivev1.Platform{None: section(`{}`)})}), prepare, "q/installer", "").Spec.Template.Spec
		if got := pod.InitContainers[0].Command; got[0] != want || got[1] != "install-manager" {
			t.Errorf("of %q it runs %v", program, got)
		}
	}
}

func TestAPodMayDoLittle(t *testing.T) {
	e := New(nil, Options{Image: "q/hotspare"})
	place := placeOn(hivev1.Platform{AWS: section(named1)})
	place.PullSecret = "pull"
	place.Provisioning = hivev1.Provisioning{
		ManifestsConfigMapRef: &corev1.LocalObjectReference{Name: "m"}, ManifestsSecretRef: &corev1.LocalObjectReference{Name: "s"},
		SSHPrivateKeySecretRef: &corev1.LocalObjectReference{Name: "ssh"},
	}
	for _, v := range []verb{resolve, prepare, create, destroy} {
		job := e.buildJob(e.installOperation(install.Request{ClusterTarget: place}), v, "q/installer", "c1-x")
		pod := job.Spec.Template.Spec
		if *pod.AutomountServiceAccountToken || !*pod.SecurityContext.RunAsNonRoot || pod.RestartPolicy != corev1.RestartPolicyNever {
			t.Errorf("%s: a token, root, or restarts in place", v)
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
				t.Errorf("%s: container %s may too much", v, c.Name)
			}
			for _, m := range c.VolumeMounts {
				if m.Name == "credentials" && v == resolve {
					t.Errorf("%s is given credentials, and runs in an image that needs none", v)
				}
			}
		}
		if pod.ImagePullSecrets[0].Name != "pull" || job.Labels[hivev1.LabelInfraID] != "c1-x" || job.Spec.Template.Labels[hivev1.LabelInfraID] != "c1-x" {
			t.Errorf("%s: labels %v", v, job.Labels)
		}
		args := strings.Join(pod.Containers[0].Args, " ")
		for text, only := range map[string]verb{"--manifests /run/hotspare/manifests/configmap --manifests /run/hotspare/manifests/secret": prepare, "--ssh-key /run/hotspare/ssh/ssh-privatekey": create} {
			if strings.Contains(args, text) != (v == only) {
				t.Errorf("%s has arguments %s", v, args)
			}
		}
	}
}

func TestNames(t *testing.T) {
	e := New(nil, Options{})
	long := placeOn(hivev1.Platform{})
	long.Cluster.Name = strings.Repeat("a", 29) + "." + strings.Repeat("b", 33)
	seen := map[string]bool{}
	add := func(names ...string) {
		for _, name := range names {
			seen[name] = true
		}
	}
	for _, uid := range []types.UID{"1", "2"} {
		long.UID = uid
		for n := range 3 {
			w := e.installOperation(install.Request{ClusterTarget: long, Attempt: 100 + n, Name: long.Cluster.Name + "-100-abcde"})
			for _, v := range []verb{resolve, prepare, create} {
				add(w.jobNames(v)...)
			}
		}
		for _, id := range []string{"x-1", "x-2"} {
			add(e.destroyOperation(long, id).jobNames(destroy)...)
		}
	}
	if len(seen) != 22 {
		t.Errorf("%d names, want 22: %v", len(seen), seen)
	}
	for name := range seen {
		if bad := validation.IsDNS1123Subdomain(name); len(name) > 63 || len(bad) > 0 {
			t.Errorf("%s is no name of a Job: %v", name, bad)
		}
	}
	if l := infraIDLabelValue(strings.Repeat("x", 70)); len(validation.IsValidLabelValue(l)) > 0 {
		t.Errorf("%s is no label", l)
	}
}

// What the console of ACM, cluster-curator and people use to select and get Jobs.
func TestClientsOfHiveFindTheJobs(t *testing.T) {
	e := New(nil, Options{})
	place := placeOn(hivev1.Platform{})
	place.Cluster.Name = "c1"
	attempt := e.installOperation(install.Request{ClusterTarget: place, Name: "c1-0-abcde"})
	own := e.destroyOperation(place, "c1-x").jobNames(destroy)[0]
	leaving := place
	leaving.Deleting = true
	provision := map[string]string{hivev1.LabelJobType: "provision", hivev1.LabelInstall: "true", hivev1.LabelClusterProvision: "c1-0-abcde"}
	uninstall := map[string]string{hivev1.LabelJobType: "deprovision", hivev1.LabelUninstall: "true", hivev1.LabelClusterDeprovision: "c1"}
	for name, tc := range map[string]struct {
		w      operation
		v      verb
		name   string
		labels map[string]string
	}{
		"the lookup of the installer":        {attempt, resolve, "", map[string]string{hivev1.LabelJobType: "imageset", hivev1.LabelImageSet: "true"}},
		"the preparation":                    {attempt, prepare, "", provision},
		"the install":                        {attempt, create, "c1-0-abcde-provision", provision},
		"the destruction of the cluster":     {e.destroyOperation(leaving, "c1-x"), destroy, "c1-uninstall", uninstall},
		"that of an attempt leaves the name": {e.destroyOperation(place, "c1-x"), destroy, own, uninstall},
	} {
		t.Run(name, func(t *testing.T) {
			job := e.buildJob(tc.w, tc.v, "q/installer", "")
			if tc.name != "" && job.Name != tc.name {
				t.Errorf("Job %s, want %s", job.Name, tc.name)
			}
			tc.labels[hivev1.LabelClusterDeployment] = "c1"
			for key, value := range tc.labels {
				if job.Labels[key] != value || job.Spec.Template.Labels[key] != value {
					t.Errorf("label %s is %q on the Job and %q on its pod, want %q", key, job.Labels[key], job.Spec.Template.Labels[key], value)
				}
			}
			if c := job.Spec.Template.Spec.Containers[0].Name; c != "hive" {
				t.Errorf("its log is that of container %s", c)
			}
		})
	}
}

func TestANameThatIsTakenIsLeft(t *testing.T) {
	place := placeOn(hivev1.Platform{})
	place.Cluster = types.NamespacedName{Namespace: "c1", Name: "c1"}
	place.Deleting = true
	others := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "c1-uninstall", OwnerReferences: []metav1.OwnerReference{{Kind: "Secret", Name: "of-an-earlier-c1"}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "c1-uninstall-x", Labels: map[string]string{batchv1.JobNameLabel: "c1-uninstall"}}}
	hub := fake.NewClientBuilder().WithObjects(others, pod).Build()
	e := New(hub, Options{})
	w := e.destroyOperation(place, "c1-x")
	if seen, err := w.observeJob(t.Context(), destroy); err != nil || seen.Exists || len(seen.LivePods) > 0 {
		t.Fatalf("it sees %+v, %v", seen, err)
	}
	succeed(t, hub.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: w.Key.Name}}))
	succeed(t, e.runJob(t.Context(), w, destroy, "q/installer", ""))
	own := w.jobNames(destroy)[1]
	if seen, err := w.observeJob(t.Context(), destroy); err != nil || !seen.Exists || seen.Name != own {
		t.Errorf("its own is %+v, %v, want %s", seen, err, own)
	}
	succeed(t, w.deleteJob(t.Context(), destroy))
	succeed(t, hub.Get(t.Context(), client.ObjectKeyFromObject(others), others))
	if err := hub.Get(t.Context(), types.NamespacedName{Namespace: "c1", Name: own}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("its own is still there: %v", err)
	}
}

func TestWithoutAnyImageTheDenialSaysWhatToDo(t *testing.T) {
	e := New(nil, Options{})
	_, err := e.resolveInstallerImage(t.Context(), e.installOperation(install.Request{ClusterTarget: placeOn(hivev1.Platform{})}), state.State{})
	if fault.KindOf(err) != fault.Denied || !strings.Contains(fmt.Sprint(err), "spec.provisioning.installerImageOverride") {
		t.Errorf("got %v", err)
	}
}

func TestSaid(t *testing.T) {
	for in, want := range map[string]string{
		"a\nlevel=fatal msg=\"no \\\"x\\\" here\"\n": `no "x" here`,
		"plain\n": "plain",
		"":        "",
		"time=\"now\" level=error msg=\"password: abc\"": "password: REDACTED",
	} {
		if got := hubjob.LastLogMessage(in); got != want {
			t.Errorf("said(%q) = %q, want %q", in, got, want)
		}
	}
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
