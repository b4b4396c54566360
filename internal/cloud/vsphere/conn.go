package vsphere

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	soapsession "github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/fault"
)

// conn is one logged-in session. It has two parts, because tags have a separate API: SOAP for
// machines, REST for tags.
type conn struct {
	vim  *vim25.Client
	rest *rest.Client

	mu sync.Mutex
	// categories caches the names of tag categories by ID.
	categories map[string]string
}

// connectToCenter logs in. Cancelling ctx does not interrupt it: vCenter might then have created a
// session that the hub does not know.
func connectToCenter(ctx context.Context, c center) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Unknown, fmt.Errorf("logging in to vCenter %s: %w", c.server, err))
	}
	u, err := soap.ParseURL(c.address)
	if err != nil || u == nil || u.Host == "" {
		return nil, fault.NewDenied("spec.platform.vsphere: %q is not the name of a vCenter: use a host name", c.server)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	transport := newCenterTransport(c)
	sc := soap.NewClient(u, false)
	sc.Transport, sc.Timeout, sc.UserAgent = transport, requestTimeout, "hotspare"
	vim, err := vim25.NewClient(ctx, sc)
	if err != nil {
		return nil, c.translateLoginError(err)
	}
	conn := &conn{vim: vim, rest: rest.NewClient(vim), categories: map[string]string{}}
	conn.rest.Transport, conn.rest.Timeout = transport, requestTimeout
	if err := conn.loginBothAPIs(ctx, url.UserPassword(c.username, c.password)); err != nil {
		return nil, c.translateLoginError(err)
	}
	return conn, nil
}

func (c *conn) loginBothAPIs(ctx context.Context, user *url.Userinfo) error {
	if err := soapsession.NewManager(c.vim).Login(ctx, user); err != nil {
		return err
	}
	if err := c.rest.Login(ctx, user); err != nil {
		return errors.Join(err, soapsession.NewManager(c.vim).Logout(ctx))
	}
	return nil
}

// logoutBothAPIs ends both parts of the session. It ignores a part that has already ended.
func (c *conn) logoutBothAPIs(ctx context.Context) error {
	defer c.vim.CloseIdleConnections()
	var errs []error
	for _, err := range []error{c.rest.Logout(ctx), soapsession.NewManager(c.vim).Logout(ctx)} {
		if err = translateError(err); err != nil && !errors.Is(err, errExpired) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// pingBothAPIs sends a request with both parts of the session, and fails if one of them has ended.
func (c *conn) pingBothAPIs(ctx context.Context) error {
	if _, err := c.readServerTime(ctx); err != nil {
		return err
	}
	_, err := c.rest.Session(ctx)
	return translateError(err)
}

// readServerTime returns vCenter's own time, which it uses as the time of its tasks and events.
func (c *conn) readServerTime(ctx context.Context) (time.Time, error) {
	now, err := methods.GetCurrentTime(ctx, c.vim)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the time of vCenter: %w", translateError(err))
	}
	return *now, nil
}

// newCenterTransport verifies the vCenter with the certificates of the cluster, the hub and the
// system. It does not use the SDK's transport, which takes settings from the environment.
func newCenterTransport(c center) http.RoundTripper {
	return statusTransport{&http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: cabundle.SystemPoolWith(c.roots, c.authorities.PEM), MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: requestTimeout,
		IdleConnTimeout:     time.Minute,
	}, c.authorities}
}

// statusTransport converts responses that the SDK does not understand to errors with the status
// code, which the SDK does not expose.
type statusTransport struct {
	*http.Transport
	authorities cabundle.Bundle
}

// RoundTrip passes on the responses that the SDK understands: success, and a SOAP fault, which is a
// 500 with a body.
func (s statusTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := s.Transport.RoundTrip(req)
	if err != nil {
		return nil, s.authorities.ExplainError(err)
	}
	if res.StatusCode < http.StatusUnauthorized || res.StatusCode == http.StatusInternalServerError {
		return res, nil
	}
	_ = res.Body.Close() // its content is not used
	return nil, statusError(res.StatusCode)
}
