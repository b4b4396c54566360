package vsphere

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	vim "github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/vim25/types"

	"hotspare.io/hotspare/internal/fault"
)

const (
	// throttleDelay is the delay before the next request to an overloaded vCenter.
	throttleDelay = 30 * time.Second
	// capacityDelay is the delay before the next try when hosts have no capacity.
	capacityDelay = 5 * time.Minute
)

// errExpired is wrapped by every error that means that the session has ended.
var errExpired = errors.New("the session with vCenter has ended")

// statusError is an HTTP status that the SDK does not understand.
type statusError int

func (s statusError) Error() string {
	return "vCenter answers " + strconv.Itoa(int(s)) + " " + http.StatusText(int(s))
}

// capacityFaults mean that no host currently has capacity for a machine.
var capacityFaults = []types.BaseMethodFault{
	&types.InsufficientResourcesFault{}, &types.InsufficientCpuResourcesFault{}, &types.InsufficientMemoryResourcesFault{},
	&types.InsufficientFailoverResourcesFault{}, &types.InsufficientHostCapacityFault{}, &types.InsufficientAgentVmsDeployed{},
	&types.InsufficientHostCpuCapacityFault{}, &types.InsufficientHostMemoryCapacityFault{}, &types.InsufficientPerCpuCapacity{},
	&types.InsufficientStandbyResource{}, &types.InsufficientStandbyCpuResource{}, &types.InsufficientStandbyMemoryResource{},
	&types.InsufficientStorageSpace{}, &types.InsufficientVFlashResourcesFault{}, &types.NoCompatibleHost{}, &types.NoDiskSpace{},
}

// translateError adds a fault.Kind to an error of the SDK. It is the only place that interprets
// vCenter's faults and codes.
func translateError(err error) error {
	var denied *types.NoPermission
	switch {
	case err == nil:
		return nil
	case isFault(err, &types.NotAuthenticated{}):
		return fault.New(fault.Unknown, fmt.Errorf("%w: %w", errExpired, err))
	case isFault(err, &types.ManagedObjectNotFound{}):
		return fault.New(fault.Gone, err)
	case asFault(err, &denied):
		return fault.NewDenied("%w: give the account the privilege %s on that object", err, denied.PrivilegeId)
	case isFault(err, capacityFaults...):
		return fault.NewCapacity(capacityDelay, "%w", err)
	case isUntrustedCertificate(err):
		return fault.NewDenied("%w: put the CA of the vCenter into the Secret named by spec.platform.vsphere.certificatesSecretRef", err)
	}
	var status statusError
	if !errors.As(err, &status) {
		return fault.New(fault.Unknown, err)
	}
	switch int(status) {
	case http.StatusUnauthorized:
		return fault.New(fault.Unknown, fmt.Errorf("%w: %w", errExpired, err))
	case http.StatusForbidden:
		return fault.NewDenied("%w: give the account the privileges in docs/platforms/vsphere.md", err)
	case http.StatusTooManyRequests:
		return fault.NewWait(throttleDelay, "%w", err)
	}
	return fault.New(fault.Unknown, err)
}

// translateLoginError returns an error that explains why the login to c failed; nil if err is nil.
func (c center) translateLoginError(err error) error {
	if err == nil {
		return nil
	}
	var status statusError
	if isFault(err, &types.InvalidLogin{}) || errors.As(err, &status) && status == http.StatusUnauthorized {
		return fault.NewDenied("vCenter %s rejects the login of %s: correct the account in %s", c.server, c.username, c.where)
	}
	return fmt.Errorf("logging in to vCenter %s: %w", c.server, translateError(err))
}

// ignoreStaleState returns nil for errors that mean that a machine's state differs from the one
// that was read, is changing, or that the machine no longer exists: the next call reads it again.
func ignoreStaleState(err error) error {
	if isFault(err, &types.InvalidPowerState{}, &types.TaskInProgress{}, &types.ManagedObjectNotFound{}) {
		return nil
	}
	return translateError(err)
}

func isFault(err error, faults ...types.BaseMethodFault) bool {
	for _, f := range faults {
		if err != nil && vim.Is(err, f) {
			return true
		}
	}
	return false
}

func asFault[T types.BaseMethodFault](err error, target *T) bool {
	_, ok := vim.As(err, target)
	return ok
}

func isUntrustedCertificate(err error) bool {
	var bad *tls.CertificateVerificationError
	return errors.As(err, &bad)
}

// taskError is the error of a failed vCenter task.
type taskError struct{ *types.LocalizedMethodFault }

func (e taskError) Error() string { return faultMessage(e.LocalizedMethodFault) }

// Fault implements the interface that the SDK uses to inspect errors.
func (e taskError) Fault() types.BaseMethodFault { return e.LocalizedMethodFault.Fault }

// faultMessage returns vCenter's message, preceded by the name of the fault.
func faultMessage(f *types.LocalizedMethodFault) string {
	if f == nil || f.Fault == nil {
		return "vCenter gives no reason"
	}
	name := reflect.Indirect(reflect.ValueOf(f.Fault)).Type().Name()
	if text := strings.TrimSuffix(strings.TrimSpace(f.LocalizedMessage), "."); text != "" && !strings.HasSuffix(text, name) {
		return name + ": " + text
	}
	return name
}

// redactedError is an error whose text was redacted.
type redactedError struct {
	error
	text string
}

func (e redactedError) Error() string { return e.text }
func (e redactedError) Unwrap() error { return e.error }

// redactPassword removes a password from an error's text: a proxy may echo a request.
func redactPassword(err error, password string) error {
	if err == nil {
		return nil
	}
	words, quoted := err.Error(), strconv.Quote(password)
	clean := strings.NewReplacer(password, "…", quoted[1:len(quoted)-1], "…").Replace(words)
	if clean != words {
		return redactedError{err, clean}
	}
	return err
}
