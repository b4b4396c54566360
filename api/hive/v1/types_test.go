package v1_test

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestDurationParse(t *testing.T) { // B14
	tests := map[hivev1.Duration]struct {
		want time.Duration
		ok   bool
	}{
		"":               {0, true},
		"90m":            {90 * time.Minute, true},
		"20m0s":          {20 * time.Minute, true},
		"1h30m":          {90 * time.Minute, true},
		"1.5h":           {90 * time.Minute, true},
		"1w":             {0, false},
		"1d":             {0, false},
		"-1h":            {0, false},
		"8":              {0, false},
		"9999999999999h": {0, false},
		"87601h":         {0, false},
	}
	for d, tc := range tests {
		got, err := d.Parse()
		if got != tc.want || (err == nil) != tc.ok {
			t.Errorf("%q: got %s, %v", d, got, err)
		}
	}
}

// One claim that cannot be read must not stop the others (known from the field
// as "lifetime: 1w froze all claims"; Hive B14).
func TestAListWithABadDurationDecodes(t *testing.T) {
	const list = `{"items":[{"metadata":{"name":"bad"},"spec":{"clusterPoolName":"p","lifetime":"1w"}},{"metadata":{"name":"good"},"spec":{"clusterPoolName":"p","lifetime":"8h"}}]}`
	var got hivev1.ClusterClaimList
	if err := json.Unmarshal([]byte(list), &got); err != nil || len(got.Items) != 2 {
		t.Errorf("%d claims, %v", len(got.Items), err)
	}
}

func TestPlatform(t *testing.T) {
	tests := map[string]struct{ name, region, credentials string }{
		`{}`: {},
		`{aws: {region: us-east-1, credentialsSecretRef: {name: creds}}}`: {"aws", "us-east-1", "creds"},
		`{local: {workers: 2}}`:           {"local", "", ""},
		`{none: {}}`:                      {"none", "", ""},
		`{agentBareMetal: null}`:          {},
		`{gcp: {region: [not, a, word]}}`: {"gcp", "", ""},
	}
	for text, want := range tests {
		var p hivev1.Platform
		if err := yaml.UnmarshalStrict([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		set := p.Settings()
		var credentials string
		if set.CredentialsSecretRef != nil {
			credentials = set.CredentialsSecretRef.Name
		}
		if p.Name() != want.name || set.Region != want.region || credentials != want.credentials {
			t.Errorf("%s: got %q %q %q", text, p.Name(), set.Region, credentials)
		}
	}
}

// What hotspare does not know of a platform survives being read and written.
func TestForeignPlatformsAreKept(t *testing.T) {
	const text = `{"aws":{"region":"us-east-1","userTags":{"a":"b"},"someNewField":[1,2,{"c":null}]}}`
	var p hivev1.Platform
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(p); err != nil || string(got) != text {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestEveryKindIsKnown(t *testing.T) {
	s := runtime.NewScheme()
	if err := hivev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		"ClusterPool", "ClusterClaim", "ClusterDeployment", "ClusterImageSet",
		"ClusterDeploymentCustomization", "ClusterProvision", "ClusterDeprovision", "MachinePool",
	} {
		if !s.Recognizes(hivev1.GroupVersion.WithKind(kind)) || !s.Recognizes(hivev1.GroupVersion.WithKind(kind+"List")) {
			t.Errorf("%s is not known", kind)
		}
	}
}
