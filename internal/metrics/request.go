package metrics

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Outcomes of a reconcile.
const (
	succeeded = "success"
	requeued  = "requeue"
	failed    = "error"
)

// controllerKey is the context key for the name of the controller that is reconciling.
type controllerKey struct{}

// WrapReconciler measures the reconciles of a controller, and attributes the API requests that they
// send to that controller.
func (m *Metrics) WrapReconciler(controller string, next reconcile.Reconciler) reconcile.Reconciler {
	if m == nil {
		return next
	}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		began := m.clock.Now()
		res, err := next.Reconcile(context.WithValue(ctx, controllerKey{}, controller), req)
		m.passes.WithLabelValues(controller, reconcileOutcome(res, err)).Observe(m.clock.Since(began).Seconds())
		return res, err
	})
}

func reconcileOutcome(res reconcile.Result, err error) string {
	switch {
	case err != nil:
		return failed
	case res.RequeueAfter > 0:
		return requeued
	default:
		return succeeded
	}
}

// WrapTransport counts the requests to the hub's API that are sent through next. It is meant for
// rest.Config.Wrap.
func (m *Metrics) WrapTransport(next http.RoundTripper) http.RoundTripper {
	if m == nil {
		return next
	}
	return &transport{next, m}
}

type transport struct {
	next http.RoundTripper
	*Metrics
}

// RoundTrip counts a request when its response begins or the request fails.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	status := failed
	if err == nil {
		status = strconv.Itoa(res.StatusCode)
	}
	controller, _ := req.Context().Value(controllerKey{}).(string)
	verb, resource := classifyRequest(req)
	t.requests.WithLabelValues(controller, req.Method, verb, resource, status).Inc()
	return res, err
}

// WrappedRoundTripper returns the wrapped transport, for Kubernetes client libraries.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// classifyRequest returns the verb and the resource of a request as Kubernetes defines them, the
// resource with its subresource: "clusterdeployments/status". The resource is empty for requests
// that concern no resource, such as discovery.
func classifyRequest(req *http.Request) (verb, resource string) {
	resource, named := parseResourcePath(req.URL.Path)
	switch req.Method {
	case http.MethodGet:
		verb = "list"
		if watch, err := strconv.ParseBool(req.URL.Query().Get("watch")); err == nil && watch {
			verb = "watch"
		} else if named || resource == "" {
			verb = "get"
		}
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodDelete:
		verb = "delete"
		if !named {
			verb = "deletecollection"
		}
	default:
		verb = strings.ToLower(req.Method)
	}
	return verb, resource
}

// parseResourcePath parses a path below /api/v1 or /apis/GROUP/VERSION. It returns the resource,
// and whether the path names a single object.
func parseResourcePath(path string) (resource string, named bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return "", false
	}
	// A path below a namespace is either a resource in it or a subresource of the namespace itself.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	resource = parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	return resource, len(parts) > 1
}
