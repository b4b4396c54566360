package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// tokenIssuer is an OpenID Connect issuer that issues tokens as that of GitHub Actions does.
type tokenIssuer struct {
	// issuer serves the keys, by HTTPS. api issues tokens to jobs, at the path of their repository.
	issuer, api *httptest.Server
	key         *rsa.PrivateKey
}

// repositoryRoot is the folder of action.yml and docs.
var repositoryRoot = filepath.Join("..", "..")

const (
	tokenKeyID    = "1"
	tokenAudience = "hotspare"
	// tokenOwnerID is the ID of the organization in docs/ci/tokens.md.
	tokenOwnerID = "12345678"
	// jobSecret is what a job shows to get tokens.
	jobSecret = "secret-of-the-job"
	// tokenLifetime is shorter than a job of the tests waits for its cluster.
	tokenLifetime = 45 * time.Second
)

func startTokenIssuer() (*tokenIssuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	i := &tokenIssuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{
			"issuer": i.issuer.URL, "jwks_uri": i.issuer.URL + "/keys",
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		exponent := big.NewInt(int64(key.E)).Bytes()
		writeJSON(w, map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": tokenKeyID,
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(exponent),
		}}})
	})
	i.issuer = httptest.NewTLSServer(mux)
	i.api = httptest.NewServer(http.HandlerFunc(i.issueToJob))
	return i, nil
}

// issueToJob answers as GitHub does at the address in ACTIONS_ID_TOKEN_REQUEST_URL.
func (i *tokenIssuer) issueToJob(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+jobSecret {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	token, err := i.sign(i.key, i.claimsOf(strings.Trim(r.URL.Path, "/"), r.URL.Query().Get("audience"), time.Now()))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	writeJSON(w, map[string]any{"count": 1, "value": token})
}

// claimsOf returns claims as in a token of GitHub.
func (i *tokenIssuer) claimsOf(repository, audience string, issued time.Time) jwt.MapClaims {
	owner, _, _ := strings.Cut(repository, "/")
	return jwt.MapClaims{
		"iss": i.issuer.URL, "aud": audience, "sub": "repo:" + repository + ":ref:refs/heads/main",
		"repository": repository, "repository_owner": owner, "repository_owner_id": tokenOwnerID, "ref": "refs/heads/main",
		"iat": issued.Unix(), "nbf": issued.Unix(), "exp": issued.Add(tokenLifetime).Unix(),
	}
}

func (i *tokenIssuer) sign(key *rsa.PrivateKey, claims jwt.MapClaims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header["kid"] = tokenKeyID
	return t.SignedString(key)
}

// writeConfiguration writes the AuthenticationConfiguration of docs/ci/tokens.md for this issuer into dir,
// and returns its path.
func (i *tokenIssuer) writeConfiguration(dir string) (string, error) {
	page, err := os.ReadFile(filepath.Join(repositoryRoot, "docs", "ci", "tokens.md"))
	if err != nil {
		return "", err
	}
	config := regexp.MustCompile("(?s)```yaml\n(apiVersion: apiserver.config.k8s.io/v1\n.*?)```").FindSubmatch(page)[1]
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.issuer.Certificate().Raw})
	quoted, err := json.Marshal(string(ca))
	if err != nil {
		return "", err
	}
	const issuer = "url: https://token.actions.githubusercontent.com\n"
	text := strings.Replace(string(config), issuer, "url: "+i.issuer.URL+"\n    certificateAuthority: "+string(quoted)+"\n", 1)
	path := filepath.Join(dir, "authentication.yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// curlVariable is set in processes of this test that do what cluster.sh needs of curl.
const curlVariable = "RUN_AS_CURL"

// fetchLikeCurl gets the URL of the last argument, with the header in the configuration on standard input, and returns
// the exit code.
func fetchLikeCurl() int {
	config, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	r, err := http.NewRequest(http.MethodGet, os.Args[len(os.Args)-1], http.NoBody)
	if err != nil {
		return 3
	}
	_, value, _ := strings.Cut(strings.Trim(strings.TrimPrefix(string(config), "header = "), `"`), ": ")
	r.Header.Set("Authorization", value)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 7
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 22
	}
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return 23
	}
	return 0
}

func (i *tokenIssuer) close() {
	i.issuer.Close()
	i.api.Close()
}

func writeJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // a client that has gone away needs no answer
}
