package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/hubjob"
)

// API is the part of the hub's API that a pod may use: it reads and patches the Secrets of its
// attempt.
type API = hubjob.API

// Store reads and writes one State.
type Store struct {
	API API
	Key types.NamespacedName
}

// ReadState returns the stored State. If there is none, the error is that of the API.
func (s Store) ReadState(ctx context.Context) (State, error) {
	var secret corev1.Secret
	if err := s.API.Get(ctx, s.Key, &secret); err != nil {
		return State{}, fmt.Errorf("reading the state in Secret %s: %w", s.Key.Name, err)
	}
	return s.decode(secret.Data)
}

func (s Store) decode(data map[string][]byte) (State, error) {
	st, err := Decode(data)
	if err != nil {
		return State{}, fmt.Errorf("reading the state in Secret %s: %w", s.Key.Name, err)
	}
	return st, nil
}

// ErrNoChange is returned by an edit to leave the State unchanged. It is not a failure.
var ErrNoChange = hubjob.ErrNoChange

// EditState reads the State, changes it and writes it with the resource version that it read. On a
// conflict it calls edit again with the newer State. It returns the State as stored.
func (s Store) EditState(ctx context.Context, edit func(*State) error) (State, error) {
	var stored State
	var failed error // of edit
	err := hubjob.EditSecret(ctx, s.API, s.Key, func(data map[string][]byte) (map[string][]byte, error) {
		st, err := s.decode(data)
		stored = st
		if err != nil {
			failed = err
			return nil, err
		}
		if failed = edit(&st); failed != nil {
			if !errors.Is(failed, ErrNoChange) {
				stored = st
			}
			return nil, failed
		}
		stored = st
		return st.Encode(), nil
	})
	if err != nil && failed == nil {
		err = fmt.Errorf("accessing the state in Secret %s: %w", s.Key.Name, err)
	}
	return stored, err
}

const (
	// MaxParts bounds the number of parts of a packed folder.
	MaxParts = 4
	// PartSize is the size of one part in bytes: a Secret can contain one megabyte.
	PartSize = 900_000
)

// keyPart is the key of a part's content.
const keyPart = "part"

// PartSecretName names the Secret of a part. These Secrets exist, empty, before the pod runs,
// because a pod may not create Secrets.
func PartSecretName(state string, part int) string { return fmt.Sprintf("%s-part-%d", state, part) }

// SaveFolder stores a packed folder and returns the number of parts and the digest to load it with.
func (s Store) SaveFolder(ctx context.Context, packed []byte) (parts int, digest string, err error) {
	if len(packed) > MaxParts*PartSize {
		return 0, "", fmt.Errorf("the installer's folder takes %d bytes packed, and at most %d fit: remove large files from the manifests", len(packed), MaxParts*PartSize)
	}
	sum := sha256.Sum256(packed)
	for len(packed) > 0 {
		n := min(PartSize, len(packed))
		if err := s.writePartSecret(ctx, parts, packed[:n]); err != nil {
			return 0, "", err
		}
		packed = packed[n:]
		parts++
	}
	return parts, hex.EncodeToString(sum[:]), nil
}

func (s Store) writePartSecret(ctx context.Context, part int, content []byte) error {
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: s.Key.Namespace, Name: PartSecretName(s.Key.Name, part)}
	if err := s.API.Get(ctx, key, &secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	before := secret.DeepCopy()
	secret.Data = nil
	if len(content) > 0 {
		secret.Data = map[string][]byte{keyPart: content}
	}
	if err := s.API.Patch(ctx, &secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing Secret %s: %w", key.Name, err)
	}
	return nil
}

// ErrDamaged says that the stored parts differ from those that were saved.
var ErrDamaged = errors.New("the stored installer's folder was changed")

// LoadFolder returns the packed folder of st.
func (s Store) LoadFolder(ctx context.Context, st State) ([]byte, error) {
	var packed []byte
	for part := range st.Parts {
		var secret corev1.Secret
		key := types.NamespacedName{Namespace: s.Key.Namespace, Name: PartSecretName(s.Key.Name, part)}
		err := s.API.Get(ctx, key, &secret)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: Secret %s does not exist", ErrDamaged, key.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
		}
		packed = append(packed, secret.Data[keyPart]...)
	}
	if sum := sha256.Sum256(packed); st.Parts == 0 || hex.EncodeToString(sum[:]) != st.Digest {
		return nil, ErrDamaged
	}
	return packed, nil
}

// DiscardFolder empties the parts, because they contain the keys of a cluster.
func (s Store) DiscardFolder(ctx context.Context, parts int) error {
	var errs []error
	for part := range parts {
		if err := s.writePartSecret(ctx, part, nil); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
