package main

import "net/http"

// retryUnavailable makes client-go retry, for a few seconds, reads that the hub answers with 503.
// client-go retries only responses with Retry-After, which a proxy or a starting API server often
// omits. Without the retry, one such response would terminate a starting manager.
func retryUnavailable(next http.RoundTripper) http.RoundTripper { return retryTransport{next} }

type retryTransport struct{ next http.RoundTripper }

// RoundTrip adds the header Retry-After.
func (t retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusServiceUnavailable && r.Method == http.MethodGet && res.Header.Get("Retry-After") == "" {
		res.Header.Set("Retry-After", "1")
	}
	return res, err
}
