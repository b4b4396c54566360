package aws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"hotspare.io/hotspare/internal/fault"
)

// errorClass classifies an error of AWS by what it affects.
type errorClass int

const (
	otherError           errorClass = iota // about the named instance, as far as we know
	instanceGone                           // the instance does not exist
	wrongState                             // the instance is in a state that does not allow it
	unsupportedOperation                   // not possible for this kind of instance
	cannotHibernate                        // the instance can be stopped, but not hibernated
	noCapacity                             // no capacity, or the account's limit
	notAuthorized                          // the credentials are valid, but do not allow it
	throttled                              // too many calls
	unavailable                            // AWS cannot be reached or does not work
	credentialsRefused                     // the credentials are invalid
	contextEnded                           // the caller's context ended
)

// affectsAllInstances reports whether a request for any other instance would fail with the same
// error.
func (c errorClass) affectsAllInstances() bool { return c >= throttled }

// Delays before the next try.
const (
	throttleDelay = 30 * time.Second // throttled: the next call may be rejected as well
	capacityDelay = 2 * time.Minute  // AWS advises waiting a few minutes for capacity
)

// errorClasses maps the error codes of EC2 and STS to their classes.
var errorClasses = map[string]errorClass{
	"InvalidInstanceID.NotFound": instanceGone,
	"IncorrectInstanceState":     wrongState,
	"IncorrectState":             wrongState,
	"UnsupportedOperation":       unsupportedOperation,

	"UnsupportedHibernationConfiguration": cannotHibernate,

	"InsufficientInstanceCapacity":         noCapacity,
	"InsufficientHostCapacity":             noCapacity,
	"InsufficientReservedInstanceCapacity": noCapacity,
	"InsufficientCapacityOnHost":           noCapacity,
	"InsufficientCapacity":                 noCapacity,
	"InstanceLimitExceeded":                noCapacity,
	"VcpuLimitExceeded":                    noCapacity,
	"MaxSpotInstanceCountExceeded":         noCapacity,

	"UnauthorizedOperation":  notAuthorized,
	"OperationNotPermitted":  notAuthorized,
	"UnsupportedTenancy":     unsupportedOperation,
	"AccessDenied":           credentialsRefused, // STS: the role must not be assumed
	"AccessDeniedException":  credentialsRefused,
	"RequestLimitExceeded":   throttled,
	"Throttling":             throttled,
	"ThrottlingException":    throttled,
	"ThrottledException":     throttled,
	"RequestThrottled":       throttled,
	"EC2ThrottledException":  throttled,
	"BandwidthLimitExceeded": throttled,

	"InternalError":      unavailable,
	"InternalFailure":    unavailable,
	"ServerInternal":     unavailable,
	"ServiceUnavailable": unavailable,
	"Unavailable":        unavailable,

	"AuthFailure":                 credentialsRefused,
	"Blocked":                     credentialsRefused,
	"ExpiredToken":                credentialsRefused,
	"ExpiredTokenException":       credentialsRefused,
	"IncompleteSignature":         credentialsRefused,
	"InvalidAccessKeyId":          credentialsRefused,
	"InvalidClientTokenId":        credentialsRefused,
	"MissingAuthenticationToken":  credentialsRefused,
	"NotAuthorized":               credentialsRefused,
	"OptInRequired":               credentialsRefused,
	"PendingVerification":         credentialsRefused,
	"RegionDisabledException":     credentialsRefused,
	"RequestExpired":              credentialsRefused,
	"SignatureDoesNotMatch":       credentialsRefused,
	"UnrecognizedClientException": credentialsRefused,
}

// awsError is an error of AWS: its class and a text for users. The text does not contain the
// request ID, so that it is the same each time.
type awsError struct {
	class  errorClass
	text   string
	remedy string
	err    error
}

func (e awsError) Error() string { return e.text + e.remedy }
func (e awsError) Unwrap() error { return e.err }

func (e awsError) toFault() error {
	switch e.class {
	case throttled:
		return fault.NewWait(throttleDelay, "%w", e)
	case noCapacity:
		return fault.NewCapacity(capacityDelay, "%w", e)
	case notAuthorized, unsupportedOperation, cannotHibernate, credentialsRefused:
		return fault.New(fault.Denied, e)
	case instanceGone:
		return fault.New(fault.Gone, e)
	default:
		return fault.New(fault.Unknown, e)
	}
}

// isAgentMissing reports whether EC2 waits for an instance's agent to become ready for hibernation. EC2 has
// no code of its own for this.
func isAgentMissing(e awsError) bool { return strings.Contains(e.text, "not ready to hibernate") }

// classifyError returns the class and the text of err. ctx is the caller's context, without the
// deadline of the request.
func (i identity) classifyError(ctx context.Context, err error) awsError {
	if ctx.Err() != nil {
		return awsError{class: contextEnded, text: ctx.Err().Error(), err: ctx.Err()}
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == "UnknownError" {
		return awsError{class: unavailable, text: i.redactCredentials(describeTransportError(err)), err: err}
	}
	p := awsError{class: errorClasses[api.ErrorCode()], err: err}
	message, _, _ := strings.Cut(api.ErrorMessage(), " Encoded authorization failure message:") // it is long and different each time
	p.text = i.redactCredentials(api.ErrorCode() + ": " + strings.TrimSpace(message))
	if _, known := errorClasses[api.ErrorCode()]; !known && statusOf(err) >= http.StatusInternalServerError {
		p.class = unavailable
	}
	switch {
	case p.class == credentialsRefused:
		p.text = fmt.Sprintf("AWS rejects %s: %s", i, p.text)
		p.remedy = " (set valid credentials there, and check that they are enabled for region " + i.region + " and that the hub's clock is correct)"
	case api.ErrorCode() == "UnauthorizedOperation":
		p.remedy = fmt.Sprintf(" (allow it to %s: docs/platforms/aws.md has the policy)", i)
	}
	return p
}

// describeTransportError returns a short description of an error of a request that AWS did not
// answer.
func describeTransportError(err error) string {
	if status := statusOf(err); status >= http.StatusMultipleChoices {
		return fmt.Sprintf("AWS cannot be used: an intermediary, such as a proxy, answers with status %d, %s", status, http.StatusText(status))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("AWS did not answer within %s", requestTimeout)
	}
	var sent *url.Error
	if errors.As(err, &sent) {
		return "AWS cannot be reached: " + sent.Err.Error()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner // the outer error contains the request ID
	}
	return "the response of AWS cannot be parsed: " + err.Error()
}

// statusOf returns the HTTP status of the response, or 0 if there was none.
func statusOf(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}
