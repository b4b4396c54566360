// Package pullsecret finds the credentials for a repository in a pull secret. It is pure.
package pullsecret

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
)

// Secret are the registry credentials of a cluster. The zero value contains none.
type Secret struct {
	entries []entry // the longest path first
}

type entry struct {
	// registry is a host name, with its port if it has one; path is the start of repositories, which
	// may be empty.
	registry, path string
	credentials    authn.AuthConfig
}

// Parse parses the content of a .dockerconfigjson. It returns the usable entries also with an error,
// which names the entries that are not, and quotes no credentials.
func Parse(raw []byte) (Secret, error) {
	var document struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if json.Unmarshal(raw, &document) != nil {
		return Secret{}, errors.New(`the pull secret is not JSON such as {"auths":{"quay.io":{"auth":"…"}}}`)
	}
	var s Secret
	var invalid []string
	for key, value := range document.Auths {
		e := entry{}
		e.registry, e.path = splitKey(key)
		if e.registry == "" || json.Unmarshal(value, &e.credentials) != nil || e.credentials == (authn.AuthConfig{}) {
			invalid = append(invalid, key)
			continue
		}
		s.entries = append(s.entries, e)
	}
	slices.SortFunc(s.entries, func(a, b entry) int {
		if len(a.path) != len(b.path) {
			return len(b.path) - len(a.path)
		}
		return strings.Compare(a.registry+a.path, b.registry+b.path)
	})
	if len(invalid) > 0 {
		slices.Sort(invalid)
		return s, fmt.Errorf("the pull secret has no valid credentials for %s: set auth to the base64 form of user:password", strings.Join(invalid, ", "))
	}
	return s, nil
}

// dockerHub are the names of docker.io in pull secrets.
var dockerHub = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// splitKey splits a key of a pull secret, such as quay.io, quay.io/team, or https://index.docker.io/v1/.
func splitKey(key string) (registry, path string) {
	for _, scheme := range []string{"https://", "http://"} {
		key = strings.TrimPrefix(key, scheme)
	}
	registry, path, _ = strings.Cut(key, "/")
	path = strings.Trim(path, "/")
	if path == "v1" || path == "v2" { // the address of an API
		path = ""
	}
	return canonicalRegistry(registry), path
}

func canonicalRegistry(registry string) string {
	registry = strings.ToLower(registry)
	if slices.Contains(dockerHub, registry) {
		return dockerHub[0]
	}
	return registry
}

// Find returns the credentials for a repository: those of the longest path that contains it, and
// otherwise those of its registry. It returns false if there are none.
func (s Secret) Find(repository reference.Named) (authn.AuthConfig, bool) {
	registry, path := canonicalRegistry(reference.Domain(repository)), reference.Path(repository)
	for _, e := range s.entries {
		if e.registry == registry && (e.path == "" || e.path == path || strings.HasPrefix(path, e.path+"/")) {
			return e.credentials, true
		}
	}
	return authn.AuthConfig{}, false
}
