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

// errorClass is what an error of a BMC is about.
type errorClass int

const (
	otherError           errorClass = iota // of the host that was named, as far as we know
	notReady                               // the host is in a state that does not allow it, or the BMC has too much to do
	notAuthorized                          // the account is good, but may not do it
	unsupported                            // this BMC, or this host, cannot do it
	hostNotFound                           // the BMC knows no such host
	certificateUntrusted                   // the BMC's certificate
	accountRefused                         // the account is not good
	unavailable                            // the BMC, or the way to it
	contextEnded                           // the caller's context
)

// retryDelay is when to look again at a host that is between two states, and at a BMC
// that has too much to do.
const retryDelay = 30 * time.Second

// errUnsupported is in the error for an order that a BMC does not know.
var errUnsupported = errors.New("the BMC cannot do that")

// errOtherAddress is the error for a BMC that points to another address.
var errOtherAddress = errors.New("it points to another address")

// bmcError is an error of a BMC in words for users. It wraps nothing but the end of the
// context and errUnable: what libraries say may hold a request, and so a password.
type bmcError struct {
	class errorClass
	text  string
	err   error
	// timedOut is that there was no answer in time.
	timedOut bool
}

func (p bmcError) Error() string { return p.text }
func (p bmcError) Unwrap() error { return p.err }

// affectsWholeBMC reports whether it would be the same with any other host of this BMC.
func (p bmcError) affectsWholeBMC() bool { return p.class >= certificateUntrusted }

func (p bmcError) toFault() error {
	switch p.class {
	case notReady:
		return fault.NewWait(retryDelay, "%w", p)
	case notAuthorized, unsupported, hostNotFound, certificateUntrusted, accountRefused:
		return fault.New(fault.Denied, p)
	default:
		return fault.New(fault.Unknown, p)
	}
}

// classifyError tells what err is. ctx is that of the caller.
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
	return newBMCError(accountRefused, h, "refuses the username and password in %s: correct them there, and see that the account is not locked", h.where)
}

func timeoutError(h host) bmcError {
	p := newBMCError(unavailable, h, "does not answer in time: see that it has power and can be reached from the hub")
	p.timedOut = true
	return p
}

// unreachableError has no port of ours in it, which would be another each time.
func unreachableError(h host, err error) bmcError {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return newBMCError(unavailable, h, "cannot be reached: %v", err)
}

// classifyRedfishError is the one place that knows what statuses of Redfish mean.
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
		return newBMCError(otherError, h, "points to another address, which is not followed")
	case errors.As(err, &timeout) && timeout.Timeout():
		return timeoutError(h)
	case errors.As(err, &request):
		return unreachableError(h, request.Err)
	case errors.As(err, &malformed):
		return newBMCError(otherError, h, "answers what is not Redfish: %v", malformed)
	case errors.As(err, &unlike):
		return newBMCError(otherError, h, "answers what is not Redfish: a JSON %s where something else should be", unlike.Value)
	}
	return newBMCError(otherError, h, "fails: %v", err)
}

// certificateReason says why a certificate is not trusted.
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
		return newBMCError(notAuthorized, h, "forbids it to the account in %s: %s (give it the role Operator)", h.where, said)
	case http.StatusNotFound:
		return newBMCError(hostNotFound, h, "has nothing at %s: correct bmc.address in %s", h.path, h.where)
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		p := newBMCError(unsupported, h, "cannot do it: %s", said)
		p.err = errUnsupported
		return p
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return newBMCError(notReady, h, "cannot do it now: %s", said)
	}
	return newBMCError(otherError, h, "fails: %s", said)
}

// redfishMessage is what a BMC says in an error, without what is not meant for people.
func redfishMessage(e *schemas.Error) string {
	said := ""
	switch {
	case len(e.ExtendedInfos) > 0 && e.ExtendedInfos[0].Message != "":
		said = e.ExtendedInfos[0].Message
	case e.Code != "": // else it is no error of Redfish but, say, a page of HTML
		said = e.Message
	}
	const most = 300
	if said = strings.Join(strings.Fields(said), " "); len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + "…"
	}
	return said
}

// redactPassword takes a password out of a text: a BMC may repeat what it was sent.
func redactPassword(text, password string) string {
	if password == "" {
		return text
	}
	quoted, escaped := strconv.Quote(password), url.QueryEscape(password)
	return strings.NewReplacer(password, "…", quoted[1:len(quoted)-1], "…", escaped, "…").Replace(text)
}
