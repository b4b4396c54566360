package cabundle

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// ExplainError adds the bundle's problem to errors that it may have caused: those about a
// certificate that cannot be verified.
func (b Bundle) ExplainError(err error) error {
	if b.Problem == "" || !errors.As(err, new(*tls.CertificateVerificationError)) {
		return err
	}
	return &untrustedError{err, b.Problem}
}

// BundleProblem returns the bundle's problem that ExplainError added to err; empty if it added
// none.
func BundleProblem(err error) string {
	var untrusted *untrustedError
	if errors.As(err, &untrusted) {
		return untrusted.problem
	}
	return ""
}

// untrustedError is the error for a certificate that may be untrusted because of a problem with the
// bundle.
type untrustedError struct {
	err     error
	problem string
}

func (e *untrustedError) Error() string { return fmt.Sprintf("%v (%s)", e.err, e.problem) }

// Unwrap returns the error without the problem.
func (e *untrustedError) Unwrap() error { return e.err }

// WrapTransport returns a transport that passes the errors of base through ExplainError.
func (b Bundle) WrapTransport(base *http.Transport) http.RoundTripper {
	if b.Problem == "" {
		return base
	}
	return explainingTransport{base, b}
}

type explainingTransport struct {
	*http.Transport
	bundle Bundle
}

// RoundTrip sends the request.
func (e explainingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.Transport.RoundTrip(r)
	return response, e.bundle.ExplainError(err)
}

// NewTransport returns a transport that is configured like base and trusts the certificates of s in
// addition to the system's. When the certificates change, it opens new connections. base itself is
// not used.
func (s *Source) NewTransport(base *http.Transport) http.RoundTripper {
	if s == nil {
		return base
	}
	return &transport{source: s, base: base}
}

type transport struct {
	source *Source
	base   *http.Transport

	mu sync.Mutex
	// current trusts the certificates in trusted; nil before the first request.
	current *http.Transport
	trusted []byte
}

// RoundTrip sends the request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	bundle := t.source.LatestBundle(r.Context())
	response, err := t.trustingTransport(bundle.PEM).RoundTrip(r)
	return response, bundle.ExplainError(err)
}

// trustingTransport returns the transport that trusts the certificates in bundle.
func (t *transport) trustingTransport(bundle []byte) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && bytes.Equal(t.trusted, bundle) {
		return t.current
	}
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
	t.current, t.trusted = t.base.Clone(), bundle
	if t.current.TLSClientConfig == nil {
		t.current.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.current.TLSClientConfig.RootCAs = SystemPoolWith(bundle)
	return t.current
}
