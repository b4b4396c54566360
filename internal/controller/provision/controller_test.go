package provision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/condition"
	"hotspare.io/hotspare/internal/fault"
)

func fakeCluster(cd *hivev1.ClusterDeployment) {
	cd.Annotations = map[string]string{hivev1.AnnotationFake: "true"}
}

// mustPass makes one pass that must not fail.
func (w *world) mustPass() ctrl.Result {
	w.t.Helper()
	res, err := w.pass()
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// says is a condition in one line.
func (w *world) says(typ string) string {
	w.t.Helper()
	c := condition.Find(w.cluster().Status.Conditions, typ)
	if c == nil {
		return "absent"
	}
	return fmt.Sprintf("%s/%s: %s", c.Status, c.Reason, c.Message)
}

func (w *world) secretData(name string) map[string]string {
	w.t.Helper()
	var s corev1.Secret
	if err := w.live.Get(w.t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, &s); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for k, v := range s.Data {
		out[k] = string(v)
	}
	return out
}

func wantEqual(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAFakeClusterIsInstalledInOnePass(t *testing.T) {
	w := newWorld(t, request(fakeCluster)...)
	w.mustPass()
	provision := w.attempts()[0].Name
	wantEqual(t, []string{
		"patch Deployment c1", // a pool creates its clusters with these labels and the finalizer
		"create Provision " + provision,
		"create Secret c1-admin-kubeconfig",
		"create Secret c1-admin-password",
		"report Deployment c1",
		"create Secret c1-metadata-json",
		"patch Deployment c1",
	}, w.writes)
	if cd, attempt := w.cluster(), w.attempts()[0]; cd.Spec.ClusterMetadata.InfraID != *attempt.Spec.InfraID || attempt.Spec.Stage != hivev1.StageComplete {
		t.Errorf("the cluster is %s, and its attempt %s is %s", cd.Spec.ClusterMetadata.InfraID, *attempt.Spec.InfraID, attempt.Spec.Stage)
	}
	w.writes = nil
	w.mustPass()
	if len(w.writes) > 0 {
		t.Errorf("the pass after it wrote %q", w.writes)
	}
}

func TestAnInstalledCluster(t *testing.T) {
	w := newWorld(t, request()...)
	w.drive("installed", w.installed)
	cd := w.cluster()

	t.Run("carries the labels that clients select by", func(t *testing.T) {
		wantEqual(t, map[string]string{
			hivev1.LabelPlatform: "aws", hivev1.LabelRegion: "us-east-1", hivev1.LabelType: "unmanaged",
			hivev1.LabelVersion: "4.18.20", hivev1.LabelVersionMajor: "4",
			hivev1.LabelVersionMajorMinor: "4.18", hivev1.LabelVersionMajorMinorPatch: "4.18.20",
		}, cd.Labels)
	})
	t.Run("names what was made, and its Secrets", func(t *testing.T) {
		wantEqual(t, &hivev1.ClusterMetadata{
			ClusterID: "id-of-c1-0-1", InfraID: "c1-0-1",
			AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "c1-admin-kubeconfig"},
			AdminPasswordSecretRef:   &corev1.LocalObjectReference{Name: "c1-admin-password"},
			MetadataJSONSecretRef:    &corev1.LocalObjectReference{Name: "c1-metadata-json"},
		}, cd.Spec.ClusterMetadata)
	})
	t.Run("has its credentials in Secrets", func(t *testing.T) {
		wantEqual(t, map[string]string{"kubeconfig": "kubeconfig of c1-0-1"}, w.secretData("c1-admin-kubeconfig"))
		wantEqual(t, map[string]string{"username": "kubeadmin", "password": "password of c1-0-1"}, w.secretData("c1-admin-password"))
		wantEqual(t, map[string]string{"metadata.json": `{"infraID":"c1-0-1"}`}, w.secretData("c1-metadata-json"))
	})
	t.Run("tells of itself in its status", func(t *testing.T) {
		s := cd.Status
		wantEqual(t, "https://api https://console 4.18.20 0 "+w.attempts()[0].Name+" 2026-01-02T03:04:05Z",
			fmt.Sprint(s.APIURL, " ", s.WebConsoleURL, " ", *s.InstallVersion, " ", s.InstallRestarts, " ",
				s.ProvisionRef.Name, " ", s.InstalledTimestamp.UTC().Format(time.RFC3339)))
		wantEqual(t, "True/Provisioned: The cluster is installed.", w.says(hivev1.ClusterProvisioned))
		wantEqual(t, "False/ProvisionNotStopped: The cluster is installed.", w.says(hivev1.ClusterProvisionStopped))
		wantEqual(t, "False/ProvisionSucceeded: The cluster is installed.", w.says(hivev1.ClusterProvisionFailed))
		wantEqual(t, "True/AllRequirementsMet: All requirements of the install are met.", w.says(hivev1.ClusterRequirementsMet))
		wantEqual(t, "Unknown/Initialized: The state is not known yet.", w.says(hivev1.ClusterDeprovisionLaunchError))
	})
	t.Run("was installed from the whole install-config", func(t *testing.T) {
		req := w.lab.requests[0]
		if !strings.Contains(string(req.Config), "hunter2") {
			t.Errorf("the pull secret is missing in\n%s", req.Config)
		}
		wantEqual(t, "quay.io/ocp-release:4.18.20-x86_64 4.18.20", req.ReleaseImage+" "+req.Version)
	})
	t.Run("was announced", func(t *testing.T) {
		wantEqual(t, []string{
			"Normal ProvisionStarted Started attempt 0 as ClusterProvision " + w.attempts()[0].Name,
			"Normal Installed The cluster is installed",
		}, w.told())
	})
}

func TestWithoutInstallConfigOneIsGenerated(t *testing.T) {
	w := newWorld(t, request(func(cd *hivev1.ClusterDeployment) {
		cd.Spec.Provisioning = &hivev1.Provisioning{
			ReleaseImage: "example.com/release:latest",
			InstallerEnv: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", ValueFrom: &corev1.EnvVarSource{}}},
		}
	})...)
	w.drive("installed", w.installed)
	req := w.lab.requests[0]
	if !strings.Contains(string(req.Config), "region: us-east-1") {
		t.Errorf("not generated for the platform:\n%s", req.Config)
	}
	wantEqual(t, []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", ValueFrom: &corev1.EnvVarSource{}}}, req.Provisioning.InstallerEnv)
}

func TestAMissingNeedIsNamedAndAwaited(t *testing.T) {
	for name, tt := range map[string]struct {
		remove client.Object
		put    client.Object
		want   string
	}{
		"the image set": {
			remove: imageSet(),
			want:   `False/ClusterImageSetNotFound: ClusterImageSet "v4", named by spec.provisioning.imageSetRef, does not exist: create it.`,
		},
		"the install-config": {
			remove: installConfig("c1"),
			want:   `False/SecretNotFound: Secret "config", named by spec.provisioning.installConfigSecretRef, does not exist or has no key install-config.yaml: create it in the cluster's namespace.`,
		},
		"the pull secret": {
			remove: pullSecret(),
			want:   `False/SecretNotFound: Secret "pull", named by spec.pullSecretRef, does not exist or has no key .dockerconfigjson: create it in the cluster's namespace.`,
		},
		"a key": {
			remove: pullSecret(), put: secret("pull", "config.json", "{}"),
			want: `False/SecretNotFound: Secret "pull", named by spec.pullSecretRef, does not exist or has no key .dockerconfigjson: create it in the cluster's namespace.`,
		},
		"a valid install-config": {
			remove: installConfig("c1"), put: installConfig("My_Cluster"),
			want: `False/InstallConfigValidationFailed: Secret "config", key install-config.yaml: metadata.name: "My_Cluster" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request()...)
			if err := w.live.Delete(t.Context(), tt.remove.DeepCopyObject().(client.Object)); err != nil {
				t.Fatal(err)
			}
			if tt.put != nil {
				if err := w.live.Create(t.Context(), tt.put); err != nil {
					t.Fatal(err)
				}
			}
			if res := w.mustPass(); res.RequeueAfter != 0 {
				t.Errorf("waits %v, where a watch will tell", res.RequeueAfter)
			}
			wantEqual(t, tt.want, w.says(hivev1.ClusterRequirementsMet))
			wantEqual(t, 0, w.lab.prepared)

			if tt.put != nil {
				if err := w.live.Delete(t.Context(), tt.put); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.live.Create(t.Context(), tt.remove); err != nil {
				t.Fatal(err)
			}
			w.catchUp()
			woken := w.reconciler().awaitingSecret(t.Context(), tt.remove)
			if _, ok := tt.remove.(*hivev1.ClusterImageSet); ok {
				woken = w.reconciler().awaitingImageSet(t.Context(), tt.remove)
			}
			wantEqual(t, []ctrl.Request{{NamespacedName: key}}, woken)
			w.drive("installed", w.installed)
		})
	}
}

func TestWhatIsNotNeededWakesNobody(t *testing.T) {
	w := newWorld(t, request()...)
	w.catchUp()
	r := w.reconciler()
	if woken := r.awaitingSecret(t.Context(), secret("other", "", "")); len(woken) > 0 {
		t.Errorf("a Secret that nobody names woke %v", woken)
	}
	w.drive("installed", w.installed)
	w.catchUp()
	if woken := r.awaitingSecret(t.Context(), pullSecret()); len(woken) > 0 {
		t.Errorf("the Secret of an installed cluster woke %v", woken)
	}
}

func TestAFailedAttempt(t *testing.T) {
	w := newWorld(t, request()...)
	w.lab.failures = 1
	w.mustPass()
	first := w.attempts()[0]
	if first.Spec.Stage != hivev1.StageFailed {
		t.Fatalf("stage %s, want failed", first.Spec.Stage)
	}
	wantEqual(t, "pulling with REDACTED\nno room for c1-0-1 with REDACTED\n", *first.Spec.InstallLog)

	res := w.mustPass()
	t.Run("is reported without secrets", func(t *testing.T) {
		wantEqual(t, "True/QuotaExceeded: no room for c1-0-1 with REDACTED.",
			w.says(hivev1.ClusterProvisionFailed))
		wantEqual(t, "False/Provisioning: Attempt 0 failed; another attempt follows.", w.says(hivev1.ClusterProvisioned))
		if told := strings.Join(w.told(), "\n"); strings.Contains(told, "hunter2") {
			t.Errorf("an event tells a secret:\n%s", told)
		}
	})
	t.Run("is destroyed with its metadata, once", func(t *testing.T) {
		w.mustPass()
		if len(w.lab.destroys) != 1 || string(w.lab.destroys[0].Raw) != `{"infraID":"c1-0-1"}` {
			t.Errorf("destroyed %v", w.lab.destroys)
		}
	})
	t.Run("is followed by another after the back-off", func(t *testing.T) {
		wantEqual(t, time.Minute, res.RequeueAfter)
		w.clock.Step(time.Minute - time.Second)
		wantEqual(t, time.Second, w.mustPass().RequeueAfter)
		w.clock.Step(time.Second)
		w.mustPass()
		second := w.attempts()[1]
		wantEqual(t, "complete "+first.Name+" c1-0-1 id-of-c1-0-1", fmt.Sprint(second.Spec.Stage, " ",
			*second.Spec.PrevProvisionName, " ", *second.Spec.PrevInfraID, " ", *second.Spec.PrevClusterID))
		wantEqual(t, "c1-1-2", w.cluster().Spec.ClusterMetadata.InfraID)
		wantEqual(t, 1, w.cluster().Status.InstallRestarts)
		wantEqual(t, map[string]string{"metadata.json": `{"infraID":"c1-1-2"}`}, w.secretData("c1-metadata-json"))
	})
}

func TestAtMostThreeFailedAttemptsAreKept(t *testing.T) {
	w := newWorld(t, request()...)
	w.lab.failures = 6
	w.drive("installed", w.installed)
	var numbers []int
	for n := range w.attempts() {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	wantEqual(t, []int{3, 4, 5, 6}, numbers)
}

func TestTheLimitOfAttempts(t *testing.T) {
	limit := func(n int32) func(*hivev1.ClusterDeployment) {
		return func(cd *hivev1.ClusterDeployment) { cd.Spec.InstallAttemptsLimit = &n }
	}
	for name, tt := range map[string]struct {
		edit func(*hivev1.ClusterDeployment)
		want int
	}{
		"0 means none at all": {limit(0), 0},
		"2 means two":         {limit(2), 2},
		"try-install-once means one": {func(cd *hivev1.ClusterDeployment) {
			cd.Annotations = map[string]string{hivev1.AnnotationTryInstallOnce: "true"}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request(tt.edit)...)
			w.lab.failures = 9
			w.drive("stopped", func() bool {
				return condition.IsTrue(w.cluster().Status.Conditions, hivev1.ClusterProvisionStopped)
			})
			for range 5 {
				w.clock.Step(time.Hour)
				w.mustPass()
			}
			wantEqual(t, tt.want, len(w.attempts()))
			wantEqual(t, "", w.lab.left())
			want := fmt.Sprintf("The limit of %d install attempts is reached: raise spec.installAttemptsLimit for another attempt, or delete the cluster.", tt.want)
			wantEqual(t, "True/InstallAttemptsLimitReached: "+want, w.says(hivev1.ClusterProvisionStopped))
			wantEqual(t, "False/ProvisionStopped: "+want, w.says(hivev1.ClusterProvisioned))
		})
	}
}

func TestWhatAnExecutorRefuses(t *testing.T) {
	broken := errors.New("connection reset")
	for name, tt := range map[string]struct {
		set  func(*lab)
		next time.Duration
		typ  string
		want string
		err  error
	}{
		"no room to prepare": {
			set:  func(l *lab) { l.prepareErr = fault.NewCapacity(time.Minute, "no memory for hunter2") },
			next: time.Minute, typ: hivev1.ClusterProvisioned,
			want: "False/Provisioning: The install waits: no memory for REDACTED",
		},
		"no room to install, who knows until when": {
			set:  func(l *lab) { l.installErr = fault.NewCapacity(0, "no memory") },
			next: defaultRetryDelay, typ: hivev1.ClusterProvisioned,
			want: "False/Provisioning: The install waits: no memory",
		},
		"an invalid install-config": {
			set: func(l *lab) { l.prepareErr = fault.NewDenied("platform.aws.region: unknown") },
			typ: hivev1.ClusterRequirementsMet, want: "False/InstallConfigValidationFailed: platform.aws.region: unknown",
		},
		"wrong credentials": {
			set:  func(l *lab) { l.installErr = fault.NewDenied("the key is not valid") },
			next: 10 * time.Minute, typ: hivev1.ClusterProvisioned,
			want: "False/Provisioning: the key is not valid",
		},
		"an error that nobody knows is backed off": {
			set: func(l *lab) { l.prepareErr = broken }, typ: hivev1.ClusterProvisioned, want: "absent", err: broken,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request()...)
			tt.set(w.lab)
			res, err := w.pass()
			if !errors.Is(err, tt.err) {
				t.Fatalf("got %v, want %v", err, tt.err)
			}
			wantEqual(t, tt.next, res.RequeueAfter)
			wantEqual(t, tt.want, w.says(tt.typ))
			w.lab.prepareErr, w.lab.installErr = nil, nil
			w.drive("installed", w.installed)
		})
	}
}

func TestWhatIsLeftAlone(t *testing.T) {
	adopted := func(cd *hivev1.ClusterDeployment) {
		cd.Spec.Installed = true
		cd.Spec.ClusterMetadata = &hivev1.ClusterMetadata{
			InfraID:                  "theirs",
			AdminKubeconfigSecretRef: corev1.LocalObjectReference{Name: "config"},
			AdminPasswordSecretRef:   &corev1.LocalObjectReference{Name: "pull"},
		}
	}
	foreign := func(cd *hivev1.ClusterDeployment) {
		cd.Spec.Provisioning = nil
		cd.Spec.ClusterInstallRef = &hivev1.ClusterInstallReference{Kind: "AgentClusterInstall", Name: "c1"}
	}
	paused := func(cd *hivev1.ClusterDeployment) {
		cd.Annotations = map[string]string{hivev1.AnnotationReconcilePause: "true"}
	}
	for name, tt := range map[string]struct {
		edit   func(*hivev1.ClusterDeployment)
		writes []string
		says   string
	}{
		"an adopted cluster is marked and reported": {adopted, []string{"patch Deployment c1", "report Deployment c1"}, "True/Provisioned: The cluster is installed."},
		"another installer's cluster is marked":     {foreign, []string{"patch Deployment c1"}, "absent"},
		"a paused cluster is not touched":           {paused, nil, "absent"},
		"nor is a paused fake one": {func(cd *hivev1.ClusterDeployment) {
			paused(cd)
			cd.Annotations[hivev1.AnnotationFake] = "true"
		}, nil, "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, request(tt.edit)...)
			w.mustPass()
			w.mustPass()
			wantEqual(t, tt.writes, w.writes)
			wantEqual(t, 0, w.lab.prepared)
			wantEqual(t, tt.says, w.says(hivev1.ClusterProvisioned))
		})
	}
	t.Run("an adopted cluster counts as old as its object", func(t *testing.T) {
		w := newWorld(t, request(adopted)...)
		w.mustPass()
		wantEqual(t, epoch.Add(-time.Hour), w.cluster().Status.InstalledTimestamp.UTC())
	})
}

func TestSetup(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w)
	if err := w.reconciler().SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
}
