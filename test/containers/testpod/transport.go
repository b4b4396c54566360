package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
)

// transport trusts the CA of the pod's cluster.
func transport() *http.Transport {
	pool := x509.NewCertPool()
	if ca, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"); err == nil {
		pool.AppendCertsFromPEM(ca)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
}
