package adopt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// kubeconfigWith returns a kubeconfig whose user has these fields.
func kubeconfigWith(user string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"https://api.lab.example.com:6443"}}],
"users":[{"name":"u","user":{%s}}]}`, user)
}

const (
	token   = `"token":"s3cr3t"`
	program = `"exec":{"command":"aws","apiVersion":"client.authentication.k8s.io/v1","interactiveMode":"Never"}`
)

// certificateUntil returns the fields of a user with a client certificate.
func certificateUntil(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return fmt.Sprintf(`"client-certificate-data":%q`, base64.StdEncoding.EncodeToString(raw))
}

func TestTheHubCanUseTheKubeconfig(t *testing.T) {
	replace := func(old, next string) string { return strings.Replace(kubeconfigWith(token), old, next, 1) }
	for name, c := range map[string]struct{ kubeconfig, want string }{
		"a token":                        {kubeconfigWith(token), ""},
		"a certificate that is valid":    {kubeconfigWith(certificateUntil(t, now.Add(time.Minute))), ""},
		"a certificate that has expired": {kubeconfigWith(certificateUntil(t, now)), `the credentials of user entry "u" expired at 2026-11-21T12:00:00Z`},
		"a program":                      {kubeconfigWith(program), `user entry "u" runs a program`},
		"a plugin":                       {kubeconfigWith(`"auth-provider":{"name":"gcp"}`), `user entry "u" uses a plugin`},
		"a file with a token":            {kubeconfigWith(`"tokenFile":"/t"`), `user entry "u" reads a file (tokenFile)`},
		"files with a certificate":       {kubeconfigWith(`"client-certificate":"/c","client-key":"/k"`), `user entry "u" reads files`},
		"a file with the authority":      {replace(`"server"`, `"certificate-authority":"/ca","server"`), `cluster entry "c" reads a file`},
		"no credentials":                 {kubeconfigWith(""), `user entry "u" has no credentials`},
		"no server":                      {replace("https://api.lab.example.com:6443", ""), `cluster entry "c" has no URL`},
		"no current context":             {replace(`"current-context":"x"`, `"current-context":""`), "no current context"},
		"a context that does not exist":  {replace(`"current-context":"x"`, `"current-context":"y"`), `context "y" is missing`},
		"a context without its user":     {replace(`"user":"u"`, `"user":"v"`), `context "x" is missing or incomplete`},
		"a context that names no user":   {replace(`"user":"u"`, `"user":""`), `names cluster "c" and user ""`},
		"no kubeconfig":                  {"s3cr3t", "is not a kubeconfig"},
		"nothing":                        {"", "is not a kubeconfig"},
		"a field of the wrong type":      {kubeconfigWith(`"token":["s3cr3t"]`), "is not a kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			access, err := parseAccess([]byte(c.kubeconfig), "file", now)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %s", err, c.want)
			case err != nil && strings.Contains(err.Error(), "s3cr3t"):
				t.Errorf("the error quotes credentials: %v", err)
			case err == nil && access.Server != "https://api.lab.example.com:6443":
				t.Errorf("server %s", access.Server)
			}
		})
	}
}

func TestTheEarlierEndOfCertificateAndTokenCounts(t *testing.T) {
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, now.Add(time.Hour).Unix()))
	jwt := `"token":"x.` + claims + `.x"`
	for name, c := range map[string]struct {
		user string
		want time.Time
	}{
		"a token":                {jwt, now.Add(time.Hour)},
		"the certificate first":  {jwt + "," + certificateUntil(t, now.Add(time.Minute)), now.Add(time.Minute)},
		"the token first":        {jwt + "," + certificateUntil(t, now.Add(2*time.Hour)), now.Add(time.Hour)},
		"a token that is opaque": {token, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			access, err := parseAccess([]byte(kubeconfigWith(c.user)), "file", now)
			if err != nil || !access.Expires.Equal(c.want) {
				t.Errorf("expires at %s, %v; want %s", access.Expires, err, c.want)
			}
		})
	}
}

func TestBaseDomains(t *testing.T) {
	for server, want := range map[string]string{
		"https://api.lab.ci.example.com:6443":       "ci.example.com",
		"https://API.Lab.example.com":               "example.com",
		"https://master-1.example.com:6443":         "example.com",
		"https://example.com":                       "example.com",
		"https://10.0.0.1:6443":                     defaultBaseDomain,
		"https://[::1]:6443":                        defaultBaseDomain,
		"https://localhost:6443":                    defaultBaseDomain,
		"https://x.gr7.eu-west-1.eks.amazonaws.com": "gr7.eu-west-1.eks.amazonaws.com",
	} {
		if got := domainOf(server, "lab"); got != want {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
	}
}

func TestServerAddresses(t *testing.T) {
	for server, want := range map[string]string{
		"https://API.example.com/": "api.example.com:443", "https://api.example.com:6443": "api.example.com:6443", "http://x": "x:80", "": "", "x": "",
	} {
		if got := serverAddress(server); got != want {
			t.Errorf("%q: %q, want %q", server, got, want)
		}
	}
}
