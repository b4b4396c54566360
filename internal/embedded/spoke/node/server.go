package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"

	"hotspare.io/hotspare/internal/embedded/pki"
)

// server serves the node's kubelet port. It exists for its certificate, and answers requests for
// logs and commands by explaining that pods are not containers.
type server struct {
	listener net.Listener
	manager  certificate.Manager
	roots    *x509.CertPool
	pods     podServer
}

// newServer starts to listen. It does not wait for the certificate: the API must know the node's
// address before it approves the request.
func newServer(ctx context.Context, o Options, i *identity) (*server, error) {
	manager, err := certificate.NewManager(&certificate.Config{
		ClientsetFn: func(*tls.Certificate) (kubernetes.Interface, error) { return i.client, nil },
		Template: &x509.CertificateRequest{
			Subject:     certificateSubject(o.Name),
			DNSNames:    []string{o.Name},
			IPAddresses: []net.IP{net.ParseIP(address)},
		},
		SignerName:       certificatesv1.KubeletServingSignerName,
		GetUsages:        certificate.DefaultKubeletServingGetUsages,
		CertificateStore: newCertificateStore(o.Dir, servingName),
		Name:             "serving",
		Ctx:              &ctx,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager of the serving certificate: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return &server{listener: listener, manager: manager, roots: i.roots, pods: podServer{cause: o.SimulationCause}}, nil
}

func (s *server) listenPort() int {
	return s.listener.Addr().(*net.TCPAddr).Port
}

// close closes the listener, if serveTLS has not done so.
func (s *server) close() {
	_ = s.listener.Close() // usually closed already
}

// serveTLS serves until ctx ends.
func (s *server) serveTLS(ctx context.Context) error {
	s.manager.Start()
	defer s.manager.Stop()
	h := &http.Server{
		Handler:           s.pods.newHandler(),
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion:       tls.VersionTLS12,
			GetCertificate:   s.servingCertificate,
			ClientAuth:       tls.RequireAndVerifyClientCert,
			ClientCAs:        s.roots,
			VerifyConnection: requireAPIServer,
		},
	}
	context.AfterFunc(ctx, func() { _ = h.Close() }) // open connections are closed without notice
	if err := h.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

func (s *server) servingCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	current := s.manager.Current()
	if current == nil {
		return nil, errors.New("no serving certificate yet")
	}
	return current, nil
}

// requireAPIServer rejects all clients except the API server, even if their certificates are signed
// by the cluster's CA.
func requireAPIServer(state tls.ConnectionState) error {
	if name := state.PeerCertificates[0].Subject.CommonName; name != pki.KubeletClientUser {
		return fmt.Errorf("%s may not call the node", name)
	}
	return nil
}
