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
		"a valid document":             {},
		"replicas may be left out":     {old: ", replicas: 3"},
		"machines may be left out":     {old: "compute: [{name: worker, replicas: 0}]"},
		"a name that is no DNS label":  {"c1", "My_Cluster", `metadata.name: "My_Cluster" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends`},
		"a name that is too long":      {"c1", strings.Repeat("x", 64), `metadata.name: "` + strings.Repeat("x", 64) + `" is not a DNS label: use at most 63 lower-case letters, digits and -, with a letter or digit at both ends`},
		"a name that is a number":      {"c1", "12", "metadata.name: is a number, want a text: put it in quotes"},
		"no name":                      {"name: c1", "", "metadata.name: is missing: set it"},
		"no metadata":                  {"metadata: {name: c1}", "", "metadata: is empty, want a mapping with the key name"},
		"no base domain":               {"baseDomain: example.com", "", "baseDomain: is missing: set it"},
		"a variable in the domain":     {"example.com", "x.$DOMAIN", `baseDomain: "x.$DOMAIN" is not a DNS domain: use lower-case labels with dots between them, such as ci.example.com`},
		"no platform":                  {"platform: {aws: {region: us-east-1}}", "", "platform: is empty, want a mapping with one key, such as aws or local"},
		"two platforms":                {"{aws:", "{gcp: {}, aws:", `platform: has 2 keys ["aws" "gcp"], want exactly one`},
		"an empty platform":            {"{region: us-east-1}", "", "platform.aws: is empty, want a mapping: write {} if there is nothing to set"},
		"a negative count":             {"replicas: 0", "replicas: -1", "compute[0].replicas: -1 is not a whole number, 0 or more"},
		"half a machine":               {"replicas: 3", "replicas: 2.5", "controlPlane.replicas: 2.5 is not a whole number, 0 or more"},
		"a count in quotes":            {"replicas: 3", "replicas: '3'", "controlPlane.replicas: is a text, want a whole number, 0 or more"},
		"compute that is no list":      {"[{name: worker, replicas: 0}]", "{}", "compute: is a mapping, want a list"},
		"a machine group that is text": {"{name: master, replicas: 3}", "x", "controlPlane: is a text, want a mapping"},
		"a key written twice":          {"metadata:", "baseDomain: b.c\nmetadata:", `install-config is not valid YAML: line 3: key "baseDomain" already set in map`},
		"a template left over":         {"{name: c1}", "{{name}: hunter2}", "install-config is not valid YAML: nothing in it can be read"},
		"all problems at once":         {"metadata: {name: c1}\nplatform: {aws: {region: us-east-1}}", "", "metadata: is empty, want a mapping with the key name; platform: is empty, want a mapping with one key, such as aws or local"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate([]byte(strings.Replace(valid, tt.old, tt.new, 1)))
			if got := text(err); got != tt.want {
				t.Error(cmp.Diff(tt.want, got))
			}
			if err != nil && fault.Of(err) != fault.Denied {
				t.Errorf("got a fault that is %s, want denied", fault.Of(err))
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
		"assisted-elided.yaml": "platform: is a text, want a mapping with one key, such as aws or local",
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
