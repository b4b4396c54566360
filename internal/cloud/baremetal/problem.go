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

// what is what an error of a BMC is about.
type what int

const (
	other     what = iota // of the host that was named, as far as we know
	early                 // the host is in a state that does not allow it, or the BMC has too much to do
	forbidden             // the account is good, but may not do it
	unable                // this BMC, or this host, cannot do it
	missing               // the BMC knows no such host
	untrusted             // the BMC's certificate
	refused               // the account is not good
	down                  // the BMC, or the way to it
	ended                 // the caller's context
)

// breather is when to look again at a host that is between two states, and at a BMC
// that has too much to do.
const breather = 30 * time.Second

// errUnable is in the error for an order that a BMC does not know.
var errUnable = errors.New("the BMC cannot do that")

// errStray is the error for a BMC that points to another address.
var errStray = errors.New("it points to another address")

// problem is an error of a BMC in words for users. It wraps nothing but the end of the
// context and errUnable: what libraries say may hold a request, and so a password.
type problem struct {
	what what
	text string
	err  error
	// silent is that there was no answer in time.
	silent bool
}

func (p problem) Error() string { return p.text }
func (p problem) Unwrap() error { return p.err }

// deaf reports whether it would be the same with any other host of this BMC.
func (p problem) deaf() bool { return p.what >= untrusted }

func (p problem) fault() error {
	switch p.what {
	case early:
		return fault.Waiting(breather, "%w", p)
	case forbidden, unable, missing, untrusted, refused:
		return fault.New(fault.Denied, p)
	default:
		return fault.New(fault.Unknown, p)
	}
}

// asProblem tells what err is. ctx is that of the caller.
func asProblem(ctx context.Context, h host, err error) problem {
	var p problem
	if ctx.Err() != nil {
		return problem{what: ended, text: ctx.Err().Error(), err: ctx.Err()}
	}
	if !errors.As(err, &p) {
		p = redfishProblem(h, err)
	}
	p.text = scrub(p.text, h.password)
	return p
}

func newProblem(w what, h host, format string, args ...any) problem {
	return problem{what: w, text: "its BMC " + h.address.host + " " + fmt.Sprintf(format, args...)}
}

func refusal(h host) problem {
	return newProblem(refused, h, "refuses the username and password in %s: correct them there, and see that the account is not locked", h.where)
}

func unanswered(h host) problem {
	p := newProblem(down, h, "does not answer in time: see that it has power and can be reached from the hub")
	p.silent = true
	return p
}

// unreached has no port of ours in it, which would be another each time.
func unreached(h host, err error) problem {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return newProblem(down, h, "cannot be reached: %v", err)
}

// redfishProblem is the one place that knows what statuses of Redfish mean.
func redfishProblem(h host, err error) problem {
	var answer *schemas.Error
	if errors.As(err, &answer) && answer.HTTPReturnedStatusCode != 0 {
		return statusProblem(h, answer.HTTPReturnedStatusCode, words(answer))
	}
	var cert *tls.CertificateVerificationError
	var request *url.Error
	var malformed *json.SyntaxError
	var unlike *json.UnmarshalTypeError
	var timeout net.Error
	switch {
	case errors.As(err, &cert):
		return newProblem(untrusted, h, "has a certificate that is not trusted (%s): put its CA into key %s of the Secret with the BMCs, "+
			"or set bmc.disableCertificateVerification of the host", unverified(cert, err), keyRoots)
	case errors.Is(err, errStray):
		return newProblem(other, h, "points to another address, which is not followed")
	case errors.As(err, &timeout) && timeout.Timeout():
		return unanswered(h)
	case errors.As(err, &request):
		return unreached(h, request.Err)
	case errors.As(err, &malformed):
		return newProblem(other, h, "answers what is not Redfish: %v", malformed)
	case errors.As(err, &unlike):
		return newProblem(other, h, "answers what is not Redfish: a JSON %s where something else should be", unlike.Value)
	}
	return newProblem(other, h, "fails: %v", err)
}

// unverified says why a certificate is not trusted.
func unverified(cert *tls.CertificateVerificationError, err error) string {
	if problem := cabundle.Problem(err); problem != "" {
		return fmt.Sprintf("%v; %s", cert.Err, problem)
	}
	return cert.Err.Error()
}

func statusProblem(h host, status int, said string) problem {
	if said == "" {
		said = "status " + strconv.Itoa(status) + ", " + http.StatusText(status)
	}
	switch status {
	case http.StatusUnauthorized:
		return refusal(h)
	case http.StatusForbidden:
		return newProblem(forbidden, h, "forbids it to the account in %s: %s (give it the role Operator)", h.where, said)
	case http.StatusNotFound:
		return newProblem(missing, h, "has nothing at %s: correct bmc.address in %s", h.path, h.where)
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		p := newProblem(unable, h, "cannot do it: %s", said)
		p.err = errUnable
		return p
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return newProblem(early, h, "cannot do it now: %s", said)
	}
	return newProblem(other, h, "fails: %s", said)
}

// words is what a BMC says in an error, without what is not meant for people.
func words(e *schemas.Error) string {
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

// scrub takes a password out of a text: a BMC may repeat what it was sent.
func scrub(text, password string) string {
	if password == "" {
		return text
	}
	quoted, escaped := strconv.Quote(password), url.QueryEscape(password)
	return strings.NewReplacer(password, "…", quoted[1:len(quoted)-1], "…", escaped, "…").Replace(text)
}
