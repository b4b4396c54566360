package cabundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"hotspare.io/hotspare/internal/fault"
)

const (
	// Key is the key of the Secrets that contains certificates, as in Hive. Other keys are not
	// read.
	Key = "ca.crt"
	// flag is the command-line flag that names the Secrets.
	flag = "--additional-certificate-authorities"
	// maxAge is the maximum age of the cached bundle that LatestBundle returns.
	maxAge = 10 * time.Second
	// maxSize is the maximum size of a bundle: installers get it in one Secret, which is limited to
	// a megabyte.
	maxSize = 1_000_000
)

// ReadSecret returns the data of a Secret of the hub. If the Secret does not exist, it returns a
// fault.Denied error that names the Secret.
type ReadSecret func(ctx context.Context, name types.NamespacedName) (map[string][]byte, error)

// Source reads the certificates from Secrets of the hub. A nil Source has none. It is safe for
// concurrent use.
type Source struct {
	names  []types.NamespacedName
	secret ReadSecret
	clock  clock.PassiveClock

	mu     sync.Mutex
	readAt time.Time
	latest Bundle
	// usable has, for each Secret, the last certificates that were read successfully.
	usable map[types.NamespacedName][]Certificate
}

// Bundle contains the certificates to trust for one connection.
type Bundle struct {
	// PEM contains the certificates; it is empty if there are none.
	PEM []byte
	// Problem says why PEM does not contain the current content of the Secrets; empty if it does.
	Problem string
}

// Equal reports whether both bundles have the same certificates and the same problem.
func (b Bundle) Equal(other Bundle) bool {
	return b.Problem == other.Problem && bytes.Equal(b.PEM, other.PEM)
}

// NewSource returns a Source of the certificates in the named Secrets. It returns nil if names is
// empty.
func NewSource(names []types.NamespacedName, secret ReadSecret, now clock.PassiveClock) *Source {
	if len(names) == 0 {
		return nil
	}
	return &Source{names: names, secret: secret, clock: now, usable: map[types.NamespacedName][]Certificate{}}
}

// SecretNames returns the names of the Secrets.
func (s *Source) SecretNames() []types.NamespacedName {
	if s == nil {
		return nil
	}
	return s.names
}

// Read returns the current certificates of all Secrets in PEM. If one of the Secrets cannot be
// used, it returns a fault.Denied error that names the Secret, the key and the remedy.
func (s *Source) Read(ctx context.Context) ([]byte, error) {
	var all []Certificate
	for _, name := range s.SecretNames() {
		found, err := s.readCertificates(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	bundle := Encode(all)
	return bundle, checkSize(bundle)
}

// LatestBundle returns certificates that are at most 10 seconds old. It is for connections, most of
// which work without the extra certificates: for a Secret with malformed content it uses the last
// valid content, and a Secret that does not exist counts as empty.
func (s *Source) LatestBundle(ctx context.Context) Bundle {
	if s == nil {
		return Bundle{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock.Now(); s.readAt.IsZero() || now.Sub(s.readAt) >= maxAge {
		s.refreshLatest(ctx, now)
	}
	return s.latest
}

// refreshLatest reads all Secrets. After an API error, the next call reads them again. If ctx ends,
// the cached bundle does not change.
func (s *Source) refreshLatest(ctx context.Context, now time.Time) {
	var all []Certificate
	var problems []string
	s.readAt = now
	for _, name := range s.names {
		found, err := s.readCertificates(ctx, name)
		switch {
		case err == nil:
			s.usable[name] = found
		case fault.KindOf(err) != fault.Denied:
			s.readAt = time.Time{}
		case errors.As(err, new(missingError)):
			delete(s.usable, name)
		}
		if err != nil {
			problems = append(problems, err.Error())
		}
		all = append(all, s.usable[name]...)
	}
	if ctx.Err() != nil {
		s.readAt = time.Time{}
		return
	}
	before := s.latest.Problem
	s.latest = Bundle{PEM: Encode(all), Problem: strings.Join(problems, "; ")}
	logChange(logr.FromContextOrDiscard(ctx), before, s.latest.Problem)
}

// logChange logs a problem when it appears or changes, and logs once when it is resolved.
func logChange(log logr.Logger, before, now string) {
	switch now {
	case before:
	case "":
		log.Info("read all additional certificate authorities again")
	default:
		log.Error(errors.New(now), "cannot read all additional certificate authorities")
	}
}

// missingError is the error for a Secret that does not exist.
type missingError struct{ error }

// Unwrap returns the API error.
func (e missingError) Unwrap() error { return e.error }

func (s *Source) readCertificates(ctx context.Context, name types.NamespacedName) ([]Certificate, error) {
	data, err := s.secret(ctx, name)
	switch {
	case fault.KindOf(err) == fault.Denied:
		return nil, missingError{fault.NewDenied("additional certificate authorities: %w, or start hotspare without it in %s", err, flag)}
	case err != nil:
		return nil, fmt.Errorf("reading additional certificate authorities: %w", err)
	}
	raw, ok := data[Key]
	if !ok {
		return nil, fault.NewDenied("additional certificate authorities: Secret %s has no key %s: add it with the certificates in PEM", name, Key)
	}
	found, err := Parse(raw)
	if err != nil {
		return nil, fault.NewDenied("additional certificate authorities: key %s of Secret %s: %w", Key, name, err)
	}
	return found, nil
}

func checkSize(bundle []byte) error {
	if len(bundle) <= maxSize {
		return nil
	}
	return fault.NewDenied("additional certificate authorities: the certificates of all Secrets in %s take %d bytes, and a Secret holds at most %d: remove some",
		flag, len(bundle), maxSize)
}
