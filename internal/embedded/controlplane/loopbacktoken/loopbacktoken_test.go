package loopbacktoken

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestOr(t *testing.T) {
	errStranger := errors.New("a stranger")
	others := authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		switch req.Header.Get("Authorization") {
		case "":
			return nil, false, nil
		case "Bearer theirs":
			return &authenticator.Response{User: &user.DefaultInfo{Name: "them"}}, true, nil
		default:
			return nil, false, errStranger
		}
	})
	var c, strangers Authenticator
	ours, second := c.IssueToken("us", "ours", "all"), c.IssueToken("us")
	if ours == second || len(ours) < 26 {
		t.Fatalf("tokens of %d letters, the same: %t", len(ours), ours == second)
	}
	for name, tc := range map[string]struct {
		header string
		user   string
		groups []string
		err    bool
	}{
		"one of ours":        {"Bearer " + ours, "us", []string{"ours", "all", user.AllAuthenticated}, false},
		"another of ours":    {"Bearer " + second, "us", []string{user.AllAuthenticated}, false},
		"known to others":    {"Bearer theirs", "them", nil, false},
		"known to nobody":    {"Bearer " + strangers.IssueToken("us", "ours"), "", nil, true},
		"a part of ours":     {"Bearer " + ours[:len(ours)-1], "", nil, true},
		"no token, a client": {"", "", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			req := &http.Request{Header: http.Header{}}
			if tc.header != "" {
				req.Header.Set("Authorization", tc.header)
			}
			got, known, err := c.WrapAuthenticator(others).AuthenticateRequest(req)
			if known != (tc.user != "") || errors.Is(err, errStranger) != tc.err {
				t.Fatalf("known: %t, %v", known, err)
			}
			if known && (got.User.GetName() != tc.user || !slices.Equal(got.User.GetGroups(), tc.groups)) {
				t.Errorf("%s of %q, want %s of %q", got.User.GetName(), got.User.GetGroups(), tc.user, tc.groups)
			}
		})
	}
}
