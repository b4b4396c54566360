package gcp

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	projectID = "fleet-project"
	email     = "hotspare@fleet-project.iam.gserviceaccount.com"
	keyID     = "0123456789abcdef"
	// tokenPrefix begins every token that Google issues.
	tokenPrefix = "ya29."
)

// key is the service account's key; generating one takes a while.
var key = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return k
})

func pemOf(k *rsa.PrivateKey) string {
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// account returns a service account's key file with changes.
func (s *sim) account(changes map[string]string) []byte {
	file := map[string]string{
		"type": "service_account", "project_id": projectID, "client_email": email,
		"private_key": pemOf(key()), "private_key_id": keyID, "token_uri": s.URL + "/token",
	}
	for k, v := range changes {
		file[k] = v
	}
	raw, _ := json.Marshal(file)
	return raw
}

// tokens is Google's token server.
type tokens struct {
	given     map[string]bool
	refused   bool          // the key is revoked
	revoked   bool          // issued tokens do not work
	forbidden bool          // the account has no permissions
	status    int           // the server's status code, if not 0
	echo      bool          // it echoes what it receives
	hung      chan struct{} // if not nil, it hangs and sends a value
}

func (t *tokens) good(header string) bool {
	return !t.revoked && t.given[strings.TrimPrefix(header, "Bearer ")]
}

func (s *sim) token(w http.ResponseWriter, r *http.Request) {
	why := s.judge(r) // reads the body: otherwise a server does not notice that the client disconnected
	if s.tokens.hung != nil {
		s.tokens.hung <- struct{}{}
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens.status != 0 {
		w.WriteHeader(s.tokens.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if why != "" {
		if s.tokens.echo {
			why += " " + r.PostForm.Get("assertion")
		}
		w.WriteHeader(http.StatusBadRequest)
		json.NewEncoder(w).Encode(map[string]string{"error": "invalid_grant", "error_description": why})
		return
	}
	token := tokenPrefix + rand.Text()
	if s.tokens.given == nil {
		s.tokens.given = map[string]bool{}
	}
	s.tokens.given[token] = true
	json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3599})
}

// judge checks a signed assertion against RFC 7523 and Google's rules.
func (s *sim) judge(r *http.Request) string {
	if r.ParseForm() != nil || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		return "Unsupported grant type."
	}
	parts := strings.Split(r.PostForm.Get("assertion"), ".")
	if len(parts) != 3 {
		return "Not a JWT."
	}
	var header struct{ Alg, Typ, Kid string }
	var claims struct {
		Iss, Aud, Scope string
		Iat, Exp        int64
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !decode(parts[0], &header) || !decode(parts[1], &claims) {
		return "Not a JWT."
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := time.Now().Unix()
	switch {
	case header.Alg != "RS256" || header.Kid != keyID,
		rsa.VerifyPKCS1v15(&key().PublicKey, crypto.SHA256, sum[:], signature) != nil,
		s.tokens.refused:
		return "Invalid JWT Signature."
	case claims.Iss != email:
		return "Invalid grant: account not found"
	case claims.Aud != s.URL+"/token":
		return "Invalid JWT: audience"
	case claims.Exp <= now, claims.Iat > now+10, claims.Exp-claims.Iat > 3600:
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
	case claims.Scope != "https://www.googleapis.com/auth/compute":
		return "Invalid OAuth scope."
	}
	return ""
}

func decode(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.Unmarshal(raw, into) == nil
}
