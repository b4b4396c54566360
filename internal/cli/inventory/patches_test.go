package inventory

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

func TestSecretsAreKnownByTheirNames(t *testing.T) {
	for pointer, want := range map[string]bool{
		"/metadata/name": false, "/pullSecret": true, "pullSecret": true, "/platform/vsphere/vcenters/0/password": true,
		"/a/secretKey/b": true, "/pullSecretRef/name": false, "/ownerRef/password": true, "/private_key": true, "/sshKey": false, "": false,
		"/data/aws_access_key_id": true, "/compute/0/replicas": false,
	} {
		if got := isSecretPath(pointer); got != want {
			t.Errorf("%s: %v", pointer, got)
		}
	}
}

func TestPatchesThatDoTheSameAreTheSame(t *testing.T) {
	now := []patchOperation{{"install-config", hivev1.PatchEntity{Op: "replace", Path: "metadata/name", Value: &runtime.RawExtension{Raw: []byte(`{"b":1, "a":2}`)}}}}
	for raw, want := range map[string]bool{
		`[{"op":"replace","path":"/metadata/name","value":{"a":2,"b":1}}]`:                                 true,
		`{"installConfigPatches":[{"op":"replace","path":"metadata/name","value":{"b":1,"a":2}}]}`:         true,
		`[{"op":"replace","path":"metadata/name","valueJSON":"{\"a\":2,\"b\":1}"}]`:                        true,
		`[{"op":"add","path":"metadata/name","value":{"b":1,"a":2}}]`:                                      false,
		`[{"op":"replace","path":"metadata/names","value":{"b":1,"a":2}}]`:                                 false,
		`[{"op":"replace","path":"metadata/name","value":{"b":1,"a":3}}]`:                                  false,
		`[{"op":"replace","path":"metadata/name","from":"/x","value":{"b":1,"a":2}}]`:                      false,
		`{"clusterDeploymentSpecPatches":[{"op":"replace","path":"metadata/name","value":{"b":1,"a":2}}]}`: false,
		`[{"op":"replace","path":"metadata/name","valueJSON":"{\"a\":2,\"b\":1} 3"}]`:                      false, // what follows counts
		`[]`: false,
	} {
		before, err := parseAppliedPatches(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if got := equalPatches(before, now); got != want {
			t.Errorf("%s: %v", raw, got)
		}
	}
}
