// Package csrtest creates certificate requests like those of kubelets, for tests.
package csrtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BootstrapUser is the account that machines boot with, and its groups.
const BootstrapUser = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// ClientRequest returns the request that a node's machine makes when its certificate has expired,
// with the given creation time.
func ClientRequest(t *testing.T, name, node string, made time.Time) certificatesv1.CertificateSigningRequest {
	t.Helper()
	return certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", CreationTimestamp: metav1.NewTime(made)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    RequestPEM(t, "system:node:"+node, "system:nodes"),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Username:   BootstrapUser,
			Groups:     []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
		},
	}
}

// RequestPEM returns a signed request with that subject and a new key.
func RequestPEM(t *testing.T, name string, organizations ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: name, Organization: organizations},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}
