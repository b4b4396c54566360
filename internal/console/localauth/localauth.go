// Package localauth signs the person who runs hotspare up in to the console without a token. The
// data folder has a key. Anyone who can read the key can create a code from it, which is valid once
// and for one minute.
package localauth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// CodeLifetime is how long a code is valid.
const CodeLifetime = time.Minute

// clockSkew is the tolerated difference between the clock at the creation of a code and the clock
// at its verification. Both are the clock of one computer, which may be set in between.
const clockSkew = 5 * time.Second

// LoginPath is the path that accepts codes, in the query parameter CodeParameter.
const (
	LoginPath     = "/enter"
	CodeParameter = "code"
)

const (
	keyLength    = 32
	nonceLength  = 16
	expiryLength = 8
)

// A Key creates codes and verifies them.
type Key []byte

// NewKey returns a random key.
func NewKey() Key {
	key := make(Key, keyLength)
	rand.Read(key) // crypto/rand never fails
	return key
}

// NewCode returns a code that is valid until CodeLifetime after now.
func (k Key) NewCode(now time.Time) string {
	raw := make([]byte, expiryLength+nonceLength, expiryLength+nonceLength+sha256.Size)
	binary.BigEndian.PutUint64(raw, uint64(now.Add(CodeLifetime).Unix()))
	rand.Read(raw[expiryLength:])
	return base64.RawURLEncoding.EncodeToString(append(raw, k.signCode(raw)...))
}

func (k Key) signCode(raw []byte) []byte {
	mac := hmac.New(sha256.New, k)
	mac.Write([]byte("hotspare console code\x00"))
	mac.Write(raw)
	return mac.Sum(nil)
}

// Errors of VerifyOnce.
var (
	ErrForged  = errors.New("this console did not create this code")
	ErrExpired = errors.New("this code is older than a minute")
	ErrUsed    = errors.New("this code has already been used")
)

// A CodeVerifier accepts each code once. Its methods are safe for concurrent use.
type CodeVerifier struct {
	key  Key
	mu   sync.Mutex
	used map[string]time.Time // used nonces, until their codes expire
}

// NewCodeVerifier returns a verifier for the codes of a key.
func NewCodeVerifier(k Key) *CodeVerifier { return &CodeVerifier{key: k, used: map[string]time.Time{}} }

// VerifyOnce verifies a code and marks it as used. It returns an error if the code is forged,
// expired or used.
func (v *CodeVerifier) VerifyOnce(code string, now time.Time) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil || len(raw) != expiryLength+nonceLength+sha256.Size {
		return ErrForged
	}
	said, signature := raw[:expiryLength+nonceLength], raw[expiryLength+nonceLength:]
	if !hmac.Equal(signature, v.key.signCode(said)) {
		return ErrForged
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(said)), 0)
	if now.After(end) || end.After(now.Add(CodeLifetime+clockSkew)) {
		return ErrExpired
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for nonce, until := range v.used {
		if now.After(until) {
			delete(v.used, nonce)
		}
	}
	nonce := string(said[expiryLength:])
	if _, found := v.used[nonce]; found {
		return ErrUsed
	}
	v.used[nonce] = end
	return nil
}

// An Endpoint is the console's address and key in the data folder.
type Endpoint struct {
	// URL is the console's address, or its last address if it is not running.
	URL string
	// Key is the key of the running console; nil if none is running.
	Key Key
}

// EndpointPath returns the path of the endpoint's file in a data folder.
func EndpointPath(dir string) string { return filepath.Join(dir, "console") }

// WriteFile writes the endpoint to a file that only its owner can read.
func (e Endpoint) WriteFile(path string) error {
	text := e.URL + "\n"
	if e.Key != nil {
		text += base64.RawURLEncoding.EncodeToString(e.Key) + "\n"
	}
	// A new file, because an existing one may have wider permissions.
	fresh, err := os.CreateTemp(filepath.Dir(path), ".console-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing the console endpoint: %w", err)
	}
	_, err = fresh.WriteString(text)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the console endpoint: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	return nil
}

// ReadEndpoint reads an endpoint. The error is os.ErrNotExist if the file does not exist.
func ReadEndpoint(path string) (Endpoint, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Endpoint{}, fmt.Errorf("reading the console endpoint: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	p := Endpoint{URL: lines[0]}
	if u, err := url.Parse(p.URL); err != nil || u.Host == "" {
		return Endpoint{}, fmt.Errorf("reading the console endpoint: %s does not contain a URL", path)
	}
	if len(lines) == 1 {
		return p, nil
	}
	key, err := base64.RawURLEncoding.DecodeString(lines[1])
	if err != nil || len(key) != keyLength {
		return Endpoint{}, fmt.Errorf("reading the console key: %s does not contain one", path)
	}
	p.Key = key
	return p, nil
}

// LoginLink returns a URL that signs in its first visitor until CodeLifetime after now.
func (e Endpoint) LoginLink(now time.Time) string {
	return strings.TrimSuffix(e.URL, "/") + LoginPath + "?" + CodeParameter + "=" + e.Key.NewCode(now)
}
