package baremetal

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stmcginnis/gofish/schemas"

	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/fault"
)

// errorClass classifies an error of a BMC by what it affects.
type errorClass int

const (
	otherError           errorClass = iota // about the named host, as far as we know
	notReady                               // the host's state does not allow it, or the BMC is overloaded
	notAuthorized                          // the account is valid, but not allowed to do it
	unsupported                            // not possible for this BMC or this host
	hostNotFound                           // the BMC does not know the host
	certificateUntrusted                   // the BMC's certificate is not trusted
	accountRefused                         // the account is invalid
	unavailable                            // the BMC cannot be reached or does not work
	contextEnded                           // the caller's context ended
)

// retryDelay is the delay before the next try for a host that is between two states, and for an
// overloaded BMC.
const retryDelay = 30 * time.Second

// errUnsupported is wrapped by the error for an action that a BMC does not support.
var errUnsupported = errors.New("the BMC does not support the request")

// errOtherAddress is the error for a BMC that refers to another address.
var errOtherAddress = errors.New("it redirects to another address")

// bmcError is an error of a BMC with a text for users. It wraps only the context's error and
// errUnsupported: library errors may contain a request, and therefore a password.
type bmcError struct {
	class errorClass
	text  string
	err   error
	// timedOut reports that there was no response in time.
	timedOut bool
}

func (e bmcError) Error() string { return e.text }
func (e bmcError) Unwrap() error { return e.err }

// affectsWholeBMC reports whether a request for any other host of this BMC would fail with the same
// error.
func (e bmcError) affectsWholeBMC() bool { return e.class >= certificateUntrusted }

func (e bmcError) toFault() error {
	switch e.class {
	case notReady:
		return fault.NewWait(retryDelay, "%w", e)
	case notAuthorized, unsupported, hostNotFound, certificateUntrusted, accountRefused:
		return fault.New(fault.Denied, e)
	default:
		return fault.New(fault.Unknown, e)
	}
}

// classifyError returns err as a bmcError. ctx is the caller's context.
func classifyError(ctx context.Context, h host, err error) bmcError {
	var p bmcError
	if ctx.Err() != nil {
		return bmcError{class: contextEnded, text: ctx.Err().Error(), err: ctx.Err()}
	}
	if !errors.As(err, &p) {
		p = classifyRedfishError(h, err)
	}
	p.text = redactPassword(p.text, h.password)
	return p
}

func newBMCError(w errorClass, h host, format string, args ...any) bmcError {
	return bmcError{class: w, text: "its BMC " + h.address.host + " " + fmt.Sprintf(format, args...)}
}

func refusedAccountError(h host) bmcError {
	return newBMCError(accountRefused, h, "rejects the username and password in %s: correct them there, and check that the account is not locked", h.where)
}

func timeoutError(h host) bmcError {
	p := newBMCError(unavailable, h, "did not answer in time: check that it has power and is reachable from the hub")
	p.timedOut = true
	return p
}

// unreachableError returns an error without our local port, which would differ each time.
func unreachableError(h host, err error) bmcError {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return newBMCError(unavailable, h, "cannot be reached: %v", err)
}

// classifyRedfishError is the only place that interprets Redfish status codes.
func classifyRedfishError(h host, err error) bmcError {
	var answer *schemas.Error
	if errors.As(err, &answer) && answer.HTTPReturnedStatusCode != 0 {
		return classifyStatus(h, answer.HTTPReturnedStatusCode, redfishMessage(answer))
	}
	var cert *tls.CertificateVerificationError
	var request *url.Error
	var malformed *json.SyntaxError
	var unlike *json.UnmarshalTypeError
	var timeout net.Error
	switch {
	case errors.As(err, &cert):
		return newBMCError(certificateUntrusted, h, "has a certificate that is not trusted (%s): put its CA into key %s of the Secret with the BMCs, "+
			"or set bmc.disableCertificateVerification of the host", certificateReason(cert, err), keyRoots)
	case errors.Is(err, errOtherAddress):
		return newBMCError(otherError, h, "redirects to another address, which hotspare does not follow")
	case errors.As(err, &timeout) && timeout.Timeout():
		return timeoutError(h)
	case errors.As(err, &request):
		return unreachableError(h, request.Err)
	case errors.As(err, &malformed):
		return newBMCError(otherError, h, "answers with something other than Redfish: %v", malformed)
	case errors.As(err, &unlike):
		return newBMCError(otherError, h, "answers with something other than Redfish: an unexpected JSON %s", unlike.Value)
	}
	return newBMCError(otherError, h, "returned an error: %v", err)
}

// certificateReason returns why a certificate is not trusted.
func certificateReason(cert *tls.CertificateVerificationError, err error) string {
	if problem := cabundle.BundleProblem(err); problem != "" {
		return fmt.Sprintf("%v; %s", cert.Err, problem)
	}
	return cert.Err.Error()
}

func classifyStatus(h host, status int, said string) bmcError {
	if said == "" {
		said = "status " + strconv.Itoa(status) + ", " + http.StatusText(status)
	}
	switch status {
	case http.StatusUnauthorized:
		return refusedAccountError(h)
	case http.StatusForbidden:
		return newBMCError(notAuthorized, h, "denies the request of the account in %s: %s (grant it the role Operator)", h.where, said)
	case http.StatusNotFound:
		return newBMCError(hostNotFound, h, "has nothing at %s: correct bmc.address in %s", h.path, h.where)
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		p := newBMCError(unsupported, h, "does not support the request: %s", said)
		p.err = errUnsupported
		return p
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return newBMCError(notReady, h, "cannot carry out the request now: %s", said)
	}
	return newBMCError(otherError, h, "returned an error: %s", said)
}

// redfishMessage returns a BMC's error message, without the parts that are not for users.
func redfishMessage(e *schemas.Error) string {
	said := ""
	switch {
	case len(e.ExtendedInfos) > 0 && e.ExtendedInfos[0].Message != "":
		said = e.ExtendedInfos[0].Message
	case e.Code != "": // otherwise it is not a Redfish error but, for example, an HTML page
		said = e.Message
	}
	const most = 300
	if said = strings.Join(strings.Fields(said), " "); len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + "…"
	}
	return said
}

// redactPassword removes a password from a text: a BMC may echo a request.
func redactPassword(text, password string) string {
	if password == "" {
		return text
	}
	quoted, escaped := strconv.Quote(password), url.QueryEscape(password)
	return strings.NewReplacer(password, "…", quoted[1:len(quoted)-1], "…", escaped, "…").Replace(text)
}
