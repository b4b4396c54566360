package base

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

// ExplainAPIError rewrites an error of the API as a message with a hint for the user.
func (h *Hub) ExplainAPIError(err error) error {
	var unreachable *url.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return WithRemedy(fmt.Errorf("the hub at %s does not answer: connection refused", h.URL), h.addLastRun("start it with: hotspare up"))
	case apierrors.IsUnauthorized(err):
		return WithRemedy(fmt.Errorf("the hub at %s rejected your credentials", h.URL), h.addSource("see --kubeconfig and --context"))
	case IsAPIMissing(err):
		return WithRemedy(fmt.Errorf("the API at %s has no %s: hotspare is not installed there", h.URL, hivev1.GroupVersion),
			h.addSource("see --kubeconfig and --context"))
	case errors.As(err, &unreachable):
		return WithRemedy(fmt.Errorf("the hub at %s does not answer: %w", h.URL, unreachable.Err), h.addLastRun("if it is not running, start it with: hotspare up"))
	default:
		return err
	}
}

// addSource adds to a remedy how to select another hub, if $KUBECONFIG selected this one: it may be the
// kubeconfig of a claimed cluster.
func (h *Hub) addSource(remedy string) string {
	if !h.IsFromEnvironment {
		return remedy
	}
	return remedy + "\n  $KUBECONFIG selects this API: if it is a claimed cluster, unset KUBECONFIG, or name the hub with --data-dir or --kubeconfig"
}

// addLastRun adds to a remedy, on a line before it, how the last hotspare up of this hub has ended. If that is
// not known, the API may be another one than that of a hub.
func (h *Hub) addLastRun(remedy string) string {
	if h.describeLastRun == nil {
		return remedy
	}
	if last := h.describeLastRun(); last != "" {
		return last + "\n  " + remedy
	}
	return h.addSource(remedy)
}

// IsAPIMissing reports whether the API server does not serve the requested kind. In this case
// it returns NotFound without the name of an object.
func IsAPIMissing(err error) bool {
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
