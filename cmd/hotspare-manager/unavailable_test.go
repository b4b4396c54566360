package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

func TestAHubThatIsUnavailableOnceIsAskedAgain(t *testing.T) {
	var asked atomic.Int32
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)) // the client reports what it has not got
	}))
	defer hub.Close()
	read := func(cfg *rest.Config) error {
		asked.Store(0)
		c, err := discovery.NewDiscoveryClientForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.ServerResourcesForGroupVersion("v1")
		return err
	}
	if read(&rest.Config{Host: hub.URL}) == nil {
		t.Error("client-go tries again by itself: this is not needed")
	}
	cfg := &rest.Config{Host: hub.URL}
	cfg.Wrap(retryUnavailable)
	if err := read(cfg); err != nil || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
