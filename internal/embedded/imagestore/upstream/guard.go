package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// guard is a transport that connects to allowed addresses only.
type guard struct {
	// direct checks each address to which it connects. open checks none; it connects to proxies, and to
	// the registries that the administrator lists.
	direct, open *http.Transport
	insecure     map[string]bool
	isAllowed    func(netip.Addr) bool
	proxy        func(*url.URL) (*url.URL, error)
	lookup       func(ctx context.Context, host string) ([]netip.Addr, error)
}

// forbiddenError reports an address, or a way to connect, that is not allowed.
type forbiddenError struct{ message string }

func (e *forbiddenError) Error() string { return e.message }

func newGuard(o Options, insecure map[string]bool) *guard {
	g := &guard{isAllowed: o.IsAllowed, insecure: insecure, proxy: o.Proxy, lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
	if g.proxy == nil {
		g.proxy = func(u *url.URL) (*url.URL, error) { return http.ProxyFromEnvironment(&http.Request{URL: u}) }
	}
	checking := &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.checkAddress(to.Addr())
	}}
	g.direct = newTransport(o)
	g.direct.DialContext = func(ctx context.Context, _, address string) (net.Conn, error) {
		return checking.DialContext(ctx, "tcp4", address) // as the network of pods, which has no IPv6
	}
	g.open = newTransport(o)
	g.open.Proxy = func(r *http.Request) (*url.URL, error) { return g.proxy(r.URL) }
	return g
}

func newTransport(o Options) *http.Transport {
	return &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 30 * time.Second,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   4,
		DisableCompression:    true, // digests are those of what is sent
		ForceAttemptHTTP2:     true,
	}
}

// RoundTrip sends a request, if it is allowed.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	t, err := g.choose(r)
	if err != nil {
		return nil, err
	}
	response, err := t.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusTooManyRequests {
		recordNamedWait(r.Context(), response.Header.Get("Retry-After"))
	}
	isContent, _ := r.Context().Value(contentKey{}).(bool)
	if !isContent || r.Header.Get("Accept") == "" { // a token, or what a registry says about itself
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswer), response.Body}
	}
	return response, nil
}

// choose returns the transport for a request, or a *forbiddenError.
func (g *guard) choose(r *http.Request) (*http.Transport, error) {
	if g.insecure[strings.ToLower(r.URL.Host)] {
		return g.open, nil
	}
	if r.URL.Scheme != "https" {
		return nil, &forbiddenError{fmt.Sprintf("plain HTTP to %s is not allowed: use HTTPS, or start hotspare up with --insecure-registries %s", r.URL.Host, r.URL.Host)}
	}
	proxy, err := g.proxy(r.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the proxy of the environment: %w", err)
	}
	if proxy == nil {
		return g.direct, nil
	}
	return g.open, g.checkTarget(r.Context(), r.URL.Hostname())
}

// checkTarget checks the addresses of a host to which a proxy connects. A name that only the proxy
// resolves is left to the proxy.
func (g *guard) checkTarget(ctx context.Context, host string) error {
	if literal, err := netip.ParseAddr(host); err == nil {
		return g.checkAddress(literal)
	}
	if isNumber(host) {
		return &forbiddenError{fmt.Sprintf("%q is not an IP address in its usual form", host)}
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return g.checkAddress(netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	}
	found, err := g.lookup(ctx, host)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	for _, a := range found {
		if err := g.checkAddress(a); err != nil {
			return err
		}
	}
	return nil
}

// isNumber reports whether programs that are not Go may read a host as an IPv4 address: 127.1, 0x7f000001.
func isNumber(host string) bool {
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := labels[len(labels)-1]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Trim(last, "0123456789") == ""
}

// translated contains IPv6 addresses that networks translate to IPv4 addresses (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/16")

func (g *guard) checkAddress(a netip.Addr) error {
	a = a.Unmap()
	isLocalIPv6 := a.Is6() && (a.IsPrivate() || a.Zone() != "" || translated.Contains(a))
	if !a.IsValid() || isLocalIPv6 || !g.isAllowed(a) {
		const format = "clusters may not connect to %s, an address of this computer, of clusters or of a cloud's own services: " +
			"start hotspare up with --insecure-registries if they may pull from a registry there"
		return &forbiddenError{fmt.Sprintf(format, a)}
	}
	return nil
}
