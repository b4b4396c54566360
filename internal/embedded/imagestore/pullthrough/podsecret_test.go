package pullthrough

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
)

// with returns the cluster for a pod whose imagePullSecrets contain the password of a user.
func (c *cluster) with(user string) *cluster {
	pod := *c
	pod.pod = user
	return &pod
}

var bothAuths = map[string]registrytest.Auth{"with passwords": registrytest.Basic, "with tokens": registrytest.Token}

func TestThePullSecretOfAPodGivesAccessToItsPullsOnly(t *testing.T) {
	for name, auth := range bothAuths {
		for _, own := range []string{"", bob, wrong} { // the pull secret of the cluster
			t.Run(name+", in a cluster of "+own, func(t *testing.T) {
				l := newLabWith(t, auth)
				c := l.newCluster(own)
				if got := c.request(http.MethodHead, "team/app/manifests/v1"); got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("Www-Authenticate"), "Basic ") {
					t.Errorf("the node is not asked for the credentials of the pod: %d, %v", got.status, got.header)
				}
				c.with(alice).want("OK", "team/app", "v1")
				l.requests()
				c.with(alice).want("OK", "team/app", "v1")
				l.wantRequests("")
				for _, other := range []string{"", bob, wrong} {
					c.with(other).want("401", "team/app", "v1")
					for _, path := range l.layers("team/app") {
						if got := c.with(other).get(path); got.status != http.StatusUnauthorized {
							t.Errorf("user %q gets %s: %d", other, path, got.status)
						}
					}
				}
				l.logged("") // nothing in the log is a secret
			})
		}
	}
}

func TestThePullSecretOfAPodMayBeThatOfAnotherCluster(t *testing.T) {
	l := newLab(t)
	l.newCluster(alice).want("OK", "team/app", "v1")
	l.requests()
	second := l.newCluster("")
	second.with(alice).want("OK", "team/app", "v1")
	l.wantRequests("")
	l.registry.Set(func(s *registrytest.Settings) { s.Status = 503 })
	l.step(time.Hour)
	second.with(alice).want("OK", "team/app", "v1")
	l.step(time.Minute)
	if got := second.with(bob).pull("team/app", "v1"); got == "OK" {
		t.Error("another user gets the image while the registry is down")
	}
}

func TestAPullSecretThatGivesNoAccessDoesNotHideThatOfTheCluster(t *testing.T) {
	l := newLab(t)
	c := l.newCluster(alice)
	for _, user := range []string{bob, wrong} {
		c.with(user).want("OK", "team/app", "v1")
		c.with(user).want("OK", "open/app", "v1")
	}
}

func TestCredentialsAreSentToTheRegistryOfTheImageOnly(t *testing.T) {
	for name, auth := range bothAuths {
		t.Run(name, func(t *testing.T) {
			l := newLabWith(t, auth)
			stranger := registrytest.New(t, auth)
			stranger.Push(t, "team/app:v1", l.image)
			stranger.Push(t, "open/app:v1", l.image)
			stranger.Set(func(s *registrytest.Settings) { s.Owners = map[string]string{"team/app": "mallory"} })
			l.others = []string{stranger.Host}
			c := l.newCluster(alice)
			for path, want := range map[string]int{"open/app/manifests/v1": http.StatusOK, "team/app/manifests/v1": http.StatusUnauthorized} {
				if got := c.requestFrom(stranger, http.MethodGet, path); got.status != want {
					t.Errorf("%s: %d, want %d", path, got.status, want)
				}
			}
			if sent := stranger.Authorizations(); strings.Contains(strings.Join(sent, " "), encodeBasic(alice)) {
				t.Errorf("the other registry gets the pull secret of the cluster: %q", sent)
			}
			c.with(bob).requestFrom(stranger, http.MethodGet, "team/app/manifests/v1")
			c.with(bob).request(http.MethodGet, "open/app/manifests/v1")
			if sent := stranger.Authorizations(); !strings.Contains(strings.Join(sent, " "), encodeBasic(bob)) || strings.Contains(strings.Join(sent, " "), encodeBasic(alice)) {
				t.Errorf("for a pod with a pull secret, the other registry gets %q", sent)
			}
			before := len(l.registry.Authorizations())
			c.with("mallory:m-hush").requestFrom(stranger, http.MethodGet, "team/app/manifests/v1")
			if sent := l.registry.Authorizations(); len(sent) != before {
				t.Errorf("a pull from the other registry asks this one: %q", sent)
			}
		})
	}
}

func encodeBasic(user string) string { return base64.StdEncoding.EncodeToString([]byte(user)) }

func TestThePullSecretOfAPodIsNotWritten(t *testing.T) {
	l := newLab(t)
	l.newCluster("").with(alice).want("OK", "team/app", "v1")
	err := filepath.WalkDir(l.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, secret := range []string{"hush", encodeBasic(alice)} {
			if strings.Contains(string(raw)+path, secret) {
				return fmt.Errorf("%s contains credentials", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
