package state

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"hotspare.io/hotspare/internal/hubjob"
)

var stateKey = types.NamespacedName{Namespace: "c", Name: "c-0-state"}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: stateKey.Namespace, Name: name}}
}

// newStore returns a Store on a hub with an empty state and n empty Secrets for parts.
func newStore(t *testing.T, n int, funcs interceptor.Funcs) Store {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{secret(stateKey.Name)}
	for part := range n {
		objects = append(objects, secret(PartSecretName(stateKey.Name, part)))
	}
	return Store{API: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build(), Key: stateKey}
}

func TestOnlyOneOfTwoPodsBecomesTheHolder(t *testing.T) {
	s := newStore(t, 0, interceptor.Funcs{})
	errHeld := errors.New("another pod holds it")
	claim := func(holder string) func(*State) error {
		return func(st *State) error {
			if st.Holder != "" {
				return errHeld
			}
			if holder == "second" { // the first pod writes between this pod's read and its write
				if _, err := s.EditState(t.Context(), func(st *State) error { st.Holder = "first"; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			st.Phase, st.Holder = Creating, holder
			return nil
		}
	}
	if _, err := s.EditState(t.Context(), claim("second")); !errors.Is(err, errHeld) {
		t.Errorf("the second pod got %v, want that it is refused on its second read", err)
	}
	if st, err := s.ReadState(t.Context()); err != nil || st.Holder != "first" {
		t.Errorf("the holder is %q, %v", st.Holder, err)
	}
}

func TestEditsThatConflictForeverEnd(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("secrets"), stateKey.Name, errors.New("modified"))
	writes := 0
	s := newStore(t, 0, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		writes++
		return conflict
	}})
	if _, err := s.EditState(t.Context(), func(st *State) error { st.Holder = "h"; return nil }); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	if writes != hubjob.MaxConflicts+1 {
		t.Errorf("%d writes, want %d", writes, hubjob.MaxConflicts+1)
	}
}

func TestAnEditWithoutChangeWritesNothing(t *testing.T) {
	s := newStore(t, 0, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		t.Error("written")
		return nil
	}})
	got, err := s.EditState(t.Context(), func(st *State) error { st.Phase = Failed; return ErrNoChange })
	if err != nil || got.Phase != New {
		t.Errorf("got %q, %v, want the stored state", got.Phase, err)
	}
}

func TestFoldersOfAnySizeThatFits(t *testing.T) {
	for _, size := range []int{1, PartSize, PartSize + 1, MaxParts * PartSize} {
		s := newStore(t, MaxParts, interceptor.Funcs{})
		packed := bytes.Repeat([]byte{'x'}, size)
		parts, digest, err := s.SaveFolder(t.Context(), packed)
		if err != nil {
			t.Fatal(err)
		}
		if want := (size + PartSize - 1) / PartSize; parts != want {
			t.Errorf("%d bytes take %d parts, want %d", size, parts, want)
		}
		st := State{Parts: parts, Digest: digest}
		got, err := s.LoadFolder(t.Context(), st)
		if err != nil || !bytes.Equal(got, packed) {
			t.Errorf("%d bytes: %d were loaded, %v", size, len(got), err)
		}
		if err := s.DiscardFolder(t.Context(), parts); err != nil {
			t.Error(err)
		}
		if _, err := s.LoadFolder(t.Context(), st); !errors.Is(err, ErrDamaged) {
			t.Errorf("after discarding: %v", err)
		}
	}
	s := newStore(t, MaxParts, interceptor.Funcs{})
	if _, _, err := s.SaveFolder(t.Context(), make([]byte, MaxParts*PartSize+1)); err == nil || !strings.Contains(err.Error(), "at most 3600000 fit") {
		t.Errorf("a folder that does not fit: %v", err)
	}
}

func TestAFolderThatLostAPartIsDamaged(t *testing.T) {
	saved := newStore(t, 2, interceptor.Funcs{})
	parts, digest, err := saved.SaveFolder(t.Context(), make([]byte, PartSize+1))
	if err != nil {
		t.Fatal(err)
	}
	missing := newStore(t, 1, interceptor.Funcs{})
	for name, c := range map[string]struct {
		store Store
		state State
	}{
		"a Secret is missing":    {missing, State{Parts: parts, Digest: digest}},
		"a part is left out":     {saved, State{Parts: 1, Digest: digest}},
		"the digest differs":     {saved, State{Parts: parts, Digest: strings.Repeat("0", 64)}},
		"nothing was ever saved": {saved, State{}},
	} {
		if _, err := c.store.LoadFolder(t.Context(), c.state); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := missing.DiscardFolder(t.Context(), parts); err != nil {
		t.Errorf("discarding parts of which one is missing: %v", err)
	}
}
