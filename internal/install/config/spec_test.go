package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// spec returns the spec of a cluster that a pool creates.
func spec(t *testing.T) hivev1.ClusterDeploymentSpec {
	t.Helper()
	var s hivev1.ClusterDeploymentSpec
	err := yaml.UnmarshalStrict([]byte(`
clusterName: foo
baseDomain: lab.example.com
platform: {vsphere: {vCenter: v, credentialsSecretRef: {name: creds}}}
pullSecretRef: {name: pull}
clusterPoolRef: {namespace: ns, poolName: mypool}
powerState: Hibernating
hibernateAfter: 8h
provisioning:
  installConfigSecretRef: {name: foo-install-config}
  imageSetRef: {name: v4}
  installerEnv: [{name: TOKEN, value: hunter2}]
`), &s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPatchSpec(t *testing.T) {
	for name, tt := range map[string]struct {
		patches string
		change  func(*hivev1.ClusterDeploymentSpec)
	}{
		"nothing":           {`[]`, func(*hivev1.ClusterDeploymentSpec) {}},
		"a limit":           {`[{op: add, path: installAttemptsLimit, value: 2}]`, func(s *hivev1.ClusterDeploymentSpec) { s.InstallAttemptsLimit = new(int32(2)) }},
		"a duration":        {`[{op: replace, path: /hibernateAfter, value: 90m}]`, func(s *hivev1.ClusterDeploymentSpec) { s.HibernateAfter = new(hivev1.Duration("90m")) }},
		"a field that goes": {`[{op: remove, path: hibernateAfter}]`, func(s *hivev1.ClusterDeploymentSpec) { s.HibernateAfter = nil }},
		"a list": {
			`[{op: add, path: ingress, value: [{name: default}]}]`,
			func(s *hivev1.ClusterDeploymentSpec) {
				s.Ingress = []runtime.RawExtension{{Raw: []byte(`{"name":"default"}`)}}
			},
		},
		"an owned field there and back": {`[{op: move, from: clusterName, path: x}, {op: move, from: x, path: clusterName}]`, func(*hivev1.ClusterDeploymentSpec) {}},
	} {
		t.Run(name, func(t *testing.T) {
			in := spec(t)
			got, err := PatchSpec(in, patches(t, tt.patches))
			if err != nil {
				t.Fatal(err)
			}
			want := spec(t)
			if diff := cmp.Diff(want, in); diff != "" {
				t.Errorf("the argument has changed: %s", diff)
			}
			tt.change(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatchSpecDenies(t *testing.T) {
	for name, tt := range map[string]struct{ patches, want string }{
		"an unset field":       {`[{op: replace, path: installAttemptsLimit, value: 2}]`, `clusterDeploymentSpecPatches[0]: replace /installAttemptsLimit: no such path: the document has no key "installAttemptsLimit": correct the path, or use add`},
		"an unknown field":     {`[{op: add, path: hibernateafter, value: 1h}]`, `with clusterDeploymentSpecPatches applied: unknown field "hibernateafter": correct the spelling, or remove the patch`},
		"an unknown one below": {`[{op: add, path: provisioning/foo, value: hunter2}]`, `with clusterDeploymentSpecPatches applied: unknown field "provisioning.foo": correct the spelling, or remove the patch`},
		"a text for a number":  {`[{op: add, path: installAttemptsLimit, value: hunter2}]`, `with clusterDeploymentSpecPatches applied: installAttemptsLimit: cannot be of type string, want int32`},
		"half an attempt":      {`[{op: add, path: installAttemptsLimit, value: 1.5}]`, `with clusterDeploymentSpecPatches applied: installAttemptsLimit: cannot be of type number, want int32`},
		"negative attempts":    {`[{op: add, path: installAttemptsLimit, value: -1}]`, `with clusterDeploymentSpecPatches applied: installAttemptsLimit: is negative: use 0 or more`},
		"a duration in weeks":  {`[{op: add, path: powerstateTransitionToRunningTimeout, value: 1w}]`, `with clusterDeploymentSpecPatches applied: powerstateTransitionToRunningTimeout: is not a duration of at most ten years: write hours, minutes and seconds, such as 8h or 1h30m`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := PatchSpec(spec(t), patches(t, tt.patches))
			if diff := cmp.Diff(tt.want, text(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(hivev1.ClusterDeploymentSpec{}, got); fault.KindOf(err) != fault.Denied || diff != "" {
				t.Errorf("a fault that is %s, and %s", fault.KindOf(err), diff)
			}
		})
	}
}

func TestOwnedFieldsCannotBePatched(t *testing.T) {
	for path, texts := range map[string][]string{
		"clusterName":                         {`[{op: replace, path: clusterName, value: bar}]`, `[{op: remove, path: clusterName}]`},
		"baseDomain":                          {`[{op: replace, path: /baseDomain, value: b.c}]`},
		"platform":                            {`[{op: replace, path: /platform/vsphere/vCenter, value: w}]`, `[{op: add, path: platform/local, value: {}}]`},
		"clusterPoolRef":                      {`[{op: add, path: clusterPoolRef/claimName, value: mine}]`, `[{op: remove, path: clusterPoolRef}]`},
		"installed":                           {`[{op: add, path: installed, value: true}]`},
		"clusterMetadata":                     {`[{op: add, path: clusterMetadata, value: {infraID: x, clusterID: z}}]`},
		"powerState":                          {`[{op: replace, path: powerState, value: Running}]`, `[{op: remove, path: powerState}]`},
		"pullSecretRef":                       {`[{op: replace, path: pullSecretRef/name, value: other}]`},
		"provisioning.installConfigSecretRef": {`[{op: replace, path: provisioning/installConfigSecretRef/name, value: other}]`, `[{op: remove, path: provisioning}]`},
		"provisioning.imageSetRef":            {`[{op: remove, path: provisioning/imageSetRef}]`},
		"provisioning.releaseImage":           {`[{op: add, path: provisioning/releaseImage, value: quay.io/x}]`},
		"provisioning.installerImageOverride": {`[{op: add, path: provisioning/installerImageOverride, value: quay.io/x}]`},
		"provisioning.installerEnv": {
			`[{op: add, path: provisioning/installerEnv/-, value: {name: A, value: b}}]`,
			`[{op: remove, path: provisioning/installerEnv}]`,
			`[{op: add, path: provisioning/installerEnv/0/valueFrom, value: {secretKeyRef: {name: s, key: k}}}]`,
		},
		"provisioning.manifestsConfigMapRef":     {`[{op: add, path: provisioning/manifestsConfigMapRef, value: {name: m}}]`},
		"provisioning.manifestsSecretRef":        {`[{op: add, path: provisioning/manifestsSecretRef, value: {name: m}}]`},
		"provisioning.sshPrivateKeySecretRef":    {`[{op: add, path: provisioning/sshPrivateKeySecretRef, value: {name: k}}]`},
		"provisioning.customizationRef":          {`[{op: add, path: provisioning/customizationRef, value: {name: c}}]`},
		"provisioning":                           {`[{op: add, path: provisioning/sshKnownHosts, value: [h]}]`},
		"clusterInstallRef":                      {`[{op: add, path: clusterInstallRef, value: {group: g, version: v1, kind: K, name: x}}]`},
		"boundServiceAccountSigningKeySecretRef": {`[{op: add, path: boundServiceAccountSigningKeySecretRef, value: {name: k}}]`},
	} {
		for _, text := range texts {
			_, err := PatchSpec(spec(t), patches(t, text))
			want := "clusterDeploymentSpecPatches: " + path + " cannot be patched: "
			if err == nil || fault.KindOf(err) != fault.Denied || !strings.HasPrefix(err.Error(), want) || strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// A field that is added to the API is owned, or listed here.
func TestEachFieldOfASpecIsOwnedOrPatchable(t *testing.T) {
	patchable := []string{
		"preserveOnDelete", "hibernateAfter", "powerstateTransitionToRunningTimeout", "powerstateTransitionToHibernatingTimeout", "installAttemptsLimit",
		"controlPlaneConfig", "ingress", "certificateBundles", "manageDNS", "machineManagement",
	}
	owned := map[string]bool{}
	for _, field := range ownedFields {
		if len(field.path) == 1 {
			owned[field.path[0]] = true
		}
	}
	for f := range reflect.TypeFor[hivev1.ClusterDeploymentSpec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if owned[name] == slices.Contains(patchable, name) {
			t.Errorf("%s: owned: %t, want the opposite", name, owned[name])
		}
	}
}
