package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// explainAPIError puts an error of the API in the words of the person who sees it.
func (h *hub) explainAPIError(err error) error {
	var unreachable *url.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return withRemedy(fmt.Errorf("the hub at %s does not answer: connection refused", h.url), "start it with: hotspare up")
	case apierrors.IsUnauthorized(err):
		return withRemedy(fmt.Errorf("the hub at %s does not know you", h.url), "see --kubeconfig and --context")
	case isAPIMissing(err):
		return withRemedy(fmt.Errorf("the API at %s has no %s: hotspare is not installed there", h.url, hivev1.GroupVersion),
			"see --kubeconfig and --context")
	case errors.As(err, &unreachable):
		return withRemedy(fmt.Errorf("the hub at %s does not answer: %w", h.url, unreachable.Err), "if it does not run, start it with: hotspare up")
	default:
		return err
	}
}

// isAPIMissing reports whether the API server has no resource of that kind: it then
// answers not found without naming an object.
func isAPIMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d == nil || d.Name == "" && hasUnexpectedResponse(d.Causes)
}

func hasUnexpectedResponse(causes []metav1.StatusCause) bool {
	for _, c := range causes {
		if c.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}
