package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"
)

// identity is the node's identity in the API: a client certificate that is renewed automatically,
// and a client that always uses the newest one.
type identity struct {
	manager         certificate.Manager
	client          kubernetes.Interface // authenticates as the node
	bootstrapClient kubernetes.Interface // uses the bootstrap credential
	roots           *x509.CertPool
	dialer          *connrotation.Dialer
	connectionCert  *tls.Certificate // the certificate that open connections were made with
}

func newIdentity(ctx context.Context, o Options) (*identity, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(o.Bootstrap.CAData) {
		return nil, errors.New("the bootstrap credential has no CA")
	}
	i := &identity{roots: roots, dialer: connrotation.NewDialer((&net.Dialer{Timeout: 10 * time.Second}).DialContext)}
	var err error
	if i.bootstrapClient, err = kubernetes.NewForConfig(o.Bootstrap); err != nil {
		return nil, fmt.Errorf("creating a bootstrap client: %w", err)
	}
	if i.client, err = kubernetes.NewForConfig(i.clientConfig(o.Bootstrap)); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	i.manager, err = certificate.NewManager(&certificate.Config{
		ClientsetFn:      func(current *tls.Certificate) (kubernetes.Interface, error) { return i.clientFor(current), nil },
		Template:         &x509.CertificateRequest{Subject: certificateSubject(o.Name)},
		SignerName:       certificatesv1.KubeAPIServerClientKubeletSignerName,
		GetUsages:        certificate.DefaultKubeletClientGetUsages,
		CertificateStore: newCertificateStore(o.Dir, clientName),
		Name:             "client",
		Ctx:              &ctx,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager of the client certificate: %w", err)
	}
	return i, nil
}

// clientFor returns the client for the given certificate. Without a valid certificate, which
// includes an expired one, the node uses the bootstrap identity.
func (i *identity) clientFor(current *tls.Certificate) kubernetes.Interface {
	if current == nil {
		return i.bootstrapClient
	}
	return i.client
}

// clientConfig returns the config with which the node reaches the API, using its current
// certificate.
func (i *identity) clientConfig(bootstrap *rest.Config) *rest.Config {
	return &rest.Config{
		Host: bootstrap.Host,
		QPS:  -1, // unlimited; a kubelet's 50 a second are more than a node here needs
		Transport: utilnet.SetTransportDefaults(&http.Transport{
			DialContext: i.dialer.DialContext,
			TLSClientConfig: &tls.Config{
				MinVersion:           tls.VersionTLS12,
				RootCAs:              i.roots,
				GetClientCertificate: i.presentCertificate,
			},
		}),
	}
}

// presentCertificate returns the certificate to present, which is empty if there is none.
func (i *identity) presentCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if current := i.manager.Current(); current != nil {
		return current, nil
	}
	return &tls.Certificate{}, nil
}

// waitForCertificate waits until the node has a valid certificate.
func (i *identity) waitForCertificate(ctx context.Context) error {
	if err := wait.PollUntilContextCancel(ctx, pollInterval, true, i.canRequestCertificate); err != nil {
		return err
	}
	i.manager.Start()
	return wait.PollUntilContextCancel(ctx, pollInterval/4, true, func(context.Context) (bool, error) {
		i.connectionCert = i.manager.Current()
		return i.connectionCert != nil, nil
	})
}

// canRequestCertificate reports whether the API is reachable and allows the node to request
// certificates. If the API refuses, as it does at first in a new cluster, client-go's manager waits
// at least two seconds before it asks again.
func (i *identity) canRequestCertificate(ctx context.Context) (bool, error) {
	review, err := i.clientFor(i.manager.Current()).AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Verb: "create",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		klog.FromContext(ctx).V(1).Info("the API does not answer yet", "reason", err)
		return false, nil
	}
	return review.Status.Allowed, nil
}

// closeStaleConnections closes the connections that were made with an old certificate, until ctx
// ends. The API server checks a connection's certificate at each request.
func (i *identity) closeStaleConnections(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, time.Second, false, func(context.Context) (bool, error) {
		if current := i.manager.Current(); current != i.connectionCert {
			i.connectionCert = current
			i.dialer.CloseAll()
		}
		return false, nil
	})
	return ignoreCancellation(ctx, err)
}

func (i *identity) stop() {
	i.manager.Stop()
	i.dialer.CloseAll()
}

// certificateSubject returns the subject of a node's certificates.
func certificateSubject(name string) pkix.Name {
	return pkix.Name{CommonName: userPrefix + name, Organization: []string{"system:nodes"}}
}
