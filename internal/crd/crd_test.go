package crd_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hotspare.io/hotspare/internal/crd"
)

func TestEveryKindHasASchema(t *testing.T) {
	for _, kind := range []string{"ClusterPool", "ClusterDeployment", "ClusterClaim", "ClusterImageSet", "ClusterDeploymentCustomization", "PowerSchedule", "PoolPolicy", "ClaimPolicy", "ClaimSet", "ClusterBootstrap", "InstanceType", "FleetRegion", "DataPlane", "ServiceInstance"} {
		if _, err := crd.LoadSchema(kind); err != nil {
			t.Error(err)
		}
	}
	if _, err := crd.LoadSchema("Pod"); !errors.Is(err, crd.ErrUnknownKind) {
		t.Errorf("got %v", err)
	}
}

func TestAdmitDoesWhatTheAPIServerDoes(t *testing.T) {
	s, err := crd.LoadSchema("ClusterPool")
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{
		"apiVersion": "hive.openshift.io/v1", "kind": "ClusterPool",
		"metadata": map[string]any{"name": "p", "namespace": "n", "nick": "q"},
		"spec": map[string]any{
			"size": int64(1), "runningCount": nil, "maxSize": nil, "baseDomain": "", "imageSetRef": map[string]any{"name": "v1"},
			"platform": map[string]any{"local": map[string]any{}, "aws": nil},
			"typo":     true,
		},
	}
	v, err := s.Admit(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"metadata.nick", "spec.typo"}, v.Unknown); diff != "" {
		t.Error(diff)
	}
	want := `spec.baseDomain: Invalid value: "": spec.baseDomain in body should be at least 1 chars long`
	if len(v.Faults) != 1 || v.Faults[0].Error() != want {
		t.Errorf("got %v, want %s", v.Faults, want)
	}
	wantSpec := map[string]any{
		"size": int64(1), "maxSize": nil, "baseDomain": "", "imageSetRef": map[string]any{"name": "v1"},
		"platform": map[string]any{"local": map[string]any{"workers": int64(1), "certificateDuration": "24h"}, "aws": nil},
	}
	if diff := cmp.Diff(wantSpec, object["spec"]); diff != "" {
		t.Errorf("fields that are not known go, nulls go where they may not be, defaults come: %s", diff)
	}
}

// The API server drops the namespace of an object of a cluster-scoped kind.
func TestTheNamespaceOfAnImageSetIsDropped(t *testing.T) {
	s, err := crd.LoadSchema("ClusterImageSet")
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{
		"apiVersion": "hive.openshift.io/v1", "kind": "ClusterImageSet",
		"metadata": map[string]any{"name": "v1", "namespace": "n"}, "spec": map[string]any{"releaseImage": "q/r:1"},
	}
	v, err := s.Admit(t.Context(), object)
	if err != nil || len(v.Faults) > 0 || len(v.Unknown) > 0 {
		t.Errorf("got %v %v %v, want nothing", v.Faults, v.Unknown, err)
	}
	if diff := cmp.Diff(map[string]any{"name": "v1"}, object["metadata"]); diff != "" {
		t.Error(diff)
	}
}
