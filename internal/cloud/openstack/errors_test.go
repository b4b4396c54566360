package openstack

import (
	"fmt"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/fault"
)

// The result of a call when an API returns an error, by the API that returns it.
func TestEachErrorHasAKind(t *testing.T) {
	const login, list, action = "/auth/tokens", "/servers/detail", "/action"
	for _, c := range []struct {
		path   string
		status int
		body   string
		kind   fault.Kind
		says   string
	}{
		{login, 400, `{"error":{"message":"Expecting to find domain in project."}}`, fault.Denied, "Expecting to find domain in project."},
		{login, 401, `{"error":{"message":"The password is expired and needs to be changed for user: 1."}}`, fault.Denied, "The password is expired"},
		{login, 403, `{"error":{"message":"You are not authorized"}}`, fault.Denied, "Secret clusters/os-creds"},
		{login, 404, `<html>no</html>`, fault.Denied, "not the URL of a Keystone"},
		{login, 301, ``, fault.Denied, "status 301"},
		{login, 429, ``, fault.Wait, "logging in to Keystone"},
		{login, 500, `{"error":{"message":"An unexpected error"}}`, fault.Wait, "An unexpected error"},
		{login, 503, `<html>` + password + `</html>`, fault.Wait, "status 503 Service Unavailable"},
		{login, 418, ``, fault.Unknown, "status 418"},
		{list, 401, `{"error":{"message":"no"}}`, fault.Denied, "rejects the token"},
		{list, 403, `{"forbidden":{"message":"Policy doesn't allow os_compute_api:servers:detail to be performed."}}`, fault.Denied, "Policy doesn't allow os_compute_api:servers:detail"},
		{list, 404, `{"itemNotFound":{"message":"no"}}`, fault.Denied, "listing servers of project p1"},
		{list, 413, `{"overLimit":{"message":"This request was rate-limited."}}`, fault.Wait, "rate-limited"},
		{list, 429, ``, fault.Wait, "status 429"},
		{list, 498, ``, fault.Wait, "status 498"},
		{list, 500, `{"computeFault":{"message":"Unexpected API Error. ` + password + `"}}`, fault.Wait, "Unexpected API Error."},
		{list, 504, `<html/>`, fault.Wait, "status 504"},
		{list, 418, ``, fault.Unknown, "status 418"},
		{list, 200, `<html>`, fault.Unknown, "listing servers"},
		{action, 400, `{"badRequest":{"message":"no such action"}}`, fault.Denied, "c-12345-master-0"},
		{action, 403, `{"forbidden":{"message":"Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}}`, fault.Capacity, "10 of 10"},
		{action, 403, `{"forbidden":{"message":"Policy doesn't allow it"}}`, fault.Denied, "a role in the project"},
		{action, 500, ``, fault.Wait, "c-12345-master-0"},
		{action, 404, `{"itemNotFound":{"message":"no"}}`, fault.Unknown, ""},
	} {
		t.Run(fmt.Sprintf("%s %d %s", c.path, c.status, c.says), func(t *testing.T) {
			l := newLab(t)
			ref := l.cluster(0)
			l.failure = &failure{path: c.path, status: c.status, body: c.body}
			err := l.Start(t.Context(), ref)
			if c.says == "" {
				must(t, err)
				return
			}
			mustSay(t, err, c.kind, c.says)
		})
	}
}

func TestACloudIsTooOld(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	l.newest = 60
	for _, err := range l.all(t.Context(), ref) {
		mustSay(t, err, fault.Denied, "version 2.69", "Stein")
	}
}

func TestACloudSaysWhenToComeAgain(t *testing.T) {
	l := newLab(t)
	ref := l.cluster(0)
	l.throttled = 1
	if got := fault.RetryAfter(l.Start(t.Context(), ref)); got != 7*time.Second {
		t.Errorf("after %s", got)
	}
	l.failure = &failure{path: "/servers/detail", status: 503}
	if got := fault.RetryAfter(l.Start(t.Context(), ref)); got != busyDelay {
		t.Errorf("after %s", got)
	}
}
