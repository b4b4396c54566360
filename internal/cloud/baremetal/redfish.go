package baremetal

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stmcginnis/gofish"
	"github.com/stmcginnis/gofish/schemas"

	"hotspare.io/hotspare/internal/cabundle"
)

const (
	// maxResponseSize is the maximum size of a response. A system's is a few kilobytes.
	maxResponseSize = 4 << 20
	// maxPages is the maximum number of pages of systems to read to find out whether there is only
	// one.
	maxPages = 10
	// logoutTimeout limits the time to end a session; the BMC ends a remaining session
	// automatically.
	logoutTimeout = 2 * time.Second
)

// resetTypes lists the reset types for an action in order of preference. PushPowerButton is not
// included because it is a toggle.
var resetTypes = map[powerAction][]schemas.ResetType{
	turnOn:   {schemas.OnResetType, schemas.ForceOnResetType},
	shutDown: {schemas.GracefulShutdownResetType},
	powerOff: {schemas.ForceOffResetType},
}

// redfishBMC is a BMC that gets the account with every request, so that no session remains there:
// BMCs allow few. A BMC that does not accept this gets a session, which ends with the visit.
type redfishBMC struct {
	config    gofish.ClientConfig
	transport *http.Transport
	guard     *pinnedTransport
	client    *gofish.APIClient
	session   bool
}

func newRedfishClient(h host, trust trust, patience time.Duration) *redfishBMC {
	roots := cabundle.SystemPoolWith(trust.roots, trust.authorities.PEM)
	t := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, InsecureSkipVerify: h.insecure}, //nolint:gosec // only if the host disables verification
		MaxConnsPerHost:     2,
		IdleConnTimeout:     patience,
		TLSHandshakeTimeout: patience,
	}
	g := &pinnedTransport{next: trust.authorities.WrapTransport(t), scheme: h.scheme, host: h.address.host}
	return &redfishBMC{
		transport: t, guard: g,
		config: gofish.ClientConfig{
			Endpoint: h.scheme + "://" + h.address.host, Username: h.username, Password: h.password, BasicAuth: true,
			HTTPClient:        &http.Client{Transport: g, Timeout: patience, CheckRedirect: checkRedirect},
			NoModifyTransport: true, ReuseConnections: true,
		},
	}
}

