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

// what is what an error of AWS is about.
type what int

const (
	other       what = iota // of the instance that was named, as far as we know
	gone                    // the instance does not exist
	early                   // the instance is in a state that does not allow it
	unsupported             // this sort of instance cannot do it
	full                    // no capacity, or the account's limit
	forbidden               // the credentials are good, but do not allow it
	throttled               // too many calls
	down                    // AWS, or the way to it
	refused                 // the credentials are not good
	ended                   // the caller's context
)

// deaf reports whether it would be the same with any other instance.
func (w what) deaf() bool { return w >= throttled }

// When to look again.
const (
	calm = 30 * time.Second // throttled: the next call may be one too many as well
	room = 2 * time.Minute  // AWS advises to wait some minutes for capacity
)

// codes of EC2 and STS.
var codes = map[string]what{
	"InvalidInstanceID.NotFound": gone,
	"IncorrectInstanceState":     early,
	"IncorrectState":             early,
	"UnsupportedOperation":       unsupported,

	"InsufficientInstanceCapacity":         full,
	"InsufficientHostCapacity":             full,
	"InsufficientReservedInstanceCapacity": full,
	"InsufficientCapacityOnHost":           full,
	"InsufficientCapacity":                 full,
	"InstanceLimitExceeded":                full,
	"VcpuLimitExceeded":                    full,
	"MaxSpotInstanceCountExceeded":         full,

	"UnauthorizedOperation":  forbidden,
	"OperationNotPermitted":  forbidden,
	"UnsupportedTenancy":     unsupported,
	"AccessDenied":           refused, // STS: the role may not be assumed
	"AccessDeniedException":  refused,
	"RequestLimitExceeded":   throttled,
	"Throttling":             throttled,
	"ThrottlingException":    throttled,
	"ThrottledException":     throttled,
	"RequestThrottled":       throttled,
	"EC2ThrottledException":  throttled,
	"BandwidthLimitExceeded": throttled,

	"InternalError":      down,
	"InternalFailure":    down,
	"ServerInternal":     down,
	"ServiceUnavailable": down,
	"Unavailable":        down,

	"AuthFailure":                 refused,
	"Blocked":                     refused,
	"ExpiredToken":                refused,
	"ExpiredTokenException":       refused,
	"IncompleteSignature":         refused,
	"InvalidAccessKeyId":          refused,
	"InvalidClientTokenId":        refused,
	"MissingAuthenticationToken":  refused,
	"NotAuthorized":               refused,
	"OptInRequired":               refused,
	"PendingVerification":         refused,
	"RegionDisabledException":     refused,
	"RequestExpired":              refused,
	"SignatureDoesNotMatch":       refused,
	"UnrecognizedClientException": refused,
}

// problem is an error of AWS: what it is about, and the same for users. The text has
// no request ID, so that it is the same each time.
type problem struct {
	what   what
	text   string
	remedy string
	err    error
}

func (p problem) Error() string { return p.text + p.remedy }
func (p problem) Unwrap() error { return p.err }

func (p problem) fault() error {
	switch p.what {
	case throttled:
		return fault.Waiting(calm, "%w", p)
	case full:
		return fault.NoCapacity(room, "%w", p)
	case forbidden, unsupported, refused:
		return fault.New(fault.Denied, p)
	case gone:
		return fault.New(fault.Gone, p)
	default:
		return fault.New(fault.Unknown, p)
	}
}

// problem tells what err is. ctx is that of the caller, without the deadline of the
// request.
func (who identity) problem(ctx context.Context, err error) problem {
	if ctx.Err() != nil {
		return problem{what: ended, text: ctx.Err().Error(), err: ctx.Err()}
	}
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() == "UnknownError" {
		return problem{what: down, text: who.scrub(unanswered(err)), err: err}
	}
	p := problem{what: codes[api.ErrorCode()], err: err}
	message, _, _ := strings.Cut(api.ErrorMessage(), " Encoded authorization failure message:") // another one each time, and long
	p.text = who.scrub(api.ErrorCode() + ": " + strings.TrimSpace(message))
	if _, known := codes[api.ErrorCode()]; !known && statusOf(err) >= http.StatusInternalServerError {
		p.what = down
	}
	switch {
	case p.what == refused:
		p.text = fmt.Sprintf("AWS refuses %s: %s", who, p.text)
		p.remedy = " (put valid ones there, and see that they are enabled for region " + who.region + " and that the hub's clock is right)"
	case api.ErrorCode() == "UnauthorizedOperation":
		p.remedy = fmt.Sprintf(" (allow it to %s: docs/platforms/aws.md has the policy)", who)
	}
	return p
}

// unanswered tells of a request that AWS itself has not answered, in few words.
func unanswered(err error) string {
	if status := statusOf(err); status >= http.StatusMultipleChoices {
		return fmt.Sprintf("AWS cannot be used: something on the way to it answers with status %d, %s", status, http.StatusText(status))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("AWS does not answer within %s", patience)
	}
	var sent *url.Error
	if errors.As(err, &sent) {
		return "AWS cannot be reached: " + sent.Err.Error()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner // what is around it has the ID of the request
	}
	return "AWS's answer cannot be read: " + err.Error()
}

// statusOf is the status of the answer, or 0 if there was none.
func statusOf(err error) int {
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}
