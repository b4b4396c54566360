package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

const pull = `{"auths":{"quay.io":{"auth":"dXNlcjpodW50ZXIyLWF1dGg="}}}`

// files returns the documents in a folder of testdata.
func files(tb testing.TB, folder string) []string {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(found) == 0 {
		tb.Fatalf("no files in %s: %v", folder, err)
	}
	for i, name := range found {
		found[i] = strings.TrimPrefix(name, "testdata/")
	}
	return found
}

// clusterOf returns the platform that a document names; AWS if it names none.
func clusterOf(t *testing.T, raw []byte) hivev1.Platform {
	t.Helper()
	doc := tree(t, raw)
	platform, _ := doc["platform"].(map[string]any)
	out := map[string]any{}
	for name, section := range platform {
		if section != nil {
			settings, _ := section.(map[string]any)
			out[name] = map[string]any{"region": settings["region"]}
		}
	}
	if len(out) == 0 {
		return aws(`{"region":"us-east-1"}`)
	}
	written, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var p hivev1.Platform
	if err := yaml.Unmarshal(written, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// refusals are the samples that cannot be installed.
var refusals = map[string]string{
	"samples/assisted-install-customization.yaml": `platform: is a string, want a mapping with one key, such as aws or local; ` +
		`apiVersion: "extensions.hive.openshift.io/v1beta1" is not the value for an install-config: set it to v1`,
	"samples/hive-cluster-install-apis.yaml": `apiVersion: "hive.openshift.io/v1" is not the value for an install-config: set it to v1`,
}

func TestDocumentsFromTheFieldAreTakenAsTheyAre(t *testing.T) {
	for _, file := range append(files(t, "samples"), files(t, "written")...) {
		t.Run(file, func(t *testing.T) {
			raw := read(t, file)
			cluster := clusterOf(t, raw)
			stored, err := Render(raw, Params{ClusterName: "c1", BaseDomain: "example.com", Platform: cluster})
			if err != nil {
				t.Fatal(err)
			}
			got, err := FillFromSecrets(stored, Params{Platform: cluster, PullSecret: pull})
			if err != nil {
				t.Fatal(err)
			}
			if refusals[file] == "" {
				wantText(t, text(Validate(stored)), "")
			}
			wantText(t, text(ValidateComplete(got, cluster)), refusals[file])

			want := tree(t, raw)
			want["metadata"].(map[string]any)["name"] = "c1"
			want["baseDomain"], want["pullSecret"] = "example.com", pull
			if want["platform"] == nil {
				want["platform"] = map[string]any{"aws": map[string]any{"region": "us-east-1"}}
			}
			if diff := cmp.Diff(want, tree(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A customization's patches are tested on the document that a pool stores, before there is a pull
// secret.
func TestDocumentsFromTheFieldCanBePatched(t *testing.T) {
	for _, file := range append(files(t, "samples"), files(t, "written")...) {
		if strings.HasPrefix(refusals[file], "platform") {
			continue
		}
		stored, err := Render(read(t, file), Params{ClusterName: "c1", BaseDomain: "example.com", Platform: aws(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ApplyPatches(stored, patches(t, `[{op: replace, path: metadata/name, value: foo}]`)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// The samples contain no real secrets; our own all contain hunter2.
func TestRedactLeavesNoSecretOfTheDocuments(t *testing.T) {
	for _, file := range files(t, "written") {
		raw, err := FillFromSecrets(read(t, file), Params{PullSecret: pull})
		if err != nil {
			t.Fatal(err)
		}
		redacted := Redact(string(raw)+"\nuser:hunter2-auth 12345678", raw)
		for _, secret := range []string{"hunter2", "dXNlcjpodW50ZXIyLWF1dGg"} {
			if strings.Contains(redacted, secret) {
				t.Errorf("%s: %s is left:\n%s", file, secret, redacted)
			}
		}
		if file == "written/baremetal-dual.yaml" && strings.Contains(redacted, "12345678") {
			t.Error("a password that is a number is left")
		}
	}
}

func TestGenerated(t *testing.T) {
	for name, tt := range generated {
		t.Run(name, func(t *testing.T) {
			p := params(t, tt.platform, tt.credentials)
			got, err := Render(nil, p)
			if err != nil {
				t.Fatal(err)
			}
			wantText(t, text(Validate(got)), "")
			wantText(t, text(ValidateComplete(got, p.Platform)), tt.missing)
			golden(t, filepath.Join("testdata", "generated", name+".yaml"), got)

			t.Run("in two steps, as a pool does", func(t *testing.T) {
				stored, err := Render(nil, Params{ClusterName: p.ClusterName, BaseDomain: p.BaseDomain, Platform: p.Platform})
				if err != nil {
					t.Fatal(err)
				}
				wantText(t, text(Validate(stored)), "")
				if strings.Contains(string(stored), "hunter2") {
					t.Error("a secret is stored")
				}
				filled, err := FillFromSecrets(stored, p)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(got), string(filled)); diff != "" {
					t.Error(diff)
				}
			})
			t.Run("again, it stays", func(t *testing.T) {
				again, err := Render(got, p)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(got), string(again)); diff != "" {
					t.Error(diff)
				}
			})
			if redacted := Redact(string(got), got); strings.Contains(redacted, "hunter2") {
				t.Errorf("a secret is left:\n%s", redacted)
			}
		})
	}
}

var accounts = map[string]string{"username": "admin@vsphere.local", "password": "hunter2"}

// generated contains ClusterDeployments' platforms, each with what is missing from its
// install-config.
var generated = map[string]struct {
	platform    string
	credentials map[string]string
	missing     string
}{
	"aws":         {platform: `aws: {region: us-east-1, userTags: {team: qe}, credentialsSecretRef: {name: c}}`},
	"aws-private": {platform: `aws: {region: us-east-1, privateLink: {enabled: true}, credentialsSecretRef: {name: c}}`},
	"azure":       {platform: `azure: {region: centralus, baseDomainResourceGroupName: dns, cloudName: AzurePublicCloud, credentialsSecretRef: {name: c}}`},
	"gcp": {
		platform:    `gcp: {region: us-east1, credentialsSecretRef: {name: c}, discardLocalSsdOnHibernate: true}`,
		credentials: map[string]string{"osServiceAccount.json": `{"type":"service_account","project_id":"lab-1","private_key":"hunter2"}`},
	},
	"ibmcloud":  {platform: `ibmcloud: {region: us-south, credentialsSecretRef: {name: c}}`},
	"openstack": {platform: `openstack: {cloud: lab, trunkSupport: true, credentialsSecretRef: {name: c}, externalNetwork: public, apiFloatingIP: 128.0.0.1, apiVIPs: [10.0.0.5], ingressVIPs: [10.0.0.7]}`},
	"vsphere-flat": {
		platform:    `vsphere: {vCenter: v.lab, datacenter: dc1, defaultDatastore: d1, folder: /dc1/vm/f, cluster: c1, network: VM Network, credentialsSecretRef: {name: c}, certificatesSecretRef: {name: d}}`,
		credentials: accounts,
	},
	"vsphere-zones": {
		platform: `vsphere: {credentialsSecretRef: {name: c}, certificatesSecretRef: {name: d}, vCenter: old.lab, infrastructure: {` +
			`vcenters: [{server: one.lab, port: 443, datacenters: [dc1]}, {server: two.lab, datacenters: [dc2]}], failureDomains: [` +
			`{name: a, region: r1, zone: z1, server: one.lab, topology: {datacenter: dc1, computeCluster: /dc1/host/c, datastore: /dc1/datastore/d, networks: [VM Network]}},` +
			`{name: b, region: r2, zone: z1, server: two.lab, topology: {datacenter: dc2, computeCluster: /dc2/host/c, datastore: /dc2/datastore/d, networks: [VM Network]}}]}}`,
		credentials: map[string]string{
			"username": "admin@vsphere.local", "password": "hunter2",
			"vCenters": `[{vCenter: TWO.lab, username: two, password: hunter2-two}]`,
		},
	},
	"nutanix": {
		platform: `nutanix: {credentialsSecretRef: {name: c}, prismCentral: {address: pc.lab, port: 9440}, failureDomains: [` +
			`{name: a, prismElement: {uuid: u1, name: pe, endpoint: {address: pe.lab, port: 9440}}, subnetUUIDs: [s1]},` +
			`{name: b, prismElement: {uuid: u1, name: pe, endpoint: {address: pe.lab, port: 9440}}, subnetUUIDs: [s2]}]}`,
		credentials: accounts,
	},
	"none":  {platform: `none: {}`},
	"agent": {platform: `agentBareMetal: {agentSelector: {matchLabels: {bla: aaa}}}`},
	"local": {platform: `local: {workers: 2, certificateDuration: 1h}`},
	"baremetal": {
		platform: `baremetal: {libvirtSSHPrivateKeySecretRef: {name: k}}`,
		missing:  "platform.baremetal.hosts: is missing, and no field of a ClusterDeployment contains it: set it in an install-config Secret",
	},
	"gcp-no-secret": {
		platform: `gcp: {region: us-east1, credentialsSecretRef: {name: c}}`,
		missing: "platform.gcp.projectID: is missing: set it in the install-config Secret, or set project_id in key osServiceAccount.json of the Secret " +
			"that spec.platform.gcp.credentialsSecretRef names",
	},
	"vsphere-nothing": {
		platform: `vsphere: {}`,
		missing:  "platform.vsphere.vcenters: is missing: set it in the install-config Secret, or set spec.platform.vsphere.infrastructure, or the older vCenter",
	},
}

func params(t *testing.T, platform string, credentials map[string]string) Params {
	t.Helper()
	p := Params{ClusterName: "c1", BaseDomain: "example.com", PullSecret: pull, SSHKey: "ssh-ed25519 AAAAC3Nz me", Credentials: map[string][]byte{}}
	if err := yaml.UnmarshalStrict([]byte(platform), &p.Platform); err != nil {
		t.Fatal(err)
	}
	for key, value := range credentials {
		p.Credentials[key] = []byte(value)
	}
	return p
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, string(got), string(want))
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
