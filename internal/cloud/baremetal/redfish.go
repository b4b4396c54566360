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
	// largest is how long an answer may be. A system's is some kilobytes.
	largest = 4 << 20
	// pages is how many pages of systems are read to find out whether there is one only.
	pages = 10
	// farewell is how long a BMC may take to end a session; what is left ends there by itself.
	farewell = 2 * time.Second
)

// resets are the ways to carry out an order, the best first. PushPowerButton is not
// among them: it does one thing or its opposite.
var resets = map[order][]schemas.ResetType{
	turnOn:   {schemas.OnResetType, schemas.ForceOnResetType},
	shutDown: {schemas.GracefulShutdownResetType},
	powerOff: {schemas.ForceOffResetType},
}

// redfishBMC is a BMC that is asked with the account in every request, so that no
// session is left there: BMCs have few. One that takes no such requests gets a session,
// which ends with the visit.
type redfishBMC struct {
	config    gofish.ClientConfig
	transport *http.Transport
	guard     *guard
	client    *gofish.APIClient
	session   bool
}

func newRedfish(h host, trust trust, patience time.Duration) *redfishBMC {
	roots := cabundle.Pool(trust.roots, trust.authorities.PEM)
	t := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, InsecureSkipVerify: h.insecure}, //nolint:gosec // where the host says so
		MaxConnsPerHost:     2,
		IdleConnTimeout:     patience,
		TLSHandshakeTimeout: patience,
	}
	g := &guard{next: trust.authorities.Transport(t), scheme: h.scheme, host: h.address.host}
	return &redfishBMC{
		transport: t, guard: g,
		config: gofish.ClientConfig{
			Endpoint: h.scheme + "://" + h.address.host, Username: h.username, Password: h.password, BasicAuth: true,
			HTTPClient:        &http.Client{Transport: g, Timeout: patience, CheckRedirect: onlyReading},
			NoModifyTransport: true, ReuseConnections: true,
		},
	}
}

func (b *redfishBMC) look(ctx context.Context, h host) (node, error) {
	if b.client == nil {
		// This succeeds with any password: the first page is for everybody.
		if err := b.connect(ctx); err != nil {
			return nil, err
		}
	}
	n, err := b.system(h)
	if unauthorized(err) && !b.session && !b.guard.basic.Load() {
		b.config.BasicAuth, b.session = false, true
		if err := b.connect(ctx); err != nil {
			b.session = false
			return nil, login(h, err)
		}
		n, err = b.system(h)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (b *redfishBMC) connect(ctx context.Context) error {
	client, err := gofish.ConnectContext(ctx, b.config)
	if err == nil {
		b.client = client
	}
	return err
}

// system reads the host that the address tells, or the only one there is.
func (b *redfishBMC) system(h host) (*system, error) {
	path := h.path
	if path == "" {
		var err error
		if path, err = b.only(h); err != nil {
			return nil, err
		}
	}
	cs, err := schemas.GetComputerSystem(b.client, path)
	if err != nil {
		return nil, err
	}
	return &system{host: h, cs: cs}, nil
}

// only finds the path of the only system. The library's own way reads all systems, and
// goes round for ever if a page's next one is itself.
func (b *redfishBMC) only(h host) (string, error) {
	next, err := b.systems()
	if err != nil {
		return "", err
	}
	var found []string
	for n := 0; n < pages && next != "" && len(found) < 2; n++ {
		page, err := schemas.GetCollection(b.client, next)
		if err != nil {
			return "", err
		}
		found, next = append(found, page.ItemLinks...), page.MembersNextLink
	}
	switch len(found) {
	case 0:
		return "", newProblem(missing, h, "has no system: correct bmc.address in %s", h.where)
	case 1:
		return found[0], nil
	}
	return "", newProblem(missing, h, "has several systems, %s and others: add the path of one to bmc.address in %s", found[0], h.where)
}

// systems is the path of the list of systems.
func (b *redfishBMC) systems() (string, error) {
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

func (b *redfishBMC) close(ctx context.Context) {
	defer b.transport.CloseIdleConnections()
	if !b.session || b.client == nil {
		return
	}
	s, err := b.client.GetSession()
	if err != nil {
		return
	}
	parting, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_ = b.client.WithContext(parting).Service.DeleteSession(s.ID) // a session that is left ends by itself
}

// system is a host as Redfish shows it.
type system struct {
	host
	cs *schemas.ComputerSystem
}

func (s *system) word() string { return string(s.cs.PowerState) }

func (s *system) power() power {
	switch s.cs.PowerState {
	case schemas.OnPowerState:
		return on
	case schemas.OffPowerState:
		return off
	case schemas.PoweringOnPowerState:
		return goingOn
	case schemas.PoweringOffPowerState:
		return goingOff
	case schemas.PausedPowerState:
		return paused
	}
	return odd
}

func (s *system) tell(_ context.Context, o order) error {
	offered, err := s.cs.GetSupportedResetTypes()
	if err != nil {
		return err
	}
	ways := resets[o]
	if o == turnOn && s.power() == paused {
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
	p := newProblem(unable, s.host, "cannot do %s, only %s", ways[0], strings.Join(names, ", "))
	p.err = errUnable
	return p
}

// guard sees to it that requests, and what is in them, go to one BMC only, wherever its
// answers point to, and that no answer is too long.
type guard struct {
	next         http.RoundTripper
	scheme, host string
	// basic is whether the last answer that asked for an account took it in the request.
	basic atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != g.scheme || req.URL.Host != g.host || req.URL.User != nil {
		return nil, errStray
	}
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		offers := strings.ToLower(strings.Join(resp.Header.Values("WWW-Authenticate"), ","))
		g.basic.Store(strings.Contains(offers, "basic"))
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, largest), resp.Body}
	return resp, nil
}

// onlyReading follows no redirection of an order: it would become a request to read,
// and its success be taken for that of the order.
func onlyReading(_ *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > 3 {
		return http.ErrUseLastResponse
	}
	return nil
}

func unauthorized(err error) bool {
	var answer *schemas.Error
	return errors.As(err, &answer) && answer.HTTPReturnedStatusCode == http.StatusUnauthorized
}

// login explains why no session was made. Some BMCs call a wrong password a bad request.
func login(h host, err error) error {
	var answer *schemas.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.HTTPReturnedStatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotFound:
		return refusal(h)
	}
	return err
}
