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

	"hotspare.io/hotspare/internal/manager"
	"hotspare.io/hotspare/internal/manager/metricsauthz"
)

// configureMetrics configures one to serve metrics. The returned Runnable, if any, reloads the
// certificate when it changes and must run with the manager.
func (f *flags) configureMetrics(log logr.Logger, cfg *rest.Config, one *manager.Replica) (crmanager.Runnable, error) {
	if f.metrics == off {
		return nil, nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	watcher, err := configureCertificate(settings, "metrics", f.certificates, nil)
	if err != nil {
		return nil, err
	}
	l, err := listenUnlessOff(log, "metrics", f.metrics)
	if err != nil {
		return nil, err
	}
	one.Scrapes, one.Guard = tls.NewListener(l, settings), newMetricsGuard(log, cfg)
	if watcher == nil { // not a nil pointer in an interface
		return nil, nil
	}
	return watcher, nil
}

// newMetricsGuard returns a guard that admits clients whose token the hub authenticates and
// authorizes to get /metrics.
func newMetricsGuard(log logr.Logger, cfg *rest.Config) func(http.Handler) (http.Handler, error) {
	return func(h http.Handler) (http.Handler, error) {
		g, err := metricsauthz.New(cfg, log.WithName("metrics"))
		if err != nil {
			return nil, err
		}
		return g.WrapHandler(h), nil
	}
}

// configureCertificate sets the serving certificate: from the folder, or else a self-signed one for
// names and the names of this computer.
func configureCertificate(settings *tls.Config, what, folder string, names []string) (*certwatcher.CertWatcher, error) {
	if folder != "" {
		w, err := certwatcher.New(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("reading --%s-cert-dir: %w", what, err)
		}
		settings.GetCertificate = w.GetCertificate
		return w, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", what, err)
	}
	chain, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.IPv4(127, 0, 0, 1)}, append([]string{"localhost"}, names...))
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", what, err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", what, err)
	}
	settings.Certificates = []tls.Certificate{pair}
	return nil, nil
}
