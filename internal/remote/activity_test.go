package remote

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"hotspare.io/hotspare/internal/activity"
	"hotspare.io/hotspare/internal/cabundle"
	"hotspare.io/hotspare/internal/power"
)

func TestTheActivityThatAClusterReports(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int
		answer  string
		want    *power.Activity
		failure string
	}{
		"idle":                     {http.StatusOK, `{"idleSeconds": 90.5, "openRequests": 0, "requests": 7}`, &power.Activity{Idle: 90500 * time.Millisecond, Requests: 7}, ""},
		"in use":                   {http.StatusOK, `{"idleSeconds": 0, "openRequests": 2, "requests": 7}`, &power.Activity{Open: 2, Requests: 7}, ""},
		"idle for ever":            {http.StatusOK, `{"idleSeconds": 1e300}`, &power.Activity{Idle: longestIdle}, ""},
		"more than can be counted": {http.StatusOK, `{"requests": 9223372036854775807}`, &power.Activity{Requests: 1<<31 - 1}, ""},
		"not a local cluster":      {http.StatusNotFound, `{"kind": "Status", "code": 404}`, nil, ""},
		"not permitted":            {http.StatusForbidden, ``, nil, ""},
		"a time in the future":     {http.StatusOK, `{"idleSeconds": -1}`, nil, ""},
		"fewer requests than none": {http.StatusOK, `{"openRequests": -1}`, nil, ""},
		"an ignored controller": {
			http.StatusOK, `{"openRequests": 2, "requests": 9, "sources": {"": {"idleSeconds": 60, "requests": 7}, "cert-manager": {"openRequests": 2, "requests": 2}}}`,
			&power.Activity{Idle: time.Minute, Requests: 7}, "",
		},
		"another controller": {
			http.StatusOK, `{"openRequests": 2, "requests": 9, "sources": {"": {"idleSeconds": 60, "requests": 7}, "app": {"openRequests": 2, "requests": 2}}}`,
			&power.Activity{Open: 2, Requests: 9}, "",
		},
		"a source in the future":   {http.StatusOK, `{"sources": {"": {"idleSeconds": -1}}}`, nil, ""},
		"no report":                {http.StatusOK, `null`, nil, ""},
		"an API that is not ready": {http.StatusServiceUnavailable, ``, nil, "it is not ready to serve"},
		"no JSON":                  {http.StatusOK, `<html>`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != activity.Path {
					t.Errorf("it asks for %s", r.URL.Path)
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.answer))
			}))
			defer server.Close()
			asked := 0
			a, err := newSpokeClientAs(func(c *rest.Config) (certificate, key []byte, err error) {
				if c.Host == server.URL {
					asked++
				}
				return nil, nil, nil
			}, []byte(kubeconfig(server, token(secret))), cabundle.Bundle{})
			if err != nil {
				t.Fatal(err)
			}
			got, failure := a.readActivity(t.Context(), []string{"cert-manager"})
			if diff := cmp.Diff(tc.want, got); diff != "" || failure != tc.failure {
				t.Errorf("(-want +got): %s; failure %q", diff, failure)
			}
			if asked != 1 {
				t.Errorf("the identity was asked for %d times", asked)
			}
		})
	}
}
