package up

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/config"
)

// server is an API server that does not know some kinds.
type server struct {
	without string

	lock    sync.Mutex
	applied int
}

func (s *server) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return err
	}
	if strings.HasPrefix(u.GetKind(), s.without) {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: u.GetKind()}}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.applied++
	return nil
}

func TestAnOlderAPIServerDoesWithoutWhatItDoesNotKnow(t *testing.T) {
	objects, err := readManifests(config.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{without: "MutatingAdmissionPolicy"}
	if err := applyObjects(t.Context(), s, objects); err != nil {
		t.Fatal(err)
	}
	mutating := 0
	for _, o := range objects {
		if slices.Contains(optionalKinds, o.GetKind()) {
			mutating++
		}
	}
	if got, want := s.applied, len(objects)-mutating; got != want || mutating == 0 {
		t.Errorf("%d objects were applied, want %d", got, want)
	}
	if err := applyObjects(t.Context(), &server{without: "ValidatingAdmissionPolicy"}, objects); !meta.IsNoMatchError(err) {
		t.Errorf("without what refuses nothing is safe, got %v", err)
	}
}

func TestPoliciesAreAppliedBeforeTheKindsThatTheyProtect(t *testing.T) {
	objects, err := readManifests(config.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	policies, others := separatePolicies(objects)
	if len(policies) == 0 || len(policies)+len(others) != len(objects) {
		t.Errorf("%d policies and %d others of %d objects", len(policies), len(others), len(objects))
	}
	for _, o := range policies {
		if !strings.Contains(o.GetKind(), "AdmissionPolicy") {
			t.Errorf("%s %s counts as a policy", o.GetKind(), o.GetName())
		}
	}
	for _, o := range others {
		if strings.Contains(o.GetKind(), "AdmissionPolicy") {
			t.Errorf("%s %s counts as no policy", o.GetKind(), o.GetName())
		}
	}
}
