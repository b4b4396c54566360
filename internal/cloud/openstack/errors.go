package openstack

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"hotspare.io/hotspare/internal/cloud"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

// Delays before the next try: busy for an overloaded cloud, full for an exhausted quota, which
// somebody must free.
const (
	busyDelay  = 30 * time.Second
	quotaDelay = 3 * time.Minute
)

// maxRetryAfter is the maximum delay that a cloud may request.
const maxRetryAfter = 10 * time.Minute

// statusKinds maps HTTP status codes to the kind of fault. All others are Unknown.
var statusKinds = map[int]fault.Kind{
	http.StatusBadRequest:            fault.Denied,
	http.StatusUnauthorized:          fault.Denied,
	http.StatusForbidden:             fault.Denied, // except for quotas: see translateError
	http.StatusNotFound:              fault.Denied, // of a whole API; for a server see translateOutcome
	http.StatusNotAcceptable:         fault.Denied,
	http.StatusConflict:              fault.Wait,
	http.StatusRequestEntityTooLarge: fault.Wait, // how older clouds report too many requests
	http.StatusTooManyRequests:       fault.Wait,
	498:                              fault.Wait, // the same, from some proxies
	http.StatusInternalServerError:   fault.Wait,
	http.StatusBadGateway:            fault.Wait,
	http.StatusServiceUnavailable:    fault.Wait,
	http.StatusGatewayTimeout:        fault.Wait,
	http.StatusMovedPermanently:      fault.Denied,
	http.StatusFound:                 fault.Denied,
	http.StatusMultipleChoices:       fault.Denied,
	http.StatusTemporaryRedirect:     fault.Denied,
	http.StatusPermanentRedirect:     fault.Denied,
}

// responseError is an error response of a cloud.
type responseError struct {
	status     int
	message    string
	retryAfter time.Duration
	err        error
}

func (e responseError) Error() string { return e.message }
func (e responseError) Unwrap() error { return e.err }

