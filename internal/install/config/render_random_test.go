package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// rounds is the number of documents that each test with random documents tries.
var rounds = flag.Int("config.rounds", 500, "number of random documents of each test")

// randomValue returns a random value of any kind for a field of a platform.
func randomValue(r *rand.Rand, deep int) any {
	kinds := 7
	if deep == 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(100) - 10
	case 2:
		return r.IntN(2) == 0
	case 5:
		return []any{randomValue(r, deep-1), randomValue(r, deep-1)}
	case 6:
		return map[string]any{pick(r, words): randomValue(r, deep-1), pick(r, words): randomValue(r, deep-1)}
	default:
		return pick(r, words)
	}
}

var words = []string{
	"", "us-east-1", "10.0.0.2", "server", "user", "password", "vcenters", "failureDomains", "topology", "endpoint", "address", "prismElement",
	"uuid", "enabled", "hosts", "yes", "null", "0x1f", "1e3", "<<", "~", "- a", "a: b", "äöü", "a\nb", " \t", "$X", "'\"", "port",
}

var platforms = []string{"aws", "azure", "gcp", "vsphere", "openstack", "baremetal", "agentBareMetal", "ibmcloud", "nutanix", "none"}

// randomPlatform returns a platform with fields that are copied, and some that are not.
func randomPlatform(t *testing.T, r *rand.Rand, value func() any) hivev1.Platform {
	t.Helper()
	name := pick(r, platforms)
	section := map[string]any{}
	fields := append(slices.Clone(sharedSettings[name]), "infrastructure", "prismCentral", "failureDomains", "privateLink", "trunkSupport", "credentialsSecretRef")
	for _, key := range fields {
		if r.IntN(2) == 0 {
			section[key] = value()
		}
	}
	raw, err := json.Marshal(map[string]any{name: section})
	if err != nil {
		t.Fatal(err)
	}
	var p hivev1.Platform
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func randomParams(t *testing.T, r *rand.Rand, platform hivev1.Platform) Params {
	t.Helper()
	return Params{
		ClusterName: "c1", BaseDomain: "example.com", PullSecret: pull, Platform: platform,
		Credentials: map[string][]byte{
			"username": []byte("admin"), "password": []byte("hunter2" + pick(r, words)), "osServiceAccount.json": []byte(`{"project_id":"p"}`),
		},
	}
}

// Whatever a ClusterDeployment sets in its platform, rendering terminates, and rendering again
// gives the same result; errors are reported without secrets.
func TestRandomPlatformsAreRendered(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range *rounds {
		p := randomParams(t, r, randomPlatform(t, r, func() any { return randomValue(r, 3) }))
		got, err := Render(nil, p)
		if err != nil {
			if fault.KindOf(err) != fault.Denied {
				t.Fatal(err)
			}
			continue
		}
		again, err := Render(got, p)
		if err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		if diff := cmp.Diff(string(got), string(again)); diff != "" {
			t.Fatal(diff)
		}
		if err := ValidateComplete(got, p.Platform); err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("a secret is quoted: %v", err)
		}
		if left := Redact(string(got), got); strings.Contains(left, "hunter2") {
			t.Fatalf("a secret is left:\n%s", left)
		}
	}
}

