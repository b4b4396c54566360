package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"

	"hotspare.io/hotspare/internal/manager"
)

// watched has one serve metrics. What it returns, if anything, is to run with the
// manager: it reads the certificate again when that changes.
func (f *flags) watched(log logr.Logger, cfg *rest.Config, one *manager.Replica) (crmanager.Runnable, error) {
	if f.metrics == off {
		return nil, nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	watcher, err := f.certify(settings)
	if err != nil {
		return nil, err
	}
	l, err := listen(log, "metrics", f.metrics)
	if err != nil {
		return nil, err
	}
	one.Scrapes, one.Guard = tls.NewListener(l, settings), guard(log, cfg)
	if watcher == nil { // not a nil pointer in an interface
		return nil, nil
	}
	return watcher, nil
}

// guard lets in whoever the hub knows by their token, and lets get /metrics.
func guard(log logr.Logger, cfg *rest.Config) func(http.Handler) (http.Handler, error) {
	return func(h http.Handler) (http.Handler, error) {
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			return nil, fmt.Errorf("making a client to ask who may see metrics: %w", err)
		}
		filter, err := filters.WithAuthenticationAndAuthorization(cfg, client)
		if err != nil {
			return nil, err
		}
		return filter(log.WithName("metrics"), h)
	}
}

// certify gives the settings a certificate: that of the folder, or one made now.
func (f *flags) certify(settings *tls.Config) (*certwatcher.CertWatcher, error) {
	if f.certificates != "" {
		w, err := certwatcher.New(filepath.Join(f.certificates, "tls.crt"), filepath.Join(f.certificates, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("reading --metrics-cert-dir: %w", err)
		}
		settings.GetCertificate = w.GetCertificate
		return w, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("making a certificate for metrics: %w", err)
	}
	chain, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost"})
	if err != nil {
		return nil, fmt.Errorf("making a certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for metrics: %w", err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return nil, nil
}
