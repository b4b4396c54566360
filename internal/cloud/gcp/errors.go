package gcp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/api/compute/v1"
	"google.golang.org/api/googleapi"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

// Delays before the next try: Google's request quota is per minute, and capacity in a zone changes
// slowly.
const (
	busyDelay     = 30 * time.Second
	capacityDelay = 3 * time.Minute
)

// reasonKinds maps the API's error reasons to the kind of fault. statuses does the same for HTTP
// status codes, for errors whose reason is not in reasonKinds. All other errors are Unknown.
var reasonKinds = map[string]fault.Kind{
	"ratelimitexceeded":                         fault.Wait,
	"userratelimitexceeded":                     fault.Wait,
	"rate_limit_exceeded":                       fault.Wait,
	"resourcenotready":                          fault.Wait, // it is being started, stopped or deleted
	"resource_not_ready":                        fault.Wait,
	"resourceinusebyanotherresource":            fault.Wait,
	"operationinprogress":                       fault.Wait,
	"quotaexceeded":                             fault.Capacity,
	"quota_exceeded":                            fault.Capacity,
	"stockout":                                  fault.Capacity,
	"zone_resource_pool_exhausted":              fault.Capacity,
	"zone_resource_pool_exhausted_with_details": fault.Capacity,
}

var statusKinds = map[int]fault.Kind{
	http.StatusBadRequest:          fault.Denied,
	http.StatusUnauthorized:        fault.Denied,
	http.StatusForbidden:           fault.Denied,
	http.StatusNotFound:            fault.Denied, // of a project; for an instance see translateOutcome
	http.StatusConflict:            fault.Wait,
	http.StatusPreconditionFailed:  fault.Wait,
	http.StatusTooManyRequests:     fault.Wait,
	http.StatusInternalServerError: fault.Wait,
	http.StatusBadGateway:          fault.Wait,
	http.StatusServiceUnavailable:  fault.Wait,
	http.StatusGatewayTimeout:      fault.Wait,
}

// translateError translates an error of the API.
func (p *project) translateError(doing string, err error) error {
	var said *googleapi.Error
	if !errors.As(err, &said) {
		return fault.New(fault.Unknown, fmt.Errorf("%s: %w", doing, err)) // a network error, or the context ended
	}
	return p.newRedactedError(errorKind(said), said.Code, doing, cmp.Or(said.Message, http.StatusText(said.Code)))
}

// errorKind returns the kind of an error of the API.
func errorKind(said *googleapi.Error) fault.Kind {
	kind, known := fault.Unknown, false
	for _, item := range said.Errors {
		if k, ok := reasonKinds[strings.ToLower(item.Reason)]; ok {
			kind, known = k, true
		}
	}
	if known {
		return kind
	}
	return statusKinds[said.Code]
}

// newRedactedError returns an error whose text contains no secrets.
func (p *project) newRedactedError(kind fault.Kind, code int, doing, words string) error {
	words = redact.Text(words, p.token)
	switch {
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", doing, p.credentialsError("Google rejects the token that it issued for it"))
	case code == http.StatusForbidden && kind == fault.Denied:
		return fault.NewDenied("%s: Google denies the request: %s: give service account %s (Secret %s, key %s) "+
			"a role with the permissions compute.instances.list, start, stop, suspend and resume, and compute.zoneOperations.list",
			doing, words, p.Email, p.secret, secretKey)
	case kind == fault.Wait:
		return fault.NewWait(busyDelay, "%s: Google asks to try again later: %s", doing, words)
	case kind == fault.Capacity:
		return fault.NewCapacity(capacityDelay, "%s: Google has no capacity: %s", doing, words)
	default:
		return fault.New(kind, fmt.Errorf("%s: Google responds: %s", doing, words))
	}
}

// translateOutcome returns the result of a request for an instance. An instance that no longer
// exists, or is already in the desired state, is success.
func (p *project) translateOutcome(doing string, i *compute.Instance, op *compute.Operation, err error) error {
	doing += " instance " + i.Name
	switch {
	case googleapi.IsNotModified(err):
		return nil
	case err != nil:
		var said *googleapi.Error
		if errors.As(err, &said) && said.Code == http.StatusNotFound {
			return nil
		}
		return p.translateError(doing, err)
	case op.Error == nil:
		return nil
	}
	var errs []error
	for _, e := range op.Error.Errors {
		errs = append(errs, p.newRedactedError(reasonKinds[strings.ToLower(e.Code)], 0, doing, e.Code+": "+e.Message))
	}
	return errors.Join(errs...)
}
