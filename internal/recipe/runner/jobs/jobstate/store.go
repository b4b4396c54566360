package jobstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/hubjob"
)

// Store reads and writes one State.
type Store struct {
	API hubjob.API
	Key types.NamespacedName
}

// ReadState returns the stored State. If there is none, the error is that of the API.
func (s Store) ReadState(ctx context.Context) (State, error) {
	var secret corev1.Secret
	if err := s.API.Get(ctx, s.Key, &secret); err != nil {
		return State{}, fmt.Errorf("reading Secret %s: %w", s.Key.Name, err)
	}
	return s.decode(secret.Data)
}

func (s Store) decode(data map[string][]byte) (State, error) {
	st, err := Decode(data)
	if err != nil {
		return State{}, fmt.Errorf("reading Secret %s: %w", s.Key.Name, err)
	}
	return st, nil
}

// EditState reads the State, changes it and writes it with the resource version that it read. On a
// conflict it calls edit again with the newer State. It returns the State as stored, and errors of edit
// unchanged, except for hubjob.ErrNoChange.
func (s Store) EditState(ctx context.Context, edit func(*State) error) (State, error) {
	var stored State
	var failed error
	err := hubjob.EditSecret(ctx, s.API, s.Key, func(data map[string][]byte) (_ map[string][]byte, err error) {
		defer func() { failed = err }()
		if stored, err = s.decode(data); err != nil {
			return nil, err
		}
		next := stored
		if err := edit(&next); err != nil {
			return nil, err
		}
		stored = next
		return next.Encode()
	})
	if err != nil && failed == nil {
		err = fmt.Errorf("writing Secret %s: %w", s.Key.Name, err)
	}
	return stored, err
}

// The state folder is stored in one of two slots of parts, alternately, so that a pod that is killed
// while it writes leaves the previous folder intact.
const (
	// MaxParts is the number of Secrets for parts, PartSize the size of one part in bytes.
	MaxParts = 2 * slotParts
	PartSize = 900_000

	slotParts = 2
)

// Keys of a part.
const (
	keyPart  = "part"
	keyToken = "token"
)

// PartName returns the name of the Secret of a part.
func PartName(state string, part int) string { return fmt.Sprintf("%s-part-%d", state, part) }

// PartNames returns the names of the Secrets of all parts.
func PartNames(state string) []string {
	names := make([]string, MaxParts)
	for part := range names {
		names[part] = PartName(state, part)
	}
	return names
}

// ErrOvertaken means that a run is no longer the current one: its pod must not write or run anything.
var ErrOvertaken = errors.New("hotspare has ended this run, or has started another one")

// ErrDamaged means that a stored state folder differs from the one that was saved.
var ErrDamaged = errors.New("the stored state folder was changed or deleted")

// TakeParts makes a run the only one that may write parts. An earlier run that writes later is rejected.
func (s Store) TakeParts(ctx context.Context, token string) error {
	for part := range MaxParts {
		if err := s.editPart(ctx, part, func(data map[string][]byte) (map[string][]byte, error) {
			return map[string][]byte{keyPart: data[keyPart], keyToken: []byte(token)}, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) editPart(ctx context.Context, part int, edit func(map[string][]byte) (map[string][]byte, error)) error {
	key := types.NamespacedName{Namespace: s.Key.Namespace, Name: PartName(s.Key.Name, part)}
	if err := hubjob.EditSecret(ctx, s.API, key, edit); err != nil {
		return fmt.Errorf("writing Secret %s: %w", key.Name, err)
	}
	return nil
}

// HashFolder returns the digest of a packed folder.
func HashFolder(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// WriteParts writes a packed folder to the slot that current does not use, and returns where it is. The
// run must have taken the parts.
func (s Store) WriteParts(ctx context.Context, token string, current Folder, packed []byte) (Folder, error) {
	if most := slotParts * PartSize; len(packed) > most {
		return Folder{}, &TooLargeError{Key: "the packed state folder", Size: len(packed), Most: most}
	}
	next := Folder{UsesParts: true, Digest: HashFolder(packed)}
	if current.Parts > 0 && current.First == 0 {
		next.First = slotParts
	}
	for len(packed) > 0 {
		content := packed[:min(PartSize, len(packed))]
		err := s.editPart(ctx, next.First+next.Parts, func(data map[string][]byte) (map[string][]byte, error) {
			if string(data[keyToken]) != token {
				return nil, ErrOvertaken
			}
			return map[string][]byte{keyPart: content, keyToken: []byte(token)}, nil
		})
		if err != nil {
			return Folder{}, err
		}
		packed = packed[len(content):]
		next.Parts++
	}
	return next, nil
}

// ReadFolder returns the packed folder; nil if there is none.
func (s Store) ReadFolder(ctx context.Context, f Folder) ([]byte, error) {
	packed := f.Inline
	for part := f.First; part < f.First+f.Parts; part++ {
		var secret corev1.Secret
		key := types.NamespacedName{Namespace: s.Key.Namespace, Name: PartName(s.Key.Name, part)}
		if err := s.API.Get(ctx, key, &secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
		}
		packed = append(packed, secret.Data[keyPart]...)
	}
	if f.Digest != "" && HashFolder(packed) != f.Digest {
		return nil, ErrDamaged
	}
	return packed, nil
}
