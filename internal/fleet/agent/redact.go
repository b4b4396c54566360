package agent

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// redactedError is an error of the API without the object's values: parameters contain secrets, and
// validation errors quote them.
type redactedError struct {
	message string
	cause   error
}

func (r *redactedError) Error() string { return r.message }

// typedPatchPrefix begins the error message for an object that server-side apply cannot read by the
// schema: it has a field that is not declared, or a value of another type. The API server answers
// 500 without a reason (k8s.io/apimachinery/pkg/util/managedfields, Apply), so only the message
// distinguishes this answer from an outage.
const typedPatchPrefix = "failed to create typed patch object "

// fieldErrorPattern matches what such a message says about one field. It does not match the value
// after it, which may be a secret.
var fieldErrorPattern = regexp.MustCompile(`(?m)(?:^ *|\): )(\.[A-Za-z0-9_.\[\]-]+): (field not declared in schema|` +
	`expected (?:list|map|string|boolean|numeric|any scalar)|duplicate entries)`)

// redactError returns err without values of objects.
func redactError(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	s := status.Status()
	switch s.Reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonInternalError, metav1.StatusReasonUnknown:
	default:
		return err
	}
	var fields []string
	if s.Details != nil {
		for _, c := range s.Details.Causes {
			if c.Field != "" {
				fields = append(fields, fmt.Sprintf("%s: %s", c.Field, c.Type))
			}
		}
	}
	if isTypedPatch(s) {
		for _, m := range fieldErrorPattern.FindAllStringSubmatch(s.Message, -1) {
			fields = append(fields, m[1]+": "+strings.Replace(m[2], "field not declared in schema", "unknown field", 1))
		}
	}
	said := "the data plane's API refused it (" + strings.TrimSpace(fmt.Sprintf("%d %s", s.Code, s.Reason)) + ")"
	if len(fields) > 0 {
		said += ": " + strings.Join(fields, ", ")
	}
	return &redactedError{message: said, cause: err}
}

func isTypedPatch(s metav1.Status) bool {
	return s.Code == http.StatusInternalServerError && strings.HasPrefix(s.Message, typedPatchPrefix)
}

// isPermanent reports whether the API will refuse the same object again.
func isPermanent(err error) bool {
	var taken *namespaceTakenError
	if errors.As(err, &taken) {
		return true
	}
	var r *redactedError
	if !errors.As(err, &r) {
		return false
	}
	var status apierrors.APIStatus
	return apierrors.IsInvalid(r.cause) || apierrors.IsBadRequest(r.cause) || errors.As(r.cause, &status) && isTypedPatch(status.Status())
}
