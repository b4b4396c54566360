package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// The hub builds the OpenAPI documents of Kubernetes' own kinds when they are requested. It serves each that it lists.
func TestTheOpenAPIDocumentsAreServed(t *testing.T) {
	h := shared(t)
	config, err := h.config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(path string, into any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s %v", path, answer.Status, body, err)
		}
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}

	var v2 struct{ Definitions map[string]any }
	fetch("/openapi/v2", &v2)
	for _, kind := range []string{"io.k8s.api.core.v1.Pod", "io.openshift.hive.v1.ClusterPool", "io.hotspare.v1alpha1.PoolPolicy"} {
		if v2.Definitions[kind] == nil {
			t.Errorf("version 2 lacks %s", kind)
		}
	}
	var list struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	fetch("/openapi/v3", &list)
	for _, groupVersion := range []string{"api/v1", "apis/apps/v1", "apis/hive.openshift.io/v1"} {
		if list.Paths[groupVersion].ServerRelativeURL == "" {
			t.Errorf("version 3 lacks %s", groupVersion)
		}
	}
	for groupVersion, document := range list.Paths {
		var v3 struct{ OpenAPI string }
		if fetch(document.ServerRelativeURL, &v3); v3.OpenAPI == "" {
			t.Errorf("the document of %s is empty", groupVersion)
		}
	}
}
