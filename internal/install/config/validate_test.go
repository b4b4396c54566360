package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/fault"
)

// valid, with one line replaced in each case.
const valid = `
baseDomain: example.com
metadata: {name: c1}
platform: {aws: {region: us-east-1}}
controlPlane: {name: master, replicas: 3}
compute: [{name: worker, replicas: 0}]
`

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		old, new string
		want     string
	}{
		"a valid document":                  {},
		"replicas may be left out":          {old: ", replicas: 3"},
		"machines may be left out":          {old: "compute: [{name: worker, replicas: 0}]"},
		"a name that is no DNS label":       {"c1", "My_Cluster", `metadata.name: "My_Cluster" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends`},
		"a name that is too long":           {"c1", strings.Repeat("x", 64), `metadata.name: "` + strings.Repeat("x", 64) + `" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends`},
		"a name that is a number":           {"c1", "12", "metadata.name: is a number, want a string: put it in quotes"},
		"no name":                           {"name: c1", "", "metadata.name: is missing: set it"},
		"no metadata":                       {"metadata: {name: c1}", "", "metadata: is empty, want a mapping with the key name"},
		"no base domain":                    {"baseDomain: example.com", "", "baseDomain: is missing: set it"},
		"a variable in the domain":          {"example.com", "x.$DOMAIN", `baseDomain: "x.$DOMAIN" is not a DNS domain: use lower-case labels with dots between them, such as ci.example.com`},
		"no platform":                       {"platform: {aws: {region: us-east-1}}", "", "platform: is empty, want a mapping with one key, such as aws or local"},
		"two platforms":                     {"{aws:", "{gcp: {}, aws:", `platform: has 2 keys ["aws" "gcp"], want exactly one`},
		"an empty platform":                 {"{region: us-east-1}", "", "platform.aws: is empty, want a mapping: use {} to set nothing"},
		"a negative count":                  {"replicas: 0", "replicas: -1", "compute[0].replicas: -1 is not a whole number, 0 or more"},
		"half a machine":                    {"replicas: 3", "replicas: 2.5", "controlPlane.replicas: 2.5 is not a whole number, 0 or more"},
		"a count in quotes":                 {"replicas: 3", "replicas: '3'", "controlPlane.replicas: is a string, want a whole number, 0 or more"},
		"compute that is no list":           {"[{name: worker, replicas: 0}]", "{}", "compute: is a mapping, want a list"},
		"a machine group that is text":      {"{name: master, replicas: 3}", "x", "controlPlane: is a string, want a mapping"},
		"a key written twice":               {"metadata:", "baseDomain: b.c\nmetadata:", `install-config is not valid YAML: line 3: key "baseDomain" already set in map`},
		"a template left over":              {"{name: c1}", "{{name}: hunter2}", "install-config is not valid YAML: it cannot be parsed"},
		"all problems at once":              {"metadata: {name: c1}\nplatform: {aws: {region: us-east-1}}", "", "metadata: is empty, want a mapping with the key name; platform: is empty, want a mapping with one key, such as aws or local"},
		"a dot at the end of the domain":    {old: "example.com", new: "example.com."},
		"a null beside the platform":        {old: "{aws:", new: "{gcp: null, aws:"},
		"a platform that is misspelt":       {"{aws:", "{amazon:", "platform.amazon: is not a platform: use alibabacloud, aws, azure, baremetal, capi, exec, external, gcp, ibmcloud, libvirt, local, none, nutanix, openstack, ovirt, powervc, powervs or vsphere"},
		"capitals, as installers read them": {old: "{aws:", new: "{AWS:"},
		"a single node with workers":        {old: "replicas: 3}\ncompute: [{name: worker, replicas: 0}]", new: "replicas: 1}\ncompute: [{name: worker, replicas: 2}]"},
		"no control plane":                  {"replicas: 3", "replicas: 0", "controlPlane.replicas: 0 is too few: use 3, or 1 for a cluster of a single node"},
		"a control plane of another name":   {"name: master", "name: control", `controlPlane.name: "control" is not allowed: use master`},
		"workers of another name":           {"name: worker", "name: infra", `compute[0].name: "infra" is not allowed: use worker, or edge for machines in AWS Local Zones; add other machines after the install`},
		"two groups of one name":            {"replicas: 0}", "replicas: 0}, {name: worker}", `compute[1].name: "worker" is already in the list: merge the two entries`},
		"an unknown architecture":           {"name: master", "name: master, architecture: x86_64", `controlPlane.architecture: "x86_64" is not allowed: use amd64, arm64, ppc64le or s390x`},
		"hyperthreading that is true":       {"name: worker", "name: worker, hyperthreading: On!", `compute[0].hyperthreading: "On!" is not allowed: use Enabled or Disabled`},
		"an unknown way to publish":         {"metadata:", "publish: internal\nmetadata:", `publish: "internal" is not allowed: use External, Internal or Mixed`},
		"fips in quotes":                    {"metadata:", "fips: 'yes'\nmetadata:", "fips: is a string, want true or false, without quotes"},
		"tags that are a list":              {"{region: us-east-1}", "{region: us-east-1, userTags: [a]}", "platform.aws.userTags: is a list, want a mapping of strings"},
		"tags that are numbers":             {old: "{region: us-east-1}", new: "{region: us-east-1, userTags: {a: 1, b: true}}"},
		"a region that is a list":           {"us-east-1", "[us-east-1]", "platform.aws.region: is a list, want a string"},
		"an unknown key":                    {old: "{region: us-east-1}", new: "{region: us-east-1, novel: [1]}"},
		"nulls":                             {old: "metadata:", new: "networking: null\nproxy: null\nsshKey: null\nfips: null\nimageContentSources: null\nmetadata:"},
		"mirrors under two names":           {"metadata:", "imageContentSources: [{source: a}]\nimageDigestSources: [{source: a}]\nmetadata:", "imageContentSources: is the older name of imageDigestSources, and both are set: remove imageContentSources"},
		"a private key for SSH":             {"metadata:", "sshKey: '-----BEGIN OPENSSH PRIVATE KEY----- hunter2'\nmetadata:", "sshKey: is a private key: use the public key, as in a file that ends in .pub, and create a new key pair"},
		"a bundle that is a file name":      {"metadata:", "additionalTrustBundle: /etc/pki/hunter2.pem\nmetadata:", "additionalTrustBundle: is not a certificate in PEM: use one or more that start with -----BEGIN CERTIFICATE-----"},
		"a bundle with a private key":       {"metadata:", "additionalTrustBundle: '-----BEGIN RSA PRIVATE KEY----- hunter2'\nmetadata:", "additionalTrustBundle: contains a private key: use certificates only, and create a new key pair"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(valid, tt.old) {
				t.Fatalf("%q is not there", tt.old)
			}
			err := Validate([]byte(strings.Replace(valid, tt.old, tt.new, 1)))
			if got := text(err); got != tt.want {
				t.Error(cmp.Diff(tt.want, got))
			}
			if err != nil && fault.KindOf(err) != fault.Denied {
				t.Errorf("got a fault that is %s, want denied", fault.KindOf(err))
			}
		})
	}
}

func TestValidateRealFiles(t *testing.T) {
	for file, want := range map[string]string{
		"hive-aws.yaml":        "",
		"helpernode-none.yaml": "",
		"ci-fake-secret.yaml":  "",
		"ci-docs-secret.yaml":  "baseDomain: is missing: set it; platform: is empty, want a mapping with one key, such as aws or local",
		"assisted-elided.yaml": "platform: is a string, want a mapping with one key, such as aws or local",
		"rhoai-roadshow.yaml":  `baseDomain: "roadshow.$BASE_DOMAIN" is not a DNS domain: use lower-case labels with dots between them, such as ci.example.com`,
		"lifeguard-aws.yaml":   `metadata.name: "NAME" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends; baseDomain: "DOMAIN" is not a DNS domain: use lower-case labels with dots between them, such as ci.example.com`,
	} {
		t.Run(file, func(t *testing.T) {
			if got := text(Validate(read(t, file))); got != want {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
