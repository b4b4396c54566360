//go:build containers

package containers

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
)

// testRegistry and badRegistry are registries on this computer from which the clusters of the shared hub may
// pull. badRegistry is that of testBadImages.
var testRegistry, badRegistry *registrytest.Registry

// startRegistries starts the registries until the returned function is called.
func startRegistries() func() {
	var servers []*httptest.Server
	for _, r := range []**registrytest.Registry{&testRegistry, &badRegistry} {
		*r = registrytest.NewHandler(registrytest.Token)
		server := httptest.NewServer(*r)
		(*r).URL, (*r).Host = server.URL, strings.TrimPrefix(server.URL, "http://")
		servers = append(servers, server)
	}
	return func() {
		for _, server := range servers {
			server.Close()
		}
	}
}

// pushPrivateImage pushes an image that only the user alice may pull, and returns its name.
func pushPrivateImage(t *testing.T) string {
	t.Helper()
	loaded := readTestImage(t)
	file, err := loaded.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	config.Env = append(config.Env, "IMAGE=private") // no blob is the one of the loaded image: layers are compressed here
	private, err := mutate.Config(loaded, config)
	if err != nil {
		t.Fatal(err)
	}
	testRegistry.Push(t, "team/private:v1", private)
	testRegistry.Set(func(s *registrytest.Settings) {
		s.Users = map[string]string{"alice": "password"}
		s.Owners = map[string]string{"team/private": "alice"}
	})
	return testRegistry.Host + "/team/private:v1"
}

const pullSecretManifest = `apiVersion: v1
kind: Secret
metadata: {name: registry-credentials}
type: kubernetes.io/dockerconfigjson
stringData:
  .dockerconfigjson: '{"auths":{%q:{"auth":%q}}}'
`

const privatePod = `apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: %q, imagePullPolicy: Always}]
`

// contentRequests returns the requests of content that the registry served since the last call.
func contentRequests() (all []string) {
	for _, r := range testRegistry.Take() {
		if strings.HasPrefix(r, "GET ") {
			all = append(all, r)
		}
	}
	return all
}

// TestPullThrough tests that clusters pull a private image with their pull secret, and that the second
// one downloads nothing.
func TestPullThrough(t *testing.T) {
	private := pushPrivateImage(t)
	credentials := base64.StdEncoding.EncodeToString([]byte("alice:password"))
	shared.apply(t, fmt.Sprintf(pullSecretManifest, testRegistry.Host, credentials))
	const withSecret = "pullSecretRef: {name: registry-credentials}"

	first := shared.newClusterWith(t, "pull-first", 1, withSecret)
	waitForPrivatePod(first, "one", private)
	if got := contentRequests(); len(got) != 3 { // the manifest, the configuration, the layer
		t.Errorf("for the first cluster, the registry has served %q", got)
	}
	second := shared.newClusterWith(t, "pull-second", 1, withSecret)
	waitForPrivatePod(second, "one", private)
	if got := contentRequests(); len(got) != 0 {
		t.Errorf("for the second cluster, the registry has served %q", got)
	}
	if got := shared.run(t, "image", "list", "--cached", "-o", "name"); !strings.Contains("\n"+got, "\n"+private+"\n") {
		t.Errorf("the cache has %q", got)
	}
	t.Run("a pod cannot use the credentials of its cluster", func(t *testing.T) {
		address := "http://10.128.0.1:5000/v2/team/private/manifests/v1?ns=" + testRegistry.Host
		out, err := first.try(t.Context(), "", "exec", "one", "--", "wget", "-q", "-O", "-", address)
		if err == nil || !strings.Contains(out, "404") {
			t.Errorf("the pod gets %s (%v)", out, err)
		}
	})
	t.Run("a cluster without the pull secret does not get the image", func(t *testing.T) {
		other := shared.newClusterWith(t, "pull-other", 1, "")
		other.apply(fmt.Sprintf(privatePod, "one", private))
		other.eventually(time.Minute, "ErrImagePull", "get", "events", "--field-selector", "involvedObject.name=one")
		t.Log(other.kubectl("get", "events", "--field-selector", "involvedObject.name=one,reason=Failed", "-o", "jsonpath={.items[*].message}"))
		testPodPullSecrets(t, other.of(t), private)
	})
	t.Run("a registry that is down does not stop new pods", func(t *testing.T) {
		testRegistry.Set(func(s *registrytest.Settings) { s.Status = 503 })
		defer testRegistry.Set(func(s *registrytest.Settings) { s.Status = 0 })
		waitForPrivatePod(second.of(t), "two", private)
	})
}

// testPodPullSecrets pulls the private image with the imagePullSecrets of a pod, in a cluster without a pull secret.
func testPodPullSecrets(t *testing.T, c *cluster, private string) {
	t.Helper()
	for name, user := range map[string]string{"right": "alice:password", "wrong": "alice:guessed"} {
		c.apply(fmt.Sprintf(strings.ReplaceAll(pullSecretManifest, "registry-credentials", name), testRegistry.Host, base64.StdEncoding.EncodeToString([]byte(user))))
	}
	testRegistry.Take()
	for _, secret := range []string{"right", "wrong"} {
		c.apply(fmt.Sprintf(privatePod+"  imagePullSecrets: [{name: %s}]\n", secret, private, secret))
	}
	c.kubectl("wait", "pod/right", "--for=condition=Ready", "--timeout=3m")
	c.eventually(time.Minute, "ErrImagePull", "get", "events", "--field-selector", "involvedObject.name=wrong")
	t.Log(c.kubectl("get", "events", "--field-selector", "involvedObject.name=wrong,reason=Failed", "-o", "jsonpath={.items[*].message}"))
	if got := contentRequests(); len(got) != 0 {
		t.Errorf("for the credentials of the pod, the registry has served %q, which the cache has", got)
	}
}

// waitForPrivatePod creates a pod and waits until it is ready.
func waitForPrivatePod(c *cluster, pod, image string) {
	c.t.Helper()
	c.apply(fmt.Sprintf(privatePod, pod, image))
	began := time.Now()
	c.kubectl("wait", "pod/"+pod, "--for=condition=Ready", "--timeout=3m")
	c.t.Logf("cluster %s: pod %s is ready after %s", c.name, pod, time.Since(began).Round(100*time.Millisecond))
}
