//go:build containers

package containers

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
)

// testBadImages creates a pod for each image that cannot be pulled, and reads the events of the pods. The
// commands about loaded images are tested in package imagestore.
func testBadImages(t *testing.T, c *cluster) {
	good := readTestImage(t)
	badRegistry.Push(t, "bad/architecture:v1", makeForeignImage(t))
	foreign := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add:        withArchitecture(t, good, "s390x"),
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "s390x"}},
	})
	badRegistry.Push(t, "bad/index:v1", foreign)
	broken := pushRandomImage(t, "bad/layer:v1")
	lost := pushRandomImage(t, "bad/lost:v1")
	badRegistry.Set(func(s *registrytest.Settings) {
		s.Missing = []string{"bad/lost/blobs/" + lost}
		s.Body = func(w http.ResponseWriter, content []byte) {
			if altered := append([]byte{}, content...); digest(content) == strings.TrimPrefix(broken, "sha256:") {
				altered[len(altered)-1] ^= 1
				content = altered
			}
			_, _ = w.Write(content) // the client has gone
		}
	})
	defer badRegistry.Set(func(s *registrytest.Settings) { s.Missing, s.Body = nil, nil })

	cases := map[string]struct{ image, want string }{
		"missing-tag":        {"bad/layer:v2", "410 Gone"},
		"missing-repository": {"bad/nothing:v1", "410 Gone"},
		"missing-layer":      {"bad/lost:v1", "not found"},
		"broken-layer":       {"bad/layer:v1", "unexpected commit digest"},
		"other-platforms":    {"bad/index:v1", "no match for platform"},
	}
	for pod, image := range cases {
		c.apply(fmt.Sprintf(privatePod, pod, badRegistry.Host+"/"+image.image))
	}
	// containerd starts an image that is for one platform only.
	c.apply(fmt.Sprintf(privatePod, "other-architecture", badRegistry.Host+"/bad/architecture:v1"))
	c.eventually(time.Minute, "exec format error", "logs", "other-architecture")
	c.kubectl("delete", "pod", "other-architecture", "--now", "--wait=false")
	for pod, image := range cases {
		c.eventually(time.Minute, "Failed to pull image", "get", "events", "--field-selector", "reason=Failed,involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}")
		out := c.kubectl("get", "events", "--field-selector", "reason=Failed,involvedObject.name="+pod, "-o", "jsonpath={.items[*].message}")
		t.Logf("%s: %s", pod, out)
		if !strings.Contains(out, image.image) || !strings.Contains(out, image.want) {
			t.Errorf("%s: the events do not say %q:\n%s", pod, image.want, out)
		}
		c.kubectl("delete", "pod", pod, "--now", "--wait=false")
	}
}

// readTestImage returns the image of the tests.
func readTestImage(t *testing.T) v1.Image {
	t.Helper()
	tag, err := name.NewTag(imageName)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(image, &tag)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// makeForeignImage returns an image for another architecture, with a program for it.
func makeForeignImage(t *testing.T) v1.Image {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	program := append([]byte("\x7fELF\x02\x02\x01"), make([]byte, 100)...) // for a processor with the other byte order
	if err := errors.Join(addFile(w, "program", program), w.Close()); err != nil {
		t.Fatal(err)
	}
	foreign, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.OCIUncompressedLayer))
	if err == nil {
		foreign, err = mutate.Config(foreign, v1.Config{Cmd: []string{"/program"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return withArchitecture(t, foreign, "s390x")
}

// withArchitecture returns an image that claims to be of another architecture.
func withArchitecture(t *testing.T, image v1.Image, architecture string) v1.Image {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", architecture
	changed, err := mutate.ConfigFile(image, file)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// pushRandomImage pushes an image for this computer with a layer of its own, and returns the digest of the layer.
func pushRandomImage(t *testing.T, tag string) string {
	t.Helper()
	layer, err := random.Layer(1<<20, "application/vnd.oci.image.layer.v1.tar")
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := mutate.AppendLayers(readTestImage(t), layer)
	if err != nil {
		t.Fatal(err)
	}
	badRegistry.Push(t, tag, pushed)
	hash, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

// testClusterRegistry pulls from a registry that is a pod: by a node port of the node itself, as
// docs/platforms/local.md says, and in vain by the address of its Service, because the registry has no
// certificate.
func testClusterRegistry(t *testing.T, c *cluster) {
	c.apply(`apiVersion: v1
kind: Pod
metadata: {name: registry, labels: {app: registry}}
spec:
  containers:
  - name: main
    image: hotspare.test/testpod:1
    command: [testpod, registry, ":5000"]
    readinessProbe: {httpGet: {path: /v2/, port: 5000}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: registry}
spec:
  type: LoadBalancer
  selector: {app: registry}
  ports: [{port: 5000, nodePort: 30500}]
`)
	c.kubectl("wait", "pod/registry", "--for=condition=Ready", "--timeout=3m")
	address := c.loadBalancerAddress("registry")
	getFromHost(t, "http://"+address+":5000/v2/")
	tag, err := name.NewTag(address+":5000/team/app:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	file, err := readTestImage(t).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	config.Env = append(config.Env, "IMAGE=cluster")
	pushed, err := mutate.Config(readTestImage(t), config)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, pushed, remote.WithContext(t.Context())); err != nil {
		t.Fatalf("pushing to the registry in the cluster: %v", err)
	}
	waitForPrivatePod(c, "from-node-port", "localhost:30500/team/app:v1")
	if out := c.kubectl("exec", "from-node-port", "--", "sh", "-c", "echo $IMAGE"); out != "cluster\n" {
		t.Errorf("the image is %q", out)
	}
	clusterIP := c.kubectl("get", "service", "registry", "-o", "jsonpath={.spec.clusterIP}")
	c.apply(fmt.Sprintf(privatePod, "from-service", clusterIP+":5000/team/app:v1"))
	c.eventually(time.Minute, "server gave HTTP response to HTTPS client", "get", "events", "--field-selector", "reason=Failed,involvedObject.name=from-service", "-o", "jsonpath={.items[*].message}")
	c.kubectl("delete", "pod", "from-service", "--now", "--wait=false")
}
