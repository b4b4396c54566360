package cabundle

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"hotspare.io/hotspare/internal/fault"
)

// authority is a server with its own certificate, which no system trusts.
type authority struct {
	*httptest.Server
	pem string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = nil
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return authority{s, string(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))}
}

const secretText = "c2VjcmV0" // stands for text that must not be repeated

func TestParse(t *testing.T) {
	a, b := newAuthority(t).pem, newAuthority(t).pem
	privateKey := "-----BEGIN PRIVATE KEY-----\n" + secretText + "\n-----END PRIVATE KEY-----\n"
	for name, tc := range map[string]struct {
		raw, wantErr string
		want         int
	}{
		"one certificate":                     {raw: a, want: 1},
		"several certificates":                {raw: a + b, want: 2},
		"comments around certificates":        {raw: "# Example CA\n" + a + "\nsubject=/CN=b\n" + b, want: 2},
		"lines that end like those of DOS":    {raw: strings.ReplaceAll(a, "\n", "\r\n"), want: 1},
		"nothing":                             {wantErr: "there is no PEM certificate"},
		"a password":                          {raw: secretText, wantErr: "there is no PEM certificate"},
		"a private key":                       {raw: a + privateKey, wantErr: "PEM block 2 of 2 is a private key: remove the key"},
		"a request":                           {raw: "-----BEGIN " + secretText + "-----\nAAAA\n-----END " + secretText + "-----\n", wantErr: "PEM block 1 of 1 is not of type CERTIFICATE"},
		"a block that is no certificate":      {raw: b + "-----BEGIN CERTIFICATE-----\n" + secretText + "\n-----END CERTIFICATE-----\n", wantErr: "PEM block 2 of 2 is not an X.509 certificate"},
		"a certificate without its end":       {raw: a + strings.TrimSuffix(b, "-----END CERTIFICATE-----\n"), wantErr: "only 1 of 2 PEM blocks are complete"},
		"one that was cut, before another":    {raw: a[:200] + "\n" + b, wantErr: "only 1 of 2 PEM blocks are complete"},
		"indented by a mistake in the YAML":   {raw: a + "  " + strings.ReplaceAll(b, "\n", "\n  "), wantErr: "only 1 of 2 PEM blocks are complete"},
		"letters that are not those of PEM":   {raw: strings.Replace(a, "MI", "!!", 1), wantErr: "only 0 of 1 PEM blocks are complete"},
		"a certificate in DER and not in PEM": {raw: "\x30\x82\x01", wantErr: "there is no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.raw))
			switch {
			case tc.wantErr == "" && (err != nil || len(got) != tc.want):
				t.Errorf("got %d certificates, %v; want %d", len(got), err, tc.want)
			case tc.wantErr != "" && (err == nil || len(got) > 0 || !strings.Contains(err.Error(), tc.wantErr)):
				t.Errorf("got %d certificates, %v; want none, and %q", len(got), err, tc.wantErr)
			case err != nil && strings.Contains(err.Error(), secretText):
				t.Errorf("the error quotes the Secret: %v", err)
			}
		})
	}
}

func TestEncodeWritesEachCertificateOnceInItsOrder(t *testing.T) {
	a, b := newAuthority(t).pem, newAuthority(t).pem
	found, err := Parse([]byte("# comment\n" + b + a + b))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Encode(found)); got != b+a {
		t.Errorf("got\n%s\nwant\n%s", got, b+a)
	}
}

func TestPoolKeepsTheSystemsCertificates(t *testing.T) {
	if SystemPoolWith() != nil || SystemPoolWith(nil, []byte("\n")) != nil {
		t.Error("without certificates it is not the system's own pool")
	}
	a := newAuthority(t)
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Skip("this system has no certificates")
	}
	want.AddCert(a.Certificate())
	if !SystemPoolWith([]byte(a.pem)).Equal(want) {
		t.Error("the pool is not the system's with one more certificate")
	}
}

// hub contains the Secrets of a hub.
type hub struct {
	data  map[types.NamespacedName]map[string][]byte
	err   error
	reads int
}

func (h *hub) read(_ context.Context, name types.NamespacedName) (map[string][]byte, error) {
	h.reads++
	if h.err != nil {
		return nil, h.err
	}
	data, ok := h.data[name]
	if !ok {
		return nil, fault.NewDenied("Secret %s in namespace %s does not exist: create it", name.Name, name.Namespace)
	}
	return data, nil
}

func (h *hub) put(name types.NamespacedName, content string) {
	h.data[name] = map[string][]byte{Key: []byte(content), "tls.key": []byte(secretText)}
}

var (
	one = types.NamespacedName{Namespace: "hotspare-system", Name: "one"}
	two = types.NamespacedName{Namespace: "hotspare-system", Name: "two"}
)

type lab struct {
	*hub
	*Source
	clock *testclock.FakePassiveClock
}

func newLab(names ...types.NamespacedName) lab {
	h := &hub{data: map[types.NamespacedName]map[string][]byte{}}
	clock := testclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return lab{h, NewSource(names, h.read, clock), clock}
}

func (l lab) wait() { l.clock.SetTime(l.clock.Now().Add(maxAge)) }

