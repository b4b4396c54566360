package azure

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/redact"
)

// Delays before the next try, if Azure does not specify one.
const (
	busyDelay     = 30 * time.Second
	capacityDelay = 3 * time.Minute
)

// codeKinds maps error codes in lower case to the kind of fault. statuses does the same for HTTP
// status codes, for errors whose code is not in codeKinds. All other errors are Unknown.
var codeKinds = map[string]fault.Kind{
	"allocationfailed":                      fault.Capacity,
	"zonalallocationfailed":                 fault.Capacity,
	"overconstrainedallocationrequest":      fault.Capacity,
	"overconstrainedzonalallocationrequest": fault.Capacity,
	"skunotavailable":                       fault.Capacity,
	"quotaexceeded":                         fault.Capacity,
	"operationnotallowed":                   fault.Capacity, // Azure's code for an exhausted quota of cores
	"resourcegroupbeingdeleted":             fault.Denied,
	"scopelocked":                           fault.Denied,
	"readonlydisabledsubscription":          fault.Denied,
}

var statusKinds = map[int]fault.Kind{
	http.StatusBadRequest:          fault.Denied,
	http.StatusUnauthorized:        fault.Denied,
	http.StatusForbidden:           fault.Denied,
	http.StatusNotFound:            fault.Denied, // of a resource group; for a machine see translateOutcome
	http.StatusConflict:            fault.Wait,
	http.StatusPreconditionFailed:  fault.Wait,
	http.StatusTooManyRequests:     fault.Wait,
	http.StatusInternalServerError: fault.Wait,
	http.StatusBadGateway:          fault.Wait,
	http.StatusServiceUnavailable:  fault.Wait,
	http.StatusGatewayTimeout:      fault.Wait,
}

// isNotFound reports whether a virtual machine, or the resources that contain it, do not exist.
func isNotFound(err error) bool {
	var said *azcore.ResponseError
	return errors.As(err, &said) && said.StatusCode == http.StatusNotFound
}

// translateOutcome returns the result of a request for a machine. A machine that no longer exists
// is success.
func (g *group) translateOutcome(doing, name string, err error) error {
	if err == nil || isNotFound(err) {
		return nil
	}
	return g.translateError(doing+" virtual machine "+name, err)
}

// translateError translates an Azure error. The SDK's text contains the whole response, including
// repeated input; translateError keeps only the code and the message.
func (g *group) translateError(doing string, err error) error {
	var said *azcore.ResponseError
	if !errors.As(err, &said) {
		return fault.New(fault.Unknown, fmt.Errorf("%s: %w", doing, err)) // a network error, or the context ended
	}
	kind, known := codeKinds[strings.ToLower(said.ErrorCode)]
	if !known {
		kind = statusKinds[said.StatusCode]
	}
	words := redact.Text(g.redactCredentials(responseMessage(said)), g.token)
	switch {
	case said.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", doing, g.credentialsError("Azure rejects the token that it issued for it"))
	case said.StatusCode == http.StatusForbidden && kind == fault.Denied:
		return fault.NewDenied("%s: Azure denies the request (%s): give service principal %s (Secret %s, key %s) a role on resource group %s "+
			"with the actions read, instanceView/read, start/action and deallocate/action of Microsoft.Compute/virtualMachines",
			doing, words, g.ClientID, g.secret, secretKey, g.name)
	case said.ErrorCode == "ResourceGroupNotFound":
		return fault.NewDenied("%s: it does not exist in subscription %s: name the cluster's in spec.clusterMetadata.platform.azure.resourceGroupName", doing, g.SubscriptionID)
	case kind == fault.Wait:
		return fault.NewWait(retryAfterOrDefault(said.RawResponse, busyDelay), "%s: Azure asks to try again later (%s)", doing, words)
	case kind == fault.Capacity:
		return fault.NewCapacity(retryAfterOrDefault(said.RawResponse, capacityDelay), "%s: Azure has no capacity (%s)", doing, words)
	default:
		return fault.New(kind, fmt.Errorf("%s: Azure responds: %s", doing, words))
	}
}

// responseMessage returns the code and the message of a response.
func responseMessage(said *azcore.ResponseError) string {
	var answer struct {
		Error struct{ Code, Message string }
	}
	code := cmp.Or(said.ErrorCode, http.StatusText(said.StatusCode))
	if said.RawResponse == nil {
		return code
	}
	raw, err := runtime.Payload(said.RawResponse)
	if err != nil || json.Unmarshal(raw, &answer) != nil || answer.Error.Message == "" {
		return code
	}
	return code + ": " + answer.Error.Message
}

// retryAfterOrDefault returns the delay that Azure requests, or otherwise if it requests none.
func retryAfterOrDefault(r *http.Response, otherwise time.Duration) time.Duration {
	if r == nil {
		return otherwise
	}
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}
