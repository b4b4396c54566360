package agent

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refusal is what the API said of an object without the object's values: parameters
// hold secrets, and errors of validation quote them.
type refusal struct {
	said  string
	cause error
}

func (r *refusal) Error() string { return r.said }

// undeclared finds fields in what server-side apply says of an object with others than
// the schema has.
var undeclared = regexp.MustCompile(`(\.[A-Za-z0-9_.\[\]-]+): field not declared in schema`)

// scrub returns err without values of objects.
func scrub(err error) error {
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
	for _, m := range undeclared.FindAllStringSubmatch(s.Message, -1) {
		fields = append(fields, m[1]+": there is no such field")
	}
	said := fmt.Sprintf("the data plane's API refused it (%d %s)", s.Code, s.Reason)
	if len(fields) > 0 {
		said += ": " + strings.Join(fields, ", ")
	}
	return &refusal{said: said, cause: err}
}

// final says whether the same will be refused again.
func final(err error) bool {
	var r *refusal
	var taken *takenError
	return errors.As(err, &taken) || errors.As(err, &r) && (apierrors.IsInvalid(r.cause) || apierrors.IsBadRequest(r.cause))
}
