package clusterpool_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Seed of inventories: an entry that is missing or malformed is logged as an error.
func TestEntriesThatCannotBeUsedAreLoggedAndRecordedOnce(t *testing.T) {
	bad := named("bad", "one")
	bad.Spec.InstallConfigPatches[0].Path = "metadata/names"
	s := newShelf(t, listing(1, "bad", "good", "gone"), bad, named("good", "two"))
	recorded := &diary{entries: map[string]int{}}
	s.pools.Events = recorded
	var log bytes.Buffer
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{}))
	pass := func() {
		t.Helper()
		if _, err := s.pools.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "pools", Name: "p"}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		pass()
	}
	want := func(missing, broken int) {
		t.Helper()
		if recorded.entries["CustomizationMissing p gone"] != missing || recorded.entries["CustomizationBroken p bad"] != broken || recorded.of("CustomizationBroken") != float64(broken) {
			t.Errorf("recorded %v", recorded.entries)
		}
		if strings.Count(log.String(), `"customization"="gone"`) != missing || strings.Count(log.String(), "metadata/names") != broken {
			t.Errorf("logged %s", log.String())
		}
	}
	want(1, 1)

	t.Log("what goes wrong again is recorded again")
	if err := s.Create(t.Context(), named("gone", "three")); err != nil {
		t.Fatal(err)
	}
	pass()
	gone := named("gone", "three")
	if err := errors.Join(s.Get(t.Context(), client.ObjectKeyFromObject(gone), gone), s.Delete(t.Context(), gone)); err != nil {
		t.Fatal(err)
	}
	pass()
	want(2, 1)
}
