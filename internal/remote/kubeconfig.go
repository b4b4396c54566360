package remote

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"hotspare.io/hotspare/internal/cabundle"
)

// callTimeout limits every call: a spoke whose packets are dropped must not block a worker.
const callTimeout = 10 * time.Second

// idleTimeout closes idle connections: those to a cluster that has been stopped since are dead.
const idleTimeout = 30 * time.Second

var (
	errUnreadable = errors.New("its admin kubeconfig cannot be read")
	errProgram    = errors.New("its admin kubeconfig would run a program on the hub")
	errFile       = errors.New("its admin kubeconfig would read files on the hub")
	// errNoIdentity is the hub's own.
	errNoIdentity = errors.New("issuing the hub's client certificate for the cluster")
)

// parseKubeconfig parses a kubeconfig. It does not wrap the parser's errors, because they quote
// their input.
func parseKubeconfig(kubeconfig []byte) (*rest.Config, error) {
	raw, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errUnreadable
	}
	if err := checkKubeconfig(raw); err != nil {
		return nil, err
	}
	c, err := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, errUnreadable
	}
	c.Timeout = callTimeout
	c.QPS = -1 // no client-side limit: callers limit their requests
	return c, nil
}

// checkKubeconfig refuses a kubeconfig that would access the hub itself. It runs before a client
// is configured, because configuring a client already reads the files.
func checkKubeconfig(c *clientcmdapi.Config) error {
	for _, u := range c.AuthInfos {
		switch {
		case u.Exec != nil || u.AuthProvider != nil:
			return errProgram
		case u.TokenFile != "" || u.ClientCertificate != "" || u.ClientKey != "":
			return errFile
		}
	}
	for _, cluster := range c.Clusters {
		if cluster.CertificateAuthority != "" {
			return errFile
		}
	}
	return nil
}

// newHTTPClient returns a separate client for each kubeconfig: client-go never releases its
// shared transports, while clusters are created and deleted all the time.
func newHTTPClient(c *rest.Config, authorities cabundle.Bundle) (*http.Client, error) {
	verify, err := rest.TLSConfigFor(c)
	if err != nil {
		return nil, errUnreadable
	}
	verify = trustAuthorities(verify, authorities)
	proxy := http.ProxyFromEnvironment
	if c.Proxy != nil {
		proxy = c.Proxy
	}
	direct := authorities.WrapTransport(&http.Transport{
		Proxy:               proxy,
		DialContext:         (&net.Dialer{Timeout: callTimeout}).DialContext,
		TLSClientConfig:     verify,
		TLSHandshakeTimeout: callTimeout,
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: 1,
	})
	transport, err := rest.HTTPWrappersForConfig(c, limitedTransport{direct, maxAnswer})
	if err != nil {
		return nil, errUnreadable
	}
	return &http.Client{Transport: transport, Timeout: callTimeout}, nil
}

// trustAuthorities returns verify with the certificates of authorities in addition to those of
// the kubeconfig, or to the system's if the kubeconfig has none.
func trustAuthorities(verify *tls.Config, authorities cabundle.Bundle) *tls.Config {
	if len(authorities.PEM) == 0 {
		return verify
	}
	if verify == nil {
		verify = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if verify.RootCAs == nil {
		verify.RootCAs = cabundle.SystemPoolWith(authorities.PEM)
		return verify
	}
	verify.RootCAs.AppendCertsFromPEM(authorities.PEM)
	return verify
}