// A document generated from fields of the right kinds is valid: at most a value is missing.
func TestWhatIsGeneratedIsValid(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	whole := 0
	for range *rounds {
		p := randomParams(t, r, soundPlatform(t, r))
		got, err := Render(nil, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(got); err != nil {
			t.Fatalf("%v\n%s", err, got)
		}
		err = ValidateComplete(got, p.Platform)
		if err == nil {
			whole++
			continue
		}
		for said := range strings.SplitSeq(err.Error(), "; ") {
			if !strings.Contains(said, " is missing") {
				t.Fatalf("%s\n%s", said, got)
			}
		}
	}
	if whole < *rounds/20 {
		t.Errorf("only %d were whole: this tests little", whole)
	}
}

// soundPlatform returns a platform with fields of the right kinds, some of them left out.
func soundPlatform(t *testing.T, r *rand.Rand) hivev1.Platform {
	t.Helper()
	pool := []string{
		"aws: {region: r, userTags: {a: b}, privateLink: {enabled: true}}",
		"azure: {region: r, baseDomainResourceGroupName: g, cloudName: AzurePublicCloud}",
		"gcp: {region: r, privateServiceConnect: {enabled: true}}",
		"ibmcloud: {region: r}",
		"none: {}",
		"openstack: {cloud: c, trunkSupport: true, apiVIPs: [10.0.0.5], ingressVIPs: [10.0.0.7], externalNetwork: n}",
		"vsphere: {vCenter: v, datacenter: d, defaultDatastore: s, cluster: c, network: n}",
		"vsphere: {vCenter: v, infrastructure: {vcenters: [{server: a, datacenters: [d]}], failureDomains: [{name: f, region: r, zone: z, server: a, " +
			"topology: {datacenter: d, computeCluster: c, datastore: s, networks: [net]}}]}}",
		"nutanix: {prismCentral: {address: a, port: 9440}, failureDomains: [{name: f, prismElement: {uuid: u}, subnetUUIDs: [s]}]}",
		"baremetal: {libvirtURI: 'qemu+ssh://root@host/system', provisioningNetwork: Disabled}",
	}
	var tree map[string]map[string]any
	if err := yaml.Unmarshal([]byte(pick(r, pool)), &tree); err != nil {
		t.Fatal(err)
	}
	for _, section := range tree {
		for key := range section {
			if r.IntN(8) == 0 {
				delete(section, key)
			}
		}
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	var p hivev1.Platform
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// Secrets at random places, of any letters, and quoted in all usual ways.
func TestRedactFindsEverySecret(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range *rounds {
		secret := pick(r, words) + fmt.Sprintf("s3cr3t%d", r.IntN(1e6)) + pick(r, words)
		raw, err := json.Marshal(map[string]any{
			pick(r, words) + "x": map[string]any{pick(r, words): []any{1, map[string]any{pick(r, []string{"password", "Password", "pullSecret", "auth"}): secret}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.JSONToYAML(raw)
		if _, unread := parseDocument(asYAML); err != nil || unread != nil {
			continue // a key << is none in YAML
		}
		inJSON, _ := json.Marshal(secret)
		text := fmt.Sprintf("level=error msg=%q plain %s json %s", "login as "+secret, secret, inJSON)
		if left := Redact(text, asYAML); strings.Contains(left, "s3cr3t") {
			t.Fatalf("%q is left in %q of\n%s", secret, left, asYAML)
		}
	}
}

// FuzzComplete checks that the checks return an error for any bad document, and that rendering the
// rendered document again gives the same result.
func FuzzComplete(f *testing.F) {
	for _, file := range append(files(f, "samples"), files(f, "written")...) {
		f.Add(read(f, file))
	}
	f.Add([]byte(whole))
	f.Add([]byte("platform: {vsphere: {vcenters: [[]], failureDomains: [1, {topology: 2}]}}\ncompute: [1]\nnetworking: {serviceNetwork: [[]], clusterNetwork: [{hostPrefix: 1e9}]}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, platform := range []hivev1.Platform{aws(`{}`), {}, local(1, "")} {
			if err := ValidateComplete(raw, platform); err != nil && fault.KindOf(err) != fault.Denied {
				t.Fatalf("a fault that is %s: %v", fault.KindOf(err), err)
			}
		}
		p := Params{ClusterName: "c1", BaseDomain: "example.com", Platform: aws(`{"region":"r"}`), PullSecret: pull}
		once, err := Render(raw, p)
		if err != nil {
			return
		}
		twice, err := Render(once, p)
		if err != nil || string(once) != string(twice) {
			t.Fatalf("%v: %s\n, then %s", err, once, twice)
		}
		_ = Redact(string(once), once) // it terminates
	})
}
