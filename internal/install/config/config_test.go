package config

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

var update = flag.Bool("update", false, "write testdata anew")

// read returns a document from testdata; from a Secret it returns the install-config.
func read(tb testing.TB, name string) []byte {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	var secret struct{ StringData map[string]string }
	if err := yaml.Unmarshal(raw, &secret); err == nil && secret.StringData != nil {
		return []byte(secret.StringData[hivev1.SecretKeyInstallConfig])
	}
	return raw
}

func tree(t *testing.T, raw []byte) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func aws(settings string) hivev1.Platform {
	return hivev1.Platform{AWS: &runtime.RawExtension{Raw: []byte(settings)}}
}

func local(workers int32, duration hivev1.Duration) hivev1.Platform {
	return hivev1.Platform{Local: &hivev1.LocalPlatform{Workers: &workers, CertificateDuration: duration}}
}

func TestRenderWithoutTemplate(t *testing.T) {
	for name, tt := range map[string]struct {
		platform hivev1.Platform
		want     string
	}{
		"a cloud gets three of each, its region, and no credentials": {
			platform: aws(`{"region":"us-east-1","credentialsSecretRef":{"name":"creds"},"userTags":{"a":"b"}}`),
			want: `
apiVersion: v1
baseDomain: example.com
compute:
- name: worker
  replicas: 3
controlPlane:
  name: master
  replicas: 3
metadata:
  name: c1
networking:
  clusterNetwork:
  - cidr: 10.128.0.0/14
    hostPrefix: 23
  machineNetwork:
  - cidr: 10.0.0.0/16
  serviceNetwork:
  - 172.30.0.0/16
platform:
  aws:
    region: us-east-1
    userTags:
      a: b
`,
		},
		"local gets one control plane and the workers asked for": {
			platform: local(2, "10m"),
			want: `
apiVersion: v1
baseDomain: example.com
compute:
- name: worker
  replicas: 2
controlPlane:
  name: master
  replicas: 1
metadata:
  name: c1
platform:
  local:
    certificateDuration: 10m
    workers: 2
`,
		},
		"exec gets the recipe, which defines the machines": {
			platform: hivev1.Platform{Exec: &hivev1.ExecPlatform{Recipe: "k3d", With: map[string]hivev1.ExecParameter{"agents": "2"}}},
			want: `
apiVersion: v1
baseDomain: example.com
metadata:
  name: c1
platform:
  exec:
    recipe: k3d
`,
		},
		"local without settings gets one worker": {
			platform: hivev1.Platform{Local: &hivev1.LocalPlatform{}},
			want: `
apiVersion: v1
baseDomain: example.com
compute:
- name: worker
  replicas: 1
controlPlane:
  name: master
  replicas: 1
metadata:
  name: c1
platform:
  local:
    workers: 1
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(nil, Params{ClusterName: "c1", BaseDomain: "example.com", Platform: tt.platform})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, "\n"+string(got)); diff != "" {
				t.Error(diff)
			}
			if err := Validate(got); err != nil {
				t.Errorf("the default is not valid: %v", err)
			}
		})
	}
}

func TestRenderChangesOnlyWhatItMust(t *testing.T) {
	for _, file := range []string{
		"hive-aws.yaml", "helpernode-none.yaml", "lifeguard-aws.yaml", "rhoai-roadshow.yaml", "ci-fake-secret.yaml",
	} {
		t.Run(file, func(t *testing.T) {
			template := read(t, file)
			got, err := Render(template, Params{ClusterName: "c1", BaseDomain: "example.com", Platform: aws(`{"region":"elsewhere"}`)})
			if err != nil {
				t.Fatal(err)
			}
			want := tree(t, template)
			want["metadata"].(map[string]any)["name"] = "c1"
			want["baseDomain"] = "example.com"
			if diff := cmp.Diff(want, tree(t, got)); diff != "" {
				t.Error(diff)
			}
			if err := Validate(got); err != nil {
				t.Errorf("the result is not valid: %v", err)
			}
		})
	}
}

func TestRenderFillsIn(t *testing.T) {
	p := Params{ClusterName: "c1", BaseDomain: "example.com", Platform: aws(`{"region":"us-east-1"}`), PullSecret: `{"auths":{}}`, SSHKey: "ssh-rsa A"}

	t.Run("a template without platform gets the cluster's", func(t *testing.T) {
		got, err := Render(read(t, "ci-docs-secret.yaml"), p)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"aws": map[string]any{"region": "us-east-1"}}
		if diff := cmp.Diff(want, tree(t, got)["platform"]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("pull secret and SSH key replace the template's", func(t *testing.T) {
		got, err := Render(read(t, "hive-aws.yaml"), p)
		if err != nil {
			t.Fatal(err)
		}
		if doc := tree(t, got); doc["pullSecret"] != p.PullSecret || doc["sshKey"] != p.SSHKey {
			t.Errorf("pullSecret %q, sshKey %q", doc["pullSecret"], doc["sshKey"])
		}
	})
	t.Run("local replaces the template's platform", func(t *testing.T) {
		p := p
		p.Platform = local(3, "1h")
		p.Platform.Local.Images = []hivev1.LocalImage{"busybox:1.36"}
		got, err := Render(read(t, "hive-aws.yaml"), p)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"local": map[string]any{"workers": 3.0, "certificateDuration": "1h", "images": []any{"busybox:1.36"}}}
		if diff := cmp.Diff(want, tree(t, got)["platform"]); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRenderKeepsNumbersDigitForDigit(t *testing.T) {
	got, err := Render([]byte("platform: {aws: {size: 9007199254740993}}"), Params{ClusterName: "c1", BaseDomain: "b.c"})
	if err != nil {
		t.Fatal(err)
	}
	want := "baseDomain: b.c\nmetadata:\n  name: c1\nplatform:\n  aws:\n    size: 9007199254740993\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestRenderRefusesWhatIsNoMapping(t *testing.T) {
	for name, template := range map[string]string{
		"an empty document":       "",
		"a list":                  "- a",
		"broken YAML":             "a: [",
		"metadata that is a text": "metadata: x",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Render([]byte(template), Params{}); fault.KindOf(err) != fault.Denied {
				t.Errorf("got %v, want Denied", err)
			}
		})
	}
}

func TestFillKeepsWhatIsWritten(t *testing.T) {
	p := Params{ClusterName: "other", BaseDomain: "other.example", PullSecret: "new", SSHKey: "theirs", Platform: aws(`{"region":"elsewhere"}`)}
	got, err := FillFromSecrets([]byte("baseDomain: patched.example\nmetadata:\n  name: patched\npullSecret: old\nsshKey: mine\nunknown: {a: 1.50}\n"), p)
	if err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: v1\nbaseDomain: patched.example\nmetadata:\n  name: patched\npullSecret: new\nsshKey: mine\nunknown:\n  a: 1.5\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestVersion(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/openshift-release-dev/ocp-release:4.18.20-x86_64":                 "4.18.20",
		"quay.io/openshift-release-dev/ocp-release:4.18.20-multi":                  "4.18.20",
		"quay.io/openshift-release-dev/ocp-release:4.18.20-multi-aarch64":          "4.18.20",
		"quay.io/openshift-release-dev/ocp-release:4.19.0-rc.2-x86_64":             "4.19.0-rc.2",
		"registry.ci.openshift.org/ocp/release:4.18.0-0.nightly-2025-01-02-030405": "4.18.0-0.nightly-2025-01-02-030405",
		"registry:5000/ocp/release:4.18.20":                                        "4.18.20",
		"registry:5000/ocp/release":                                                "",
		"quay.io/ocp-release@sha256:0123456789abcdef":                              "",
		"quay.io/ocp-release:4.18.20-x86_64@sha256:0123456789abcdef":               "4.18.20",
		"quay.io/ocp-release:latest":                                               "",
		"":                                                                         "",
	} {
		if got := VersionFromImage(image); got != want {
			t.Errorf("Version(%q) = %q, want %q", image, got, want)
		}
	}
}

func TestRedact(t *testing.T) {
	raw := []byte(`
pullSecret: '{"auths":{"quay.io":{"auth":"c2VjcmV0"}}}'
platform: {vsphere: {username: admin, password: hunter2, vcenters: [{password: hunter22}]}}
`)
	text := `pulling with c2VjcmV0 from quay.io as admin: hunter2, hunter22; {"auths":{"quay.io":{"auth":"c2VjcmV0"}}}`
	want := `pulling with REDACTED from quay.io as admin: REDACTED, REDACTED; REDACTED`
	if diff := cmp.Diff(want, Redact(text, raw)); diff != "" {
		t.Error(diff)
	}
	if got := Redact(text, []byte("a: [")); got != text {
		t.Errorf("without an install-config the text changed: %q", got)
	}
}
