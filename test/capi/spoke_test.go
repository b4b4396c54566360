package capi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/install"
	installcapi "hotspare.io/hotspare/internal/install/capi"
)

// completedExecutor is the executor of platform capi. Its kubeconfigs reach the clusters through
// servers that complete the API of the in-memory backend: it lacks the kinds that hotspare reads from
// a running cluster.
type completedExecutor struct {
	*installcapi.Executor
	t *testing.T

	mu          sync.Mutex
	kubeconfigs map[string][]byte // by infraID
}

func (e *completedExecutor) Install(ctx context.Context, req install.Request, md install.Metadata) (install.Result, error) {
	res, err := e.Executor.Install(ctx, req, md)
	if err != nil || len(res.Kubeconfig) == 0 {
		return res, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kubeconfigs[md.InfraID] == nil {
		if e.kubeconfigs[md.InfraID], err = e.startServer(res.Kubeconfig); err != nil {
			return install.Result{}, err
		}
	}
	res.Kubeconfig = e.kubeconfigs[md.InfraID]
	return res, nil
}

// startServer starts a server in front of the API that a kubeconfig reaches, until the test ends, and
// returns the kubeconfig of that server.
func (e *completedExecutor) startServer(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	backend, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	// The backend knows a cluster by the host of the request, which SetURL sets.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(backend) }}
	if proxy.Transport, err = rest.TransportFor(config); err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(&completedAPI{backend: proxy})
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	e.t.Cleanup(server.Close)
	file, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, c := range file.Clusters {
		c.Server = server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	return clientcmd.Write(*file)
}

// completedAPI answers for the kinds that the backend does not have: no leases, no
// CertificateSigningRequests, and one PodDisruptionBudget with a controller manager that has always
// seen its last generation. It accepts the creation of the first budget, the probe of the first
// resume, and forbids that of others: a resume must end with a probe and without.
type completedAPI struct {
	backend http.Handler

	mu       sync.Mutex
	accepted bool
	budget   *policyv1.PodDisruptionBudget
}

func (a *completedAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	group, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")
	switch group {
	case "coordination.k8s.io":
		reply(w, http.StatusOK, map[string]any{"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": []any{}})
	case "certificates.k8s.io":
		reply(w, http.StatusOK, map[string]any{"kind": "CertificateSigningRequestList", "apiVersion": "certificates.k8s.io/v1", "items": []any{}})
	case "policy":
		a.serveBudget(w, r)
	case "config.openshift.io", "machine.openshift.io":
		replyNotFound(w)
	default:
		a.backend.ServeHTTP(w, r)
	}
}

func (a *completedAPI) serveBudget(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && a.accepted:
		reply(w, http.StatusForbidden, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden})
	case r.Method == http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		b := &policyv1.PodDisruptionBudget{}
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, b); err != nil { // client-go sends protobuf
			reply(w, http.StatusBadRequest, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonBadRequest, Code: http.StatusBadRequest, Message: err.Error()})
			return
		}
		b.TypeMeta = metav1.TypeMeta{Kind: "PodDisruptionBudget", APIVersion: "policy/v1"}
		b.ResourceVersion, b.Generation, b.Status.ObservedGeneration = "1", 1, 1
		a.accepted, a.budget = true, b
		reply(w, http.StatusCreated, b)
	case a.budget == nil:
		replyNotFound(w)
	case r.Method == http.MethodDelete:
		a.budget = nil
		reply(w, http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess})
	default:
		reply(w, http.StatusOK, a.budget)
	}
}

func replyNotFound(w http.ResponseWriter) {
	reply(w, http.StatusNotFound, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(body)
}
