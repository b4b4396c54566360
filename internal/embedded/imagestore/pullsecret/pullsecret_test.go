package pullsecret

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// secretOf returns a pull secret with a user for each key, who has the same password.
func secretOf(pairs ...string) string {
	var entries []string
	for i := 0; i < len(pairs); i += 2 {
		auth := base64.StdEncoding.EncodeToString([]byte(pairs[i+1] + ":" + password))
		entries = append(entries, `"`+pairs[i]+`":{"auth":"`+auth+`"}`)
	}
	return `{"auths":{` + strings.Join(entries, ",") + `}}`
}

const password = "correct:horse"

func TestFind(t *testing.T) {
	s, err := Parse([]byte(secretOf(
		"quay.io", "host", "quay.io/team", "team", "quay.io/team/app", "app", "quay.io/te", "no component",
		"https://index.docker.io/v1/", "hub", "docker.io/library", "library",
		"localhost:5000", "port", "REGISTRY.example.com/v2/", "upper",
	)))
	if err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{
		"quay.io/other/app":             "host",
		"quay.io/team":                  "team",
		"quay.io/team/other":            "team",
		"quay.io/team/application":      "team",
		"quay.io/team/app":              "app",
		"quay.io/team/app/part":         "app",
		"quay.io/teams/app":             "host",
		"quay.io:443/team/app":          "",
		"busybox":                       "library",
		"team/app":                      "hub",
		"index.docker.io/team/app":      "hub",
		"registry-1.docker.io/team/app": "hub",
		"localhost:5000/team/app":       "port",
		"localhost/team/app":            "",
		"localhost:5001/team/app":       "",
		"registry.example.com/v2/app":   "upper",
		"example.com/quay.io/team/app":  "",
	} {
		named, err := reference.ParseNormalizedNamed(repository)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := s.Find(named)
		if got.Username != want || ok != (want != "") || ok && got.Password != password {
			t.Errorf("%s: got user %q, want %q", repository, got.Username, want)
		}
	}
}

func TestParseReportsInvalidEntriesWithoutTheirContent(t *testing.T) {
	const private = "c2VjcmV0" // "secret", without a colon
	for name, tc := range map[string]struct {
		raw, want string
		entries   int
	}{
		"nothing":           {raw: "", want: "is not JSON"},
		"a list":            {raw: "[]", want: "is not JSON"},
		"no entries":        {raw: "{}"},
		"no colon":          {raw: `{"auths":{"b.io":{"auth":"` + private + `"},"a.io":{"auth":"` + private + `"},"quay.io":{"auth":"YTpi"}}}`, want: "for a.io, b.io:", entries: 1},
		"not base64":        {raw: `{"auths":{"quay.io":{"auth":"!` + private + `"}}}`, want: "for quay.io:"},
		"an empty entry":    {raw: `{"auths":{"quay.io":{}}}`, want: "for quay.io:"},
		"no host":           {raw: `{"auths":{"https:///v1":{"auth":"YTpi"}}}`, want: "for https:///v1:"},
		"user and password": {raw: `{"auths":{"quay.io":{"username":"a","password":"b"}}}`, entries: 1},
		"a token":           {raw: `{"auths":{"quay.io":{"identitytoken":"t"}}}`, entries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse([]byte(tc.raw))
			if len(s.entries) != tc.entries || (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %d entries, %v; want %d, %q", len(s.entries), err, tc.entries, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), private) {
				t.Errorf("the error quotes the secret: %v", err)
			}
		})
	}
}

func TestAnEmptySecretHasNoCredentials(t *testing.T) {
	named, err := reference.ParseNormalizedNamed("busybox")
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := (Secret{}).Find(named); ok {
		t.Errorf("got user %q", got.Username)
	}
}
