package platform_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/platform"
)

// hub is a fake of the parts of a hub's API that reading Secrets needs.
type hub map[types.NamespacedName]map[string]string

func (h hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	case r.URL.Path == "/api/v1":
		answer = metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "secrets", SingularName: "secret", Namespaced: true, Kind: "Secret", Verbs: metav1.Verbs{"get"}}},
		}
	case len(parts) == 6 && h[types.NamespacedName{Namespace: parts[3], Name: parts[5]}] != nil:
		s := corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: map[string][]byte{}}
		for key, value := range h[types.NamespacedName{Namespace: parts[3], Name: parts[5]}] {
			s.Data[key] = []byte(value)
		}
		answer = s
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Each actuator uses a server whose certificate is only in a Secret of the option.
func TestActuatorsOfPrivateEndpointsTrustTheCertificateAuthorities(t *testing.T) {
	for name, section := range map[string]string{
		"azure":     `{"region":"r","credentialsSecretRef":{"name":"creds"}}`,
		"gcp":       `{"region":"r","credentialsSecretRef":{"name":"creds"}}`,
		"openstack": `{"cloud":"c","credentialsSecretRef":{"name":"creds"}}`,
		"baremetal": `{}`,
		"vsphere":   `{"vCenter":"HOST","credentialsSecretRef":{"name":"creds"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			private := cabundletest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				http.Error(w, "no", http.StatusTeapot)
			}), azureLogin)
			host := strings.TrimPrefix(private.URL, "https://")
			h := hub{
				{Namespace: "ns", Name: "creds"}:           credentials(t, private.URL),
				{Namespace: "ns", Name: "c-bmc"}:           {"hosts.yaml": "[{name: m, role: master, bmc: {address: 'redfish://" + host + "/redfish/v1/Systems/1', username: u, password: p}}]"},
				{Namespace: "hotspare-system", Name: "ca"}: {"ca.crt": string(cabundletest.CertificatePEM(private))},
			}
			api := httptest.NewServer(h)
			t.Cleanup(api.Close)
			ref := cloud.Ref{Cluster: types.NamespacedName{Namespace: "ns", Name: "c"}, InfraID: "c-12345"}
			raw := &runtime.RawExtension{Raw: []byte(strings.Replace(section, "HOST", host, 1))}
			if name == "azure" { // its endpoints cannot be configured, but their addresses can
				redirect(t, host)
				ref.Metadata = &hivev1.ClusterMetadata{Platform: &runtime.RawExtension{Raw: []byte(`{"azure":{"resourceGroupName":"g"}}`)}}
			}
			ref.Platform = map[string]hivev1.Platform{"azure": {Azure: raw}, "gcp": {GCP: raw}, "openstack": {OpenStack: raw}, "baremetal": {BareMetal: raw}, "vsphere": {VSphere: raw}}[name]
			observe := func(authorities ...types.NamespacedName) error {
				s, err := platform.New(&rest.Config{Host: api.URL}, platform.Options{CertificateAuthorities: authorities})
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Actuators[name].Observe(t.Context(), ref)
				return err
			}
			if err := observe(); asked.Load() > 0 || err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("without the Secret: %d requests, %v", asked.Load(), err)
			}
			if err := observe(types.NamespacedName{Namespace: "hotspare-system", Name: "ca"}); asked.Load() == 0 || strings.Contains(err.Error(), "certificate") {
				t.Errorf("with the Secret: %d requests, %v", asked.Load(), err)
			}
		})
	}
}

// azureLogin is the host of Azure's token server.
const azureLogin = "login.microsoftonline.com"

// redirect makes Go's default transport connect to host instead of azureLogin.
func redirect(t *testing.T, host string) {
	t.Helper()
	before := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = before })
	http.DefaultTransport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == azureLogin+":443" {
			address = host
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
}

// credentials returns the credentials of all platforms, for the server at url.
func credentials(t *testing.T, url string) map[string]string {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "client_email": "e", "token_uri": url,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"osServicePrincipal.json": `{"clientId":"i","clientSecret":"s","tenantId":"t","subscriptionId":"u"}`,
		"username":                "u", "password": "p", "osServiceAccount.json": string(account),
		"clouds.yaml": "clouds: {c: {auth: {auth_url: '" + url + "', username: u, password: p, user_domain_name: d, project_name: p, project_domain_name: d}}}",
	}
}
