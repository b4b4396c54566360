package adopt

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func clusterWith(t *testing.T, platform, namespace, clusterID, infraID string) hivev1.ClusterDeployment {
	t.Helper()
	p, _, err := platformFlags{platform: platform}.build(infraID)
	if err != nil {
		t.Fatal(err)
	}
	cd := newCluster(clusterFacts{name: "lab", namespace: namespace, clusterID: clusterID, infraID: infraID, platform: p})
	return *cd
}

func TestOtherManagersOfACluster(t *testing.T) {
	installed := hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "pet"}, Status: hivev1.ClusterDeploymentStatus{APIURL: "https://api.lab:6443/"}}
	for name, c := range map[string]struct {
		platform string
		other    hivev1.ClusterDeployment
		want     string
	}{
		"the ID of the cluster":                         {"none", clusterWith(t, "aws", "b", "id", "y"), "cluster ID id"},
		"the infraID on the same platform":              {"aws", clusterWith(t, "aws", "b", "other", "x"), "infraID x"},
		"not the infraID on another one":                {"aws", clusterWith(t, "gcp", "b", "other", "x"), ""},
		"not an infraID that marks no machines":         {"none", clusterWith(t, "none", "b", "other", "x"), ""},
		"not a Cluster of that name in a namespace":     {"capi", clusterWith(t, "capi", "b", "other", "x"), ""},
		"the API server of one that hotspare installed": {"none", installed, "API server api.lab:6443"},
		"not itself": {"aws", clusterWith(t, "aws", "a", "id", "x"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			mine := clusterWith(t, c.platform, "a", "id", "x")
			other, how := findOtherManager([]hivev1.ClusterDeployment{mine, c.other}, &mine, "https://API.lab:6443")
			if how != c.want || (other != nil) != (c.want != "") {
				t.Errorf("recognized by %q, want %q", how, c.want)
			}
		})
	}
}

func TestPlatforms(t *testing.T) {
	for name, c := range map[string]struct {
		flags          platformFlags
		want, metadata string
	}{
		"aws":     {platformFlags{platform: "aws", region: "r", credentials: "s"}, `{"aws":{"credentialsSecretRef":{"name":"s"},"region":"r"}}`, ""},
		"azure":   {platformFlags{platform: "azure", credentials: "s"}, `{"azure":{"credentialsSecretRef":{"name":"s"}}}`, `{"azure":{"resourceGroupName":"x-rg"}}`},
		"a group": {platformFlags{platform: "azure", credentials: "s", resourceGroup: "g"}, `{"azure":{"credentialsSecretRef":{"name":"s"}}}`, `{"azure":{"resourceGroupName":"g"}}`},
		"openstack": {
			platformFlags{platform: "openstack", cloud: "c", credentials: "s", certificates: "ca"},
			`{"openstack":{"certificatesSecretRef":{"name":"ca"},"cloud":"c","credentialsSecretRef":{"name":"s"}}}`, "",
		},
		"vsphere": {platformFlags{platform: "vsphere", vcenter: "v", credentials: "s"}, `{"vsphere":{"credentialsSecretRef":{"name":"s"},"vCenter":"v"}}`, ""},
		"none":    {platformFlags{platform: "none"}, `{"none":{}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.flags.validate("platform", platformNames); err != nil {
				t.Fatal(err)
			}
			p, metadata, err := c.flags.build("x")
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(p)
			if diff := cmp.Diff(c.want, string(raw)); diff != "" || err != nil {
				t.Error(err, diff)
			}
			got := ""
			if metadata != nil {
				got = string(metadata.Raw)
			}
			if got != c.metadata {
				t.Errorf("metadata %s, want %s", got, c.metadata)
			}
		})
	}
}

func TestProvidersOfClusterAPI(t *testing.T) {
	for name, c := range map[string]struct {
		flags platformFlags
		want  string
	}{
		"aws":   {platformFlags{platform: "aws", region: "r", credentials: "s"}, `{"aws":{"credentialsSecretRef":{"name":"s"},"region":"r"}}`},
		"azure": {platformFlags{platform: "azure", credentials: "s"}, `{"azure":{"credentialsSecretRef":{"name":"s"}}}`},
		"openstack": {
			platformFlags{platform: "openstack", cloud: "c", credentials: "s", certificates: "ca"},
			`{"openstack":{"certificatesSecretRef":{"name":"ca"},"cloud":"c","credentialsSecretRef":{"name":"s"}}}`,
		},
		"vsphere": {platformFlags{platform: "vsphere", vcenter: "v", credentials: "s"}, `{"vsphere":{"credentialsSecretRef":{"name":"s"},"vCenter":"v"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (&capiOptions{provider: c.flags}).validateProvider(); err != nil {
				t.Fatal(err)
			}
			got, err := c.flags.buildProviders()
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(got)
			if diff := cmp.Diff(c.want, string(raw)); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}
