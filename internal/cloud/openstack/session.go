package openstack

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	sdk "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/fault"
)

// microversion is the first version of Nova's API (OpenStack Stein) that lists the servers of a
// cell that is down, with the data that is known, instead of leaving them out. It also supports
// tags and locks.
const microversion = "2.69"

// session is a connection to a cloud with one cluster's credentials, for one call of Power. Every
// call gets its own token, so revoked credentials stop working with the next call.
type session struct {
	*identity
	provider *gophercloud.ProviderClient
	nova     *gophercloud.ServiceClient
}

// openSession logs in. The caller must call closeIdleConnections on the session.
func (i *identity) openSession(ctx context.Context) (*session, error) {
	provider, err := sdk.NewClient(i.Auth.URL)
	if err != nil {
		return nil, i.credentialsError("auth.auth_url cannot be used")
	}
	provider.HTTPClient = *i.newHTTPClient()
	s := &session{identity: i, provider: provider}
	if err := s.authenticateSession(ctx); err != nil {
		s.closeIdleConnections()
		return nil, err
	}
	return s, nil
}

func (s *session) authenticateSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.requestTimeout)
	defer cancel()
	if err := sdk.AuthenticateV3(ctx, s.provider, s.entry.authOptions(), gophercloud.EndpointOpts{}); err != nil {
		return s.translateLoginError(err)
	}
	// The SDK's own endpoint lookup sends requests without a deadline.
	at := s.novaEndpoint()
	if at == "" {
		return fault.NewDenied("Keystone at %s has no %s endpoint of type compute in region %q: correct region_name and interface of cloud %q in key %s of Secret %s",
			s.Auth.URL, s.endpointAvailability(), s.Region, s.cloud, secretKey, s.secret)
	}
	s.nova = &gophercloud.ServiceClient{ProviderClient: s.provider, Endpoint: gophercloud.NormalizeURL(at), Type: "compute", Microversion: microversion}
	return nil
}

// novaEndpoint returns Nova's endpoint from the service catalog; "" if there is none.
func (s *session) novaEndpoint() string {
	got, ok := s.provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return ""
	}
	catalog, err := got.ExtractServiceCatalog()
	if err != nil {
		return ""
	}
	for _, service := range catalog.Entries {
		for _, e := range service.Endpoints {
			if service.Type == "compute" && e.Interface == s.endpointAvailability() && (s.Region == "" || s.Region == e.Region || s.Region == e.RegionID) {
				return e.URL
			}
		}
	}
	return ""
}

// projectName returns the project's name for users.
func (s *session) projectName() string {
	if got, ok := s.provider.GetAuthResult().(tokens.CreateResult); ok {
		if project, err := got.ExtractProject(); err == nil && project != nil {
			return project.Name
		}
	}
	return "of cloud " + s.cloud
}

// newHTTPClient returns a client with its own connections. It follows no redirects: they would send
// passwords and tokens to whatever host they name.
func (i *identity) newHTTPClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library guarantees the type
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cabundle.SystemPoolWith(i.roots, i.authorities.PEM)}
	if i.Verify != nil && !*i.Verify {
		t.TLSClientConfig.InsecureSkipVerify = true // whoever wrote the password into clouds.yaml also wrote this
	}
	return &http.Client{
		Transport:     i.authorities.WrapTransport(t),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (s *session) closeIdleConnections() { s.provider.HTTPClient.CloseIdleConnections() }
