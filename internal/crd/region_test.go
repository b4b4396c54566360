package crd

import (
	"regexp"
	"strings"
	"testing"

	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// TestAPlatformNeedsItsRegion changes a stored object, or creates a new one.
func TestAPlatformNeedsItsRegion(t *testing.T) {
	const (
		missing = "spec.platform.aws.region: Required value: write the AWS region of the cluster, such as us-east-1"
		none    = "{aws: {userTags: {a: b}}}"
		empty   = "{aws: {region: ''}}"
		some    = "{aws: {region: a}}"
		local   = "{local: {}}"
	)
	for name, tc := range map[string]struct {
		stored, given string
		want          string
	}{
		"a new one with its region":               {"", some, ""},
		"a new one without":                       {"", none, missing},
		"a new one with an empty one":             {"", empty, missing},
		"a new one of a platform without regions": {"", local, ""},
		"on azure": {"", "{azure: {}}", "spec.platform.azure.region: Required value: write the Azure region of the cluster, such as eastus"},
		"on gcp":   {"", "{gcp: {}}", "spec.platform.gcp.region: Required value: write the GCP region of the cluster, such as us-central1"},
		"on ibmcloud": {
			"", "{ibmcloud: {}}", "spec.platform.ibmcloud.region: Required value: write the IBM Cloud region of the cluster, such as us-south",
		},
		"one stored without stays so":                        {none, none, ""},
		"one stored without, changed elsewhere":              {none, "{aws: {userTags: {a: c}}}", ""},
		"one stored without, written back by Hive's clients": {none, empty, ""},
		"one stored without gets its region":                 {none, some, ""},
		"one stored without moves to another platform":       {none, "{gcp: {}}", "spec.platform.gcp.region: Required value: write the GCP region of the cluster, such as us-central1"},
		"one that has its region loses it":                   {some, none, missing},
		"one that has its region empties it":                 {some, empty, missing},
	} {
		for _, kind := range []string{"ClusterPool", "ClusterDeployment"} {
			t.Run(kind+", "+name, func(t *testing.T) {
				want := tc.want
				if kind == "ClusterDeployment" { // one rule for all platforms, at the field that contains them
					want = regexp.MustCompile(`^spec\.platform\.(\w+\.region): Required value: `).ReplaceAllString(want, "spec.platform: Required value: $1: ")
				}
				if got := regionsOf(t, kind, tc.stored, tc.given, ""); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		}
	}
	t.Run("a cluster of a pool has the platform of the pool", func(t *testing.T) {
		if got := regionsOf(t, "ClusterDeployment", "", none, ", clusterPoolRef: {namespace: a, poolName: b}"); got != "" {
			t.Errorf("%q", got)
		}
	})
}

// regionsOf returns what the rules of a kind say about the regions of an object, of which
// another platform may be stored. more are more fields of its spec.
func regionsOf(t *testing.T, kind, stored, given, more string) string {
	t.Helper()
	s, err := LoadSchema(kind)
	if err != nil {
		t.Fatal(err)
	}
	object := func(platform string) map[string]any {
		var o map[string]any
		text := "{metadata: {name: a, namespace: b}, spec: {platform: " + platform + ", installed: false, provisioning: {}, clusterName: a, baseDomain: b.c" + more + "}}"
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	var before any
	if stored != "" {
		before = object(stored)
	}
	faults, _ := s.rules.Validate(t.Context(), nil, s.shape, object(given), before, celconfig.RuntimeCELCostBudget)
	var out []string
	for _, f := range faults {
		if strings.HasSuffix(f.Field, ".region") || strings.Contains(f.Detail, ".region: ") {
			out = append(out, f.Error())
		}
	}
	return strings.Join(out, "; ")
}
