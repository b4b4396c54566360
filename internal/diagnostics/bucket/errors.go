package bucket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"

	"github.com/aws/smithy-go"

	"hotspare.io/hotspare/internal/diagnostics"
)

// action is what was done with the bucket.
type action string

const (
	listing  action = "s3:ListBucket on the bucket"
	writing  action = "s3:PutObject on its objects"
	deleting action = "s3:DeleteObject on its objects"
)

// remedies are the messages for the codes of the service. %[1]s is the location, %[2]s the right that the action needs.
var remedies = map[string]string{
	"NoSuchBucket":     "%[1]s does not exist: create it, or correct --diagnostics",
	"AccessDenied":     "access to %[1]s was denied: grant hotspare %[2]s",
	"Forbidden":        "access to %[1]s was denied: grant hotspare %[2]s",
	"AccountProblem":   "access to %[1]s was denied because of its account: see the account",
	"SlowDown":         "%[1]s is busy",
	"RequestTimeout":   "the upload to %[1]s was interrupted: check the network",
	"IncompleteBody":   "the upload to %[1]s was interrupted: check the network",
	"EntityTooLarge":   "%[1]s does not accept an object of this size: raise its limit",
	"QuotaExceeded":    "%[1]s has no more room: raise its quota",
	"InternalError":    "%[1]s has an internal error",
	"BadRequest":       "%[1]s does not understand the request: correct the region and the endpoint in --diagnostics",
	"NotImplemented":   "%[1]s does not support the API of S3: choose another",
	"MethodNotAllowed": "%[1]s does not support the API of S3: choose another",

	"XMinioStorageFull":                  "%[1]s has no more room: free some",
	"ServiceUnavailable":                 "%[1]s is busy",
	"RequestTimeTooSkewed":               "the clock of hotspare differs from that of %[1]s: correct it",
	"PermanentRedirect":                  wrongRegion,
	"TemporaryRedirect":                  wrongRegion,
	"IllegalLocationConstraintException": wrongRegion,
	"AuthorizationHeaderMalformed":       wrongRegion,
	"InvalidAccessKeyId":                 badCredentials,
	"SignatureDoesNotMatch":              badCredentials,
	"ExpiredToken":                       badCredentials,
	"InvalidToken":                       badCredentials,
	"TokenRefreshRequired":               badCredentials,
}

const (
	wrongRegion    = "%[1]s is in another region: set ?region=… in --diagnostics"
	badCredentials = "%[1]s refused the credentials: renew them"
)

// safeCode is the form of a code that a condition quotes: the service, whoever it is, has written it.
var safeCode = regexp.MustCompile(`^[A-Za-z0-9.]{1,60}$`)

// codeOf returns the code of an error of the service; empty if it is none.
func codeOf(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return ""
}

// explain returns an error with a message for a condition. Messages of the service are left out: they contain
// addresses, request IDs, and sometimes keys.
func (b *Bucket) explain(a action, err error) error {
	return &diagnostics.StoreError{Message: b.message(a, err), Err: err}
}

func (b *Bucket) message(a action, err error) string {
	code := codeOf(err)
	if format, known := remedies[code]; known {
		return fmt.Sprintf(format, &b.location, a)
	}
	var network net.Error
	switch {
	case isRedirect(err):
		return fmt.Sprintf(wrongRegion, &b.location)
	case safeCode.MatchString(code):
		return fmt.Sprintf("%s refused the request with code %s: see the documentation of the service", &b.location, code)
	case code != "":
		return fmt.Sprintf("%s refused the request: check the region and the endpoint in --diagnostics", &b.location)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("%s did not answer in time: check the endpoint and the network", &b.location)
	default:
		return fmt.Sprintf("%s cannot be reached: check the endpoint, its certificate, and the network", &b.location)
	}
}