func (b *redfishBMC) readHost(ctx context.Context, h host) (managedHost, error) {
	if b.client == nil {
		// This succeeds with any password: the service root requires no authentication.
		if err := b.connectClient(ctx); err != nil {
			return nil, err
		}
	}
	n, err := b.readHostSystem(h)
	if isUnauthorized(err) && !b.session && !b.guard.basic.Load() {
		b.config.BasicAuth, b.session = false, true
		if err := b.connectClient(ctx); err != nil {
			b.session = false
			return nil, translateLoginError(h, err)
		}
		n, err = b.readHostSystem(h)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (b *redfishBMC) connectClient(ctx context.Context) error {
	client, err := gofish.ConnectContext(ctx, b.config)
	if err == nil {
		b.client = client
	}
	return err
}

// readHostSystem reads the host's system: the one in its address, or the only one there is.
func (b *redfishBMC) readHostSystem(h host) (*system, error) {
	path := h.path
	if path == "" {
		var err error
		if path, err = b.findOnlySystem(h); err != nil {
			return nil, err
		}
	}
	cs, err := schemas.GetComputerSystem(b.client, path)
	if err != nil {
		return nil, err
	}
	return &system{host: h, cs: cs}, nil
}

// findOnlySystem returns the path of the only system. The library's function reads all systems, and
// loops forever if a page links to itself as the next one.
func (b *redfishBMC) findOnlySystem(h host) (string, error) {
	next, err := b.systemsPath()
	if err != nil {
		return "", err
	}
	var found []string
	for n := 0; n < maxPages && next != "" && len(found) < 2; n++ {
		page, err := schemas.GetCollection(b.client, next)
		if err != nil {
			return "", err
		}
		found, next = append(found, page.ItemLinks...), page.MembersNextLink
	}
	switch len(found) {
	case 0:
		return "", newBMCError(hostNotFound, h, "has no system: correct bmc.address in %s", h.where)
	case 1:
		return found[0], nil
	}
	return "", newBMCError(hostNotFound, h, "has several systems, such as %s: add the path of one to bmc.address in %s", found[0], h.where)
}

// systemsPath returns the path of the list of systems.
func (b *redfishBMC) systemsPath() (string, error) {
	resp, err := b.client.Get(schemas.DefaultServiceRoot) //nolint:bodyclose // the next line but two does
	if err != nil {
		return "", err
	}
	defer schemas.DeferredCleanupHTTPResponse(resp)
	var root struct {
		Systems struct {
			ID string `json:"@odata.id"`
		}
	}
	err = json.NewDecoder(resp.Body).Decode(&root)
	return root.Systems.ID, err
}

func (b *redfishBMC) closeSession(ctx context.Context) {
	defer b.transport.CloseIdleConnections()
	if !b.session || b.client == nil {
		return
	}
	s, err := b.client.GetSession()
	if err != nil {
		return
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), logoutTimeout)
	defer cancel()
	_ = b.client.WithContext(parting).Service.DeleteSession(s.ID) // the BMC ends a remaining session automatically
}

// system is a host as reported by Redfish.
type system struct {
	host
	cs *schemas.ComputerSystem
}

func (s *system) reportedState() string { return string(s.cs.PowerState) }

func (s *system) powerState() power {
	switch s.cs.PowerState {
	case schemas.OnPowerState:
		return poweredOn
	case schemas.OffPowerState:
		return poweredOff
	case schemas.PoweringOnPowerState:
		return poweringOn
	case schemas.PoweringOffPowerState:
		return poweringOff
	case schemas.PausedPowerState:
		return paused
	}
	return unknownPower
}

func (s *system) setPowerState(_ context.Context, o powerAction) error {
	offered, err := s.cs.GetSupportedResetTypes()
	if err != nil {
		return err
	}
	ways := resetTypes[o]
	if o == turnOn && s.powerState() == paused {
		ways = append([]schemas.ResetType{schemas.ResumeResetType}, ways...)
	}
	for _, way := range ways {
		if len(offered) == 0 || slices.Contains(offered, way) {
			_, err := s.cs.Reset(way)
			return err
		}
	}
	var names []string
	for _, r := range offered {
		names = append(names, string(r))
	}
	p := newBMCError(unsupported, s.host, "does not support %s, only %s", ways[0], strings.Join(names, ", "))
	p.err = errUnsupported
	return p
}

// pinnedTransport ensures that requests and their content are only sent to one BMC, regardless of
// the links in its responses, and limits the size of responses.
type pinnedTransport struct {
	next         http.RoundTripper
	scheme, host string
	// basic reports whether the last 401 response offered basic authentication.
	basic atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (t *pinnedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != t.scheme || req.URL.Host != t.host || req.URL.User != nil {
		return nil, errOtherAddress
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		offers := strings.ToLower(strings.Join(resp.Header.Values("WWW-Authenticate"), ","))
		t.basic.Store(strings.Contains(offers, "basic"))
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxResponseSize), resp.Body}
	return resp, nil
}

// checkRedirect does not follow redirects of a power action: it would become a GET request, whose
// success would be mistaken for that of the action.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

func isUnauthorized(err error) bool {
	var answer *schemas.Error
	return errors.As(err, &answer) && answer.HTTPReturnedStatusCode == http.StatusUnauthorized
}

// translateLoginError returns why no session was created. Some BMCs report a wrong password as a
// bad request.
func translateLoginError(h host, err error) error {
	var answer *schemas.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.HTTPReturnedStatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotFound:
		return refusedAccountError(h)
	}
	return err
}
