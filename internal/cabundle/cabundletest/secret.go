// Package cabundletest provides a Secret with CA certificates for tests.
package cabundletest

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/cabundle"
)

// Name is the name of the Secret.
var Name = types.NamespacedName{Namespace: "hotspare-system", Name: "authorities"}

// Secret is a fake of that Secret. It is safe for concurrent use.
type Secret struct {
	mu      sync.Mutex
	content []byte
}

// SetContent sets the content of key ca.crt.
func (s *Secret) SetContent(content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = content
}

// NewSource returns a Source that reads the Secret again for each connection.
func (s *Secret) NewSource() *cabundle.Source {
	return cabundle.NewSource([]types.NamespacedName{Name}, s.readSecret, &fastClock{})
}

func (s *Secret) readSecret(context.Context, types.NamespacedName) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string][]byte{cabundle.Key: s.content}, nil
}

// CertificatePEM returns the certificate of server in PEM.
func CertificatePEM(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// fastClock is a clock that advances by an hour with every reading.
type fastClock struct {
	mu    sync.Mutex
	hours time.Duration
}

// Now implements clock.PassiveClock.
func (c *fastClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hours++
	return time.Unix(0, 0).Add(c.hours * time.Hour)
}

// Since implements clock.PassiveClock.
func (c *fastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
