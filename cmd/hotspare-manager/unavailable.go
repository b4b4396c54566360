package main

import "net/http"

// retryUnavailable has client-go try reads again, a few seconds long, that the hub is
// unavailable for (503): it does so where the answer says when to come back, and that of a
// proxy or of an API server that starts often does not. Without it one such answer while
// the manager starts would end it.
func retryUnavailable(next http.RoundTripper) http.RoundTripper { return retryTransport{next} }

type retryTransport struct{ next http.RoundTripper }

// RoundTrip adds when to come back.
func (p retryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.next.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusServiceUnavailable && r.Method == http.MethodGet && res.Header.Get("Retry-After") == "" {
		res.Header.Set("Retry-After", "1")
	}
	return res, err
}
