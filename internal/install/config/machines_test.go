package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/fault"
)

func TestTheMachinesOfAnInstallConfig(t *testing.T) {
	for name, c := range map[string]struct{ text, platform, want string }{
		"nothing":      {"baseDomain: example.com", "aws", "3 of - and 3 of -"},
		"empty groups": {"controlPlane: null\ncompute: []", "aws", "3 of - and 3 of -"},
		"replicas":     {"controlPlane: {replicas: 1}\ncompute: [{name: worker, replicas: 0}]", "aws", "1 of - and 0 of -"},
		"types": {
			"controlPlane: {platform: {aws: {type: m6i.2xlarge}}}\ncompute: [{platform: {aws: {type: m5.xlarge}}, replicas: 2}, {name: edge, replicas: 1}]",
			"aws", "3 of m6i.2xlarge and 2 of m5.xlarge and 1 of -",
		},
		"a default type": {
			"platform: {azure: {defaultMachinePlatform: {type: Standard_D16s_v3}}}\ncontrolPlane: {platform: {azure: {type: Standard_D8s_v3}}}\ncompute: [{replicas: 3}]",
			"azure", "3 of Standard_D8s_v3 and 3 of Standard_D16s_v3",
		},
		"a default type without groups": {"platform: {gcp: {defaultMachinePlatform: {type: n2-standard-8}}}", "gcp", "3 of n2-standard-8 and 3 of n2-standard-8"},
		"types of another platform":     {"controlPlane: {platform: {gcp: {type: n2-standard-8}}}", "aws", "3 of - and 3 of -"},
		"empty sections":                {"controlPlane: {platform: {}}\ncompute: [{platform: {aws: {}}}]\nplatform: {aws: null}", "aws", "3 of - and 3 of -"},

		"replicas that are text":       {"controlPlane: {replicas: 'hunter2'}", "aws", "denied: controlPlane.replicas: is a string, want a whole number, 0 or more"},
		"negative replicas":            {"compute: [{replicas: -1}]", "aws", "denied: compute[0].replicas: -1 is not a whole number, 0 or more"},
		"half a machine":               {"compute: [{}, {replicas: 1.5}]", "aws", "denied: compute[1].replicas: 1.5 is not a whole number, 0 or more"},
		"a control plane that is text": {"controlPlane: hunter2", "aws", "denied: controlPlane: is a string, want a mapping"},
		"compute that is a mapping":    {"compute: {name: hunter2}", "aws", "denied: compute: is a mapping, want a list"},
		"a group that is text":         {"compute: [hunter2]", "aws", "denied: compute[0]: is a string, want a mapping"},
		"a type that is a number":      {"controlPlane: {platform: {aws: {type: 4}}}", "aws", "denied: controlPlane.platform.aws.type: is a number, want a string"},
		"a type that is a password":    {"compute: [{platform: {aws: {type: hunter2}}}]", "aws", "denied: compute[0].platform.aws.type: is not the name of an instance type: write one such as m6i.xlarge"},
		"a default that is a secret":   {"platform: {aws: {defaultMachinePlatform: {type: 'hunter2: x'}}}", "aws", "denied: platform.aws.defaultMachinePlatform.type: is not the name of an instance type: write one such as m6i.xlarge"},
		"two mistakes":                 {"controlPlane: {replicas: [1]}\ncompute: [{replicas: x}]", "aws", "denied: controlPlane.replicas: is a list, want a whole number, 0 or more; compute[0].replicas: is a string, want a whole number, 0 or more"},
		"no YAML":                      {"pullSecret: {hunter2", "aws", "denied: it is not a YAML mapping"},
		"a list":                       {"[hunter2]", "aws", "denied: it is not a YAML mapping"},
		"a key twice":                  {"hunter2: 1\nhunter2: 2", "aws", "denied: it is not a YAML mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			got := describeMachines(ListMachines([]byte(c.text), c.platform))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(got, "hunter2") {
				t.Error("it quotes a secret")
			}
		})
	}
}

// describeMachines returns machines, or why there are none, in a line.
func describeMachines(m Machines, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: %v", fault.KindOf(err), err)
	}
	var words []string
	for _, g := range append([]MachineGroup{m.ControlPlane}, m.Compute...) {
		if g.Type == "" {
			g.Type = "-"
		}
		words = append(words, fmt.Sprintf("%d of %s", g.Replicas, g.Type))
	}
	return strings.Join(words, " and ")
}

func TestInstanceTypesOfAllCloudsAreRecognized(t *testing.T) {
	for _, name := range []string{
		"m6i.xlarge", "t3.2xlarge", "g4dn.xlarge", "c5.metal", "u-6tb1.56xlarge", "mac2-m2.metal", "Standard_D4s_v3", "Standard_NC4as_T4_v3",
		"Standard_M8-2ms", "n2-standard-4", "custom-4-16384", "n2-custom-4-16384-ext", "a2-highgpu-1g",
	} {
		if !instanceTypePattern.MatchString(name) {
			t.Errorf("%s is not recognized", name)
		}
	}
}

// The machines are those of the rendered document, whose platform may be the pool's.
func TestTheMachinesOfARenderedTemplate(t *testing.T) {
	p := Params{ClusterName: "a", BaseDomain: "example.com", Platform: aws(`{"region":"us-east-1","defaultMachinePlatform":{"type":"m7i.xlarge"}}`)}
	for template, want := range map[string]string{
		"":                             "3 of m7i.xlarge and 3 of m7i.xlarge",
		"controlPlane: {replicas: 1}":  "1 of m7i.xlarge and 3 of m7i.xlarge",
		"platform: {aws: {region: a}}": "3 of - and 3 of -",
	} {
		var raw []byte
		if template != "" {
			raw = []byte(template)
		}
		rendered, err := Render(raw, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := describeMachines(ListMachines(rendered, "aws")); got != want {
			t.Errorf("%q has %s, want %s", template, got, want)
		}
	}
}