func TestReadAcceptsAllSecretsOrNone(t *testing.T) {
	a, b := newAuthority(t).pem, newAuthority(t).pem
	for name, tc := range map[string]struct {
		data    func(*hub)
		wantErr string
	}{
		"all are well-formed":       {func(h *hub) { h.put(one, a); h.put(two, b) }, ""},
		"one does not exist":        {func(h *hub) { h.put(one, a) }, "Secret two in namespace hotspare-system does not exist: create it, or start hotspare without it in --additional-certificate-authorities"},
		"one has no such key":       {func(h *hub) { h.put(one, a); h.data[two] = map[string][]byte{"tls.crt": []byte(b)} }, "Secret hotspare-system/two has no key ca.crt: add it"},
		"one has a comment":         {func(h *hub) { h.put(one, a); h.put(two, b+"# "+secretText) }, ""},
		"one is cut":                {func(h *hub) { h.put(one, a); h.put(two, b[:90]) }, "key ca.crt of Secret hotspare-system/two: only 0 of 1 PEM blocks are complete: copy"},
		"together they are too big": {func(h *hub) { h.put(one, a); h.put(two, many(t)) }, "a Secret holds at most 1000000: remove some"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(one, two)
			tc.data(l.hub)
			got, err := l.Read(t.Context())
			if tc.wantErr == "" {
				if err != nil || string(got) != a+b {
					t.Errorf("got %v\n%s", err, got)
				}
				return
			}
			if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), tc.wantErr) || strings.Contains(err.Error(), secretText) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
		})
	}
	if got, err := (*Source)(nil).Read(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("without Secrets: %q, %v", got, err)
	}
}

// many returns more certificates than fit into a Secret.
func many(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	template.DNSNames = []string{strings.Repeat("a", 500_000)}
	var all bytes.Buffer
	for serial := range int64(2) {
		template.SerialNumber = big.NewInt(serial + 1)
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))
	}
	return all.String()
}

func TestLatestFollowsTheSecrets(t *testing.T) {
	a, b, c := newAuthority(t).pem, newAuthority(t).pem, newAuthority(t).pem
	l := newLab(one, two)
	l.put(one, a)
	l.put(two, b)
	var logged strings.Builder
	ctx := logr.NewContext(t.Context(), funcr.New(func(prefix, args string) { logged.WriteString(prefix + args + "\n") }, funcr.Options{}))
	expect := func(what, want, problem string) {
		t.Helper()
		got := l.LatestBundle(ctx)
		if string(got.PEM) != want || !strings.Contains(got.Problem, problem) || (got.Problem == "") != (problem == "") {
			t.Errorf("%s: problem %q, want %q; certificates\n%s\nwant\n%s", what, got.Problem, problem, got.PEM, want)
		}
	}
	expect("at first", a+b, "")
	l.put(two, c)
	reads := l.reads
	expect("within 10 seconds nothing is read", a+b, "")
	if l.reads != reads {
		t.Errorf("%d reads", l.reads-reads)
	}
	l.wait()
	expect("a rotated Secret", a+c, "")
	l.put(two, c[:100]+secretText)
	l.wait()
	expect("a malformed Secret counts with what it held", a+c, "key ca.crt of Secret hotspare-system/two: only 0 of 1")
	l.wait()
	expect("still", a+c, "hotspare-system/two")
	delete(l.data, two)
	l.wait()
	expect("a deleted Secret is not trusted", a, "Secret two in namespace hotspare-system does not exist")
	l.put(two, b)
	l.wait()
	expect("when it is back", a+b, "")
	l.err = errors.New("the API is down")
	l.wait()
	expect("while the API is down", a+b, "the API is down")
	l.err = nil
	expect("the next call asks again", a+b, "")
	ended, cancel := context.WithCancel(ctx)
	cancel()
	l.err = context.Canceled
	l.wait()
	if got := l.LatestBundle(ended); string(got.PEM) != a+b || got.Problem != "" {
		t.Errorf("for a caller that has left: problem %q", got.Problem)
	}
	if n := strings.Count(logged.String(), "cannot read all"); n != 3 {
		t.Errorf("logged %d problems, want each once, 3:\n%s", n, &logged)
	}
	if strings.Contains(logged.String(), secretText) {
		t.Errorf("a Secret is logged:\n%s", &logged)
	}
	if got := (*Source)(nil).LatestBundle(ctx); len(got.PEM) > 0 || got.Problem != "" {
		t.Errorf("without Secrets: %+v", got)
	}
}

func TestTransportTrustsTheCertificatesOfTheMoment(t *testing.T) {
	server, other := newAuthority(t), newAuthority(t)
	l := newLab(one)
	l.put(one, other.pem)
	client := &http.Client{Transport: l.NewTransport(&http.Transport{})}
	get := func() error {
		t.Helper()
		l.wait()
		response, err := client.Get(server.URL)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	var untrusted *tls.CertificateVerificationError
	if err := get(); !errors.As(err, &untrusted) {
		t.Errorf("without its certificate: %v", err)
	}
	l.put(one, other.pem+server.pem)
	if err := get(); err != nil {
		t.Errorf("with its certificate: %v", err)
	}
	l.put(one, other.pem)
	if err := get(); !errors.As(err, &untrusted) {
		t.Errorf("after its certificate was removed: %v", err)
	}
	delete(l.data, one)
	if err := get(); !errors.As(err, &untrusted) || !strings.Contains(err.Error(), "Secret one in namespace hotspare-system does not exist") {
		t.Errorf("without the Secret the error does not say so: %v", err)
	}
	base := &http.Transport{}
	if (*Source)(nil).NewTransport(base) != http.RoundTripper(base) {
		t.Error("without Secrets it is not the transport itself")
	}
}
