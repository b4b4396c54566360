// Package localauth is how the person who runs hotspare up gets into its console without a
// token: whoever can read the data folder finds a key there, and makes a code of it that
// opens the door once and soon.
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

// CodeLifetime is how long a code can be used.
const CodeLifetime = time.Minute

// clockSkew is how far the clocks of who makes a code and who checks it may be apart; both
// are one computer's, whose clock may be set between.
const clockSkew = 5 * time.Second

// LoginPath is where the console takes codes, as the query's Parameter.
const (
	LoginPath     = "/enter"
	CodeParameter = "code"
)

const (
	keyLength    = 32
	nonceLength  = 16
	expiryLength = 8
)

// A Key makes codes and checks them.
type Key []byte

// NewKey returns a key that nobody knows.
func NewKey() Key {
	key := make(Key, keyLength)
	rand.Read(key) // it never fails
	return key
}

// NewCode returns one that can be used until Life after now.
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

// What is wrong with a code.
var (
	ErrForged  = errors.New("this console did not create this code")
	ErrExpired = errors.New("this code is older than a minute")
	ErrUsed    = errors.New("this code has already been used")
)

// A CodeVerifier lets each code in once. Its methods may be called by several goroutines.
type CodeVerifier struct {
	key  Key
	mu   sync.Mutex
	used map[string]time.Time // nonces, until they are too old anyway
}

// NewCodeVerifier returns a keeper for the codes of a key.
func NewCodeVerifier(k Key) *CodeVerifier { return &CodeVerifier{key: k, used: map[string]time.Time{}} }

// VerifyOnce takes a code. It is an error if that is forged, too old or used.
func (k *CodeVerifier) VerifyOnce(code string, now time.Time) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil || len(raw) != expiryLength+nonceLength+sha256.Size {
		return ErrForged
	}
	said, signature := raw[:expiryLength+nonceLength], raw[expiryLength+nonceLength:]
	if !hmac.Equal(signature, k.key.signCode(said)) {
		return ErrForged
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(said)), 0)
	if now.After(end) || end.After(now.Add(CodeLifetime+clockSkew)) {
		return ErrExpired
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for nonce, until := range k.used {
		if now.After(until) {
			delete(k.used, nonce)
		}
	}
	nonce := string(said[expiryLength:])
	if _, found := k.used[nonce]; found {
		return ErrUsed
	}
	k.used[nonce] = end
	return nil
}

// An Endpoint is what the data folder says of a console.
type Endpoint struct {
	// URL is where it is, or was last time.
	URL string
	// Key is that of the console that runs; nil when none does.
	Key Key
}

// EndpointPath is the plate's in a data folder.
func EndpointPath(dir string) string { return filepath.Join(dir, "console") }

// WriteFile puts the plate up, for its owner's eyes only.
func (p Endpoint) WriteFile(path string) error {
	text := p.URL + "\n"
	if p.Key != nil {
		text += base64.RawURLEncoding.EncodeToString(p.Key) + "\n"
	}
	// A new file, so that one with wider permissions is not written into.
	fresh, err := os.CreateTemp(filepath.Dir(path), ".console-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing down where the console is: %w", err)
	}
	_, err = fresh.WriteString(text)
	if err = errors.Join(err, fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing down where the console is: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	return nil
}

// ReadEndpoint returns the plate in that file. It is an os.ErrNotExist if there never was one.
func ReadEndpoint(path string) (Endpoint, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Endpoint{}, fmt.Errorf("reading where the console is: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	p := Endpoint{URL: lines[0]}
	if u, err := url.Parse(p.URL); err != nil || u.Host == "" {
		return Endpoint{}, fmt.Errorf("reading where the console is: %s does not hold a URL", path)
	}
	if len(lines) == 1 {
		return p, nil
	}
	key, err := base64.RawURLEncoding.DecodeString(lines[1])
	if err != nil || len(key) != keyLength {
		return Endpoint{}, fmt.Errorf("reading the key of the console: %s does not hold one", path)
	}
	p.Key = key
	return p, nil
}

// LoginLink is the URL that lets its bearer in until Life after now, once.
func (p Endpoint) LoginLink(now time.Time) string {
	return strings.TrimSuffix(p.URL, "/") + LoginPath + "?" + CodeParameter + "=" + p.Key.NewCode(now)
}