// parseResponseError extracts the response from an error of the SDK, whose own text contains the
// whole body.
func (s *session) parseResponseError(err error) (responseError, bool) {
	var said gophercloud.ErrUnexpectedResponseCode
	if !errors.As(err, &said) {
		return responseError{}, false
	}
	a := responseError{status: said.Actual, message: s.redactCredentials(responseMessage(said)), retryAfter: busyDelay}
	if n, err := strconv.Atoi(said.ResponseHeader.Get("Retry-After")); err == nil && n > 0 {
		a.retryAfter = min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	return a, true
}

// responseMessage returns the message in an error response: {"conflictingRequest": {"message": …}}
// from Nova, {"error": {"message": …}} from Keystone.
func responseMessage(said gophercloud.ErrUnexpectedResponseCode) string {
	var body map[string]struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(said.Body, &body) == nil {
		for _, inner := range body {
			if inner.Message != "" {
				return strings.Join(strings.Fields(inner.Message), " ")
			}
		}
	}
	return strings.TrimSpace(fmt.Sprintf("status %d %s", said.Actual, http.StatusText(said.Actual)))
}

// redactCredentials removes the credentials from the text of a response.
func (s *session) redactCredentials(words string) string {
	return redact.Text(words, s.Auth.Password, s.Auth.CredentialsSecret, s.provider.Token())
}

// translateLoginError returns an error that explains why the login failed.
func (s *session) translateLoginError(err error) error {
	doing := fmt.Sprintf("logging in to Keystone at %s", s.Auth.URL)
	a, ok := s.parseResponseError(err)
	switch {
	case !ok:
		return s.translateTransportError(doing, err)
	case statusKinds[a.status] == fault.Wait:
		return fault.NewWait(a.retryAfter, "%s: Keystone asks to try again later: %w", doing, a)
	case a.status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", doing, s.credentialsError(fmt.Sprintf("Keystone rejects the credentials of cloud %q: %s", s.cloud, a.message)))
	case statusKinds[a.status] == fault.Denied:
		return fmt.Errorf("%s: %w", doing, s.credentialsError(fmt.Sprintf("auth.auth_url of cloud %q is not the URL of a Keystone with API version 3, "+
			"or Keystone does not accept the request: %s", s.cloud, a.message)))
	}
	return fault.New(fault.Unknown, fmt.Errorf("%s: %w", doing, a))
}

// translateError translates an error of Nova.
func (s *session) translateError(doing string, err error) error {
	var lapsed *gophercloud.ErrUnableToReauthenticate
	if errors.As(err, &lapsed) {
		return fmt.Errorf("%s: %w", doing, s.translateLoginError(lapsed.ErrReauth))
	}
	a, ok := s.parseResponseError(err)
	switch {
	case !ok:
		return s.translateTransportError(doing, err)
	case a.status == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", doing, s.credentialsError("Nova rejects the token that Keystone issued for it"))
	case a.status == http.StatusForbidden && strings.Contains(strings.ToLower(a.message), "quota"):
		return fault.NewCapacity(quotaDelay, "%s: Nova responds: %w: free some of the project's quota, or have it raised", doing, a)
	case a.status == http.StatusForbidden:
		return fault.NewDenied("%s: Nova responds: %w: give the user or application credential of Secret %s, key %s, a role in the project that permits it (member)",
			doing, a, s.secret, secretKey)
	case a.status == http.StatusNotAcceptable:
		return fault.NewDenied("%s: Nova responds: %w: hotspare needs API version %s, that of OpenStack Stein, or newer", doing, a, microversion)
	case a.status == http.StatusBadRequest && strings.Contains(a.message, "marker"):
		return fault.NewWait(busyDelay, "%s: a server was deleted while the servers were listed: %w", doing, a)
	case statusKinds[a.status] == fault.Wait:
		return fault.NewWait(a.retryAfter, "%s: Nova asks to try again later: %w", doing, a)
	}
	return fault.New(statusKinds[a.status], fmt.Errorf("%s: Nova responds: %w", doing, a))
}

// translateTransportError translates the error of a request that got no response.
func (s *session) translateTransportError(doing string, err error) error {
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err // the outer error contains the URL
	}
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fault.NewDenied("%s: %w: put the CA of the cloud into the Secret named by spec.platform.openstack.certificatesSecretRef of ClusterDeployment %s", doing, err, s.cluster)
	case errors.Is(err, context.DeadlineExceeded):
		return fault.New(fault.Unknown, fmt.Errorf("%s: no answer in time: %w", doing, err))
	}
	return fault.New(fault.Unknown, fmt.Errorf("%s: %w", doing, redactedError{err, s.redactCredentials(err.Error())}))
}

// redactedError is an error whose text may have been redacted.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }

// powerRequest is a power change that was requested for a server.
type powerRequest struct {
	doing          string
	srv            *server
	becoming, want cloud.State
}

// translateOutcome returns the result of a power request. A server that no longer exists, or is
// already in the desired state, is success. Nova returns 409 for everything that it cannot do now:
// the change is already done, something else must be done first, or somebody has locked the server.
// Therefore the server is read again.
func (s *session) translateOutcome(ctx context.Context, r powerRequest, err error) error {
	if err == nil || gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	doing := r.doing + " server " + r.srv.Name
	if !gophercloud.ResponseCodeIs(err, http.StatusConflict) {
		return s.translateError(doing, err)
	}
	var now server
	switch got := servers.Get(ctx, s.nova, r.srv.ID).ExtractInto(&now); {
	case gophercloud.ResponseCodeIs(got, http.StatusNotFound):
		return nil
	case got != nil:
		return s.translateError(doing, errors.Join(err, got))
	}
	said, _ := s.parseResponseError(err)
	switch state, _ := now.machineState(); {
	case state == r.want, state == r.becoming:
		return nil
	case now.Locked:
		return fault.NewDenied("%s: the server is locked: openstack server unlock %s", doing, now.ID)
	case state == cloud.Failed:
		return nil // Observe reports it, with the remedy
	default:
		return fault.NewWait(busyDelay, "%s: Nova must finish another task first: %s", doing, cmp.Or(said.message, now.Status))
	}
}
