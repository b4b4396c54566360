package pool_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
)

const awsPool = `
platform: {aws: {region: us-east-1, credentialsSecretRef: {name: creds}}}
baseDomain: example.com
imageSetRef: {name: ocp-4.18}
size: 3
`

const localPool = `
platform: {local: {workers: 2}}
baseDomain: example.com
imageSetRef: {name: kubernetes}
size: 3
`

func version(t *testing.T, text string, change func(*hivev1.ClusterPoolSpec)) string {
	t.Helper()
	var spec hivev1.ClusterPoolSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&spec)
	}
	v, err := pool.Version(spec)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// These values are a promise: were one to change, an upgrade would replace every
// unclaimed cluster of every pool.
func TestVersionsAreForEver(t *testing.T) { // B26
	inventory := func(s *hivev1.ClusterPoolSpec) { s.Inventory = []hivev1.InventoryEntry{{Name: "one"}} }
	for name, tc := range map[string]struct{ got, want string }{
		"aws":                {version(t, awsPool, nil), "89d12ff1a592f0aa"},
		"aws with inventory": {version(t, awsPool, inventory), "970d4fb61b8b3e7a"},
		"local":              {version(t, localPool, nil), "23b1606559527ae9"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: the version is %s and was %s", name, tc.got, tc.want)
		}
	}
}

func TestVersionChangesWithWhatShapesACluster(t *testing.T) {
	base := version(t, awsPool, nil)
	for name, change := range map[string]func(*hivev1.ClusterPoolSpec){
		"platform":  func(s *hivev1.ClusterPoolSpec) { s.Platform.AWS.Raw = []byte(`{"region":"eu-west-1"}`) },
		"domain":    func(s *hivev1.ClusterPoolSpec) { s.BaseDomain = "example.org" },
		"image set": func(s *hivev1.ClusterPoolSpec) { s.ImageSetRef.Name = "ocp-4.19" },
		"template": func(s *hivev1.ClusterPoolSpec) {
			s.InstallConfigSecretTemplateRef = &corev1.LocalObjectReference{Name: "t"}
		},
		"customizing": func(s *hivev1.ClusterPoolSpec) { s.CustomizationRef = &corev1.LocalObjectReference{Name: "c"} },
		"an inventory": func(s *hivev1.ClusterPoolSpec) {
			s.Inventory = []hivev1.InventoryEntry{{Name: "one"}}
		},
	} {
		if version(t, awsPool, change) == base {
			t.Errorf("another %s makes no other version", name)
		}
	}
}

func TestVersionDoesNotChangeWithTheRest(t *testing.T) { // B23, B26
	base := version(t, awsPool, nil)
	for name, change := range map[string]func(*hivev1.ClusterPoolSpec){
		"size":        func(s *hivev1.ClusterPoolSpec) { s.Size, s.RunningCount = 9, 4 },
		"labels":      func(s *hivev1.ClusterPoolSpec) { s.Labels = map[string]string{"a": "b"} },
		"pull secret": func(s *hivev1.ClusterPoolSpec) { s.PullSecretRef = &corev1.LocalObjectReference{Name: "p"} },
		"order of keys": func(s *hivev1.ClusterPoolSpec) {
			s.Platform.AWS.Raw = []byte(`{"credentialsSecretRef":{"name":"creds"},"region":"us-east-1","userTags":{},"privateLink":null}`)
		},
		"an empty inventory": func(s *hivev1.ClusterPoolSpec) { s.Inventory = []hivev1.InventoryEntry{} },
	} {
		if got := version(t, awsPool, change); got != base {
			t.Errorf("another %s makes another version: %s, was %s", name, got, base)
		}
	}
	one := func(s *hivev1.ClusterPoolSpec) { s.Inventory = []hivev1.InventoryEntry{{Name: "one"}} }
	two := func(s *hivev1.ClusterPoolSpec) { s.Inventory = []hivev1.InventoryEntry{{Name: "one"}, {Name: "two"}} }
	if version(t, awsPool, one) != version(t, awsPool, two) {
		t.Error("editing an inventory makes another version")
	}
}
