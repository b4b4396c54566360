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
	"hotspare.io/hotspare/internal/install/scrub"
)

// How long to wait before the next try, if Azure does not say.
const (
	busy = 30 * time.Second
	full = 3 * time.Minute
)

// kinds is what to do about an error, by its code in lower case; statuses by its HTTP
// status, if the code tells nothing. What is in neither is Unknown.
var kinds = map[string]fault.Kind{
	"allocationfailed":                      fault.Capacity,
	"zonalallocationfailed":                 fault.Capacity,
	"overconstrainedallocationrequest":      fault.Capacity,
	"overconstrainedzonalallocationrequest": fault.Capacity,
	"skunotavailable":                       fault.Capacity,
	"quotaexceeded":                         fault.Capacity,
	"operationnotallowed":                   fault.Capacity, // that is how Azure calls a quota of cores
	"resourcegroupbeingdeleted":             fault.Denied,
	"scopelocked":                           fault.Denied,
	"readonlydisabledsubscription":          fault.Denied,
}

var statuses = map[int]fault.Kind{
	http.StatusBadRequest:          fault.Denied,
	http.StatusUnauthorized:        fault.Denied,
	http.StatusForbidden:           fault.Denied,
	http.StatusNotFound:            fault.Denied, // of a group; for a machine see outcome
	http.StatusConflict:            fault.Wait,
	http.StatusPreconditionFailed:  fault.Wait,
	http.StatusTooManyRequests:     fault.Wait,
	http.StatusInternalServerError: fault.Wait,
	http.StatusBadGateway:          fault.Wait,
	http.StatusServiceUnavailable:  fault.Wait,
	http.StatusGatewayTimeout:      fault.Wait,
}

// isGone reports whether a virtual machine, or all that is around it, does not exist.
func isGone(err error) bool {
	var said *azcore.ResponseError
	return errors.As(err, &said) && said.StatusCode == http.StatusNotFound
}

// outcome is what came of asking for a machine. One that is gone is success.
func (g *group) outcome(doing, name string, err error) error {
	if err == nil || isGone(err) {
		return nil
	}
	return g.fault(doing+" virtual machine "+name, err)
}

// fault translates an error of Azure. Its own text has the whole answer in it, with
// whatever that repeats; we take the code and the message.
func (g *group) fault(doing string, err error) error {
	var said *azcore.ResponseError
	if !errors.As(err, &said) {
		return fault.New(fault.Unknown, fmt.Errorf("%s: %w", doing, err)) // of the net, or the context's
	}
	kind, known := kinds[strings.ToLower(said.ErrorCode)]
	if !known {
		kind = statuses[said.StatusCode]
	}
	words := scrub.Text(g.hide(wordsOf(said)), g.token)
	switch {
	case said.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s: %w", doing, g.denied("Azure refuses the token that it got for it"))
	case said.StatusCode == http.StatusForbidden && kind == fault.Denied:
		return fault.Denying("%s: Azure refuses (%s): give service principal %s (Secret %s, key %s) a role on resource group %s "+
			"with the actions read, instanceView/read, start/action and deallocate/action of Microsoft.Compute/virtualMachines",
			doing, words, g.ClientID, g.secret, secretKey, g.name)
	case said.ErrorCode == "ResourceGroupNotFound":
		return fault.Denying("%s: it does not exist in subscription %s: name the cluster's in spec.clusterMetadata.platform.azure.resourceGroupName", doing, g.SubscriptionID)
	case kind == fault.Wait:
		return fault.Waiting(after(said.RawResponse, busy), "%s: Azure asks to try again later (%s)", doing, words)
	case kind == fault.Capacity:
		return fault.NoCapacity(after(said.RawResponse, full), "%s: Azure has no room (%s)", doing, words)
	default:
		return fault.New(kind, fmt.Errorf("%s: Azure says: %s", doing, words))
	}
}

// wordsOf reads code and message of an answer.
func wordsOf(said *azcore.ResponseError) string {
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

// after is how long Azure wants us to wait, or else as long as otherwise.
func after(r *http.Response, otherwise time.Duration) time.Duration {
	if r == nil {
		return otherwise
	}
	seconds, err := strconv.Atoi(r.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return otherwise
	}
	return time.Duration(seconds) * time.Second
}
