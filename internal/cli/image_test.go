package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
	"hotspare.io/hotspare/internal/embedded/imagestore/pullthrough"
	"hotspare.io/hotspare/internal/embedded/imagestore/registryapi"
	"hotspare.io/hotspare/internal/embedded/imagestore/registrytest"
	"hotspare.io/hotspare/internal/embedded/imagestore/upstream"
	"hotspare.io/hotspare/internal/embedded/machine"
)

// tarOf returns an archive of files: name, content, name, content.
func tarOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Mode: 0o644, Size: int64(len(files[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// dockerSave returns an archive of docker save with one image.
func dockerSave(t *testing.T, architecture string, names ...string) string {
	t.Helper()
	layer := tarOf(t, "etc/motd", strings.Repeat("text ", 1000))
	config := fmt.Sprintf(`{"os":"linux","architecture":%q,"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, architecture, sha256.Sum256(layer))
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(tarOf(t, "config.json", config, "layer.tar", string(layer), "manifest.json", string(manifest)))
}

// imageRig returns a rig without a hub, in a new working folder with some archives.
func imageRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, interceptor.Funcs{})
	t.Setenv("KUBECONFIG", "")
	t.Chdir(t.TempDir())
	t.Setenv("HOTSPARE_DATA_DIR", "data")
	write(t, "busybox.tar", dockerSave(t, runtime.GOARCH, "busybox:1.36"))
	write(t, "two.tar", dockerSave(t, runtime.GOARCH, "quay.io/team/app:v1", "quay.io/team/app:latest"))
	write(t, "unnamed.tar", dockerSave(t, runtime.GOARCH))
	write(t, "foreign.tar", dockerSave(t, "s390x", "foreign"))
	write(t, "truncated.tar", dockerSave(t, runtime.GOARCH, "x")[:3000])
	write(t, "text.tar", strings.Repeat("text ", 1000))
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	return r
}

var digests = regexp.MustCompile(`sha256:[0-9a-f]+`)

// imageTranscript is a transcript without this computer's architecture, on which digests depend.
func imageTranscript(r *rig, lines ...string) string {
	text := digests.ReplaceAllString(transcript(r, lines), "sha256:<digest>")
	return strings.ReplaceAll(text, "linux/"+runtime.GOARCH, "linux/<this>")
}

func TestImageTranscripts(t *testing.T) {
	for name, lines := range map[string][]string{
		"image":        {"image list", "image load busybox.tar two.tar", "image list", "images ls -o name", "image load unnamed.tar --name registry.example.com/a/b -o json", "image delete busybox:1.36 quay.io/team/app", "image list -o yaml", "image delete quay.io/team/app:v1 -o name", "image delete registry.example.com/a/b -o json"},
		"image-bad":    {"image load nope.tar", "image load text.tar busybox.tar truncated.tar", "image load foreign.tar", "image load folder", "image load unnamed.tar", "image load busybox.tar --name A:b", "image load busybox.tar two.tar --name x", "image load busybox.tar --name=", "image load", "image delete", "image delete nope", "image delete nope --data-dir data -o json", "image delete A", "image list x", "image lod"},
		"image-help":   {"image", "image load --help", "image list --help", "image prune --help"},
		"image-cached": {"image list --cached", "image list --cached -o json", "image list --cached -o name", "image prune", "image prune -o yaml", "image prune x"},
		"image-nohub":  {"image list --kubeconfig /no/such/file", "image list --data-dir none"},
		"image-format": {"image load busybox.tar -o name", "image load two.tar -o yaml", "image list -o json"},
	} {
		t.Run(name, func(t *testing.T) {
			compare(t, name, imageTranscript(imageRig(t), lines...))
		})
	}
}

// imagePoolRig returns a rig with pools, in a working folder with some archives.
func imagePoolRig(t *testing.T, with interceptor.Funcs) *rig {
	t.Helper()
	containerless, workerless, cloud := devPool(), devPool(), devPool()
	shortly := devPool()
	shortly.Name, shortly.Spec.Platform.Local.Images = "shortly", []hivev1.LocalImage{"busybox:1.36"}
	containerless.Name, containerless.Spec.Platform.Local.Containers = "containerless", hivev1.LocalContainersNever
	workerless.Name, workerless.Spec.Platform.Local.Workers = "workerless", new(int32)
	cloud.Name, cloud.Spec.Platform = "cloud", hivev1.Platform{CAPI: &hivev1.CAPIPlatform{}}
	r := newRig(t, with, devPool(), containerless, workerless, cloud, shortly)
	t.Chdir(t.TempDir())
	t.Setenv("HOTSPARE_DATA_DIR", "data")
	write(t, "busybox.tar", dockerSave(t, runtime.GOARCH, "busybox:1.36"))
	write(t, "two.tar", dockerSave(t, runtime.GOARCH, "quay.io/team/app:v1", "quay.io/team/app:latest"))
	write(t, "text.tar", strings.Repeat("text ", 1000))
	return r
}

func TestImagesAreLoadedForAPool(t *testing.T) {
	compare(t, "image-pool", imageTranscript(imagePoolRig(t, interceptor.Funcs{}),
		"image load busybox.tar --pool dev", "image load busybox.tar two.tar text.tar --pool dev", "image load busybox.tar --pool dev -o name",
		"image load busybox.tar --pool nope", "image load busybox.tar --pool cloud", "image load busybox.tar --pool containerless",
		"image load busybox.tar --pool workerless", "image load busybox.tar busybox.tar --pool shortly", "image load busybox.tar --pool="))
}

func TestAnImageThatIsNotAddedToAPoolIsStillLoaded(t *testing.T) {
	conflicts := 0
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusterpools"}, "dev", errors.New("it was changed"))
	r := imagePoolRig(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if conflicts--; conflicts >= 0 {
				return conflict
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	conflicts = 100
	if code := r.run("image", "load", "busybox.tar", "--pool", "dev"); code != 1 || !strings.Contains(r.stdout.String(), "loaded docker.io/library/busybox:1.36") {
		t.Errorf("exit code %d: %s%s", code, r.stdout.String(), r.stderr.String())
	}
	conflicts = 2
	if code := r.run("image", "load", "busybox.tar", "--pool", "dev"); code != 0 {
		t.Errorf("exit code %d: %s", code, r.stderr.String())
	}
	var p hivev1.ClusterPool
	if err := r.hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "dev"}, &p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]hivev1.LocalImage{"docker.io/library/busybox:1.36"}, p.Spec.Platform.Local.Images); diff != "" {
		t.Error(diff)
	}
}

func TestTerminalOfImageList(t *testing.T) {
	r := imageRig(t)
	r.run("image", "load", "busybox.tar")
	r.terminal, r.width = true, 60
	if code := r.run("image", "list"); code != 0 || strings.Contains(r.stdout.String(), "DIGEST") || !strings.Contains(r.stdout.String(), "PLATFORMS") {
		t.Errorf("exit code %d: %s", code, r.stdout.String())
	}
}

func TestImagesAreInTheFolderOfTheMachines(t *testing.T) {
	r := imageRig(t)
	if code := r.run("image", "load", "busybox.tar", "--data-dir", "other"); code != 0 {
		t.Fatal(r.stderr.String())
	}
	images, err := imagestore.Open(machine.ImagesPath(filepath.Join("other", "machines"))).List()
	if err != nil || len(images) != 1 || images[0].Name != "docker.io/library/busybox:1.36" {
		t.Errorf("got %v, %v", images, err)
	}
}

func TestImagesAreCompleted(t *testing.T) {
	r := imageRig(t)
	r.run("image", "load", "busybox.tar", "two.tar")
	for typed, want := range map[string]string{
		"": "docker.io/library/busybox:1.36 quay.io/team/app:latest quay.io/team/app:v1",
		"quay.io/team/app:v1 " + "docker.io/library/busybox:1.36" + " ": "quay.io/team/app:latest",
	} {
		r.run(append([]string{"__complete", "image", "delete"}, strings.Split(typed, " ")...)...)
		got, _, _ := strings.Cut(r.stdout.String(), ":4") // no files
		if diff := cmp.Diff(want, strings.Join(strings.Fields(got), " ")); diff != "" {
			t.Errorf("%s: %s", typed, diff)
		}
	}
}

func TestImageLoadEndsAtASignal(t *testing.T) {
	r := imageRig(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(base.InterruptError{Signal: syscall.SIGINT})
	if code := r.runIn(ctx, "image", "load", "busybox.tar"); code != 130 || r.stderr.String() != "error: interrupted\n" {
		t.Errorf("exit code %d: %s", code, r.stderr.String())
	}
}

// cacheImage puts an image into the cache, as a local cluster does that pulls it.
func cacheImage(t *testing.T) {
	t.Helper()
	registry := registrytest.New(t, registrytest.Basic)
	image, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	registry.Push(t, "team/app:v1", image)
	dir := machine.ImageCachePath(filepath.Join("data", "machines"))
	if err := pullthrough.WriteSettings(dir, pullthrough.Settings{Limit: 5e9}); err != nil {
		t.Fatal(err)
	}
	client := upstream.New(upstream.Options{IsAllowed: func(netip.Addr) bool { return false }, Insecure: []string{registry.Host}})
	source, err := pullthrough.New(t.Context(), pullthrough.Options{Dir: dir, Limit: 5e9, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	named, err := reference.ParseNormalizedNamed(registry.Host + "/team/app")
	if err != nil {
		t.Fatal(err)
	}
	content, err := source.OpenManifest(t.Context(), registryapi.Request{Repository: named, Tag: "v1"})
	if err != nil || content.Body.Close() != nil {
		t.Fatal(err)
	}
	source.Wait()
}

func TestCachedImagesAreListedAndDeleted(t *testing.T) {
	r := imageRig(t)
	cacheImage(t)
	for _, c := range []struct{ command, want string }{
		{"image list --cached", `(?s)^NAME +DIGEST +SIZE +USED\n127.0.0.1:\d+/team/app:v1 +sha256:\w{12} +\d+ B +\S+\n\n\d+ B of at most 5.0 GB are used. Images share layers.\n$`},
		{"image list --cached -o name", `^127.0.0.1:\d+/team/app:v1\n$`},
		{"image list --cached -o json", `(?s)"size": \d+,\n +"used": "\d{4}-.*"limit": 5000000000`},
		{"image list", `^$`},
		{"image prune", `^deleted the cached images \(\d+ B\)\n$`},
		{"image list --cached", `^$`},
		{"image prune -o json", `"freedBytes": 0`},
	} {
		if code := r.run(strings.Fields(c.command)...); code != 0 || !regexp.MustCompile(c.want).MatchString(r.stdout.String()) {
			t.Errorf("%s: exit code %d: %s%s", c.command, code, r.stdout.String(), r.stderr.String())
		}
	}
}

func TestAnImageOfARegistryIsLoadedWithTheGivenCredentials(t *testing.T) {
	r := imageRig(t)
	registry := registrytest.New(t, registrytest.Basic)
	registry.Set(func(s *registrytest.Settings) {
		s.Users = map[string]string{"alice": "hush"}
		s.Owners = map[string]string{"team/app": "alice"}
	})
	image, err := random.Image(500, 1)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	registry.Push(t, "team/app:v1", image)
	settings := pullthrough.Settings{InsecureRegistries: []string{registry.Host}}
	if err := pullthrough.WriteSettings(machine.ImageCachePath(filepath.Join("data", "machines")), settings); err != nil {
		t.Fatal(err)
	}
	name := registry.Host + "/team/app:v1"
	if code := r.run("image", "load", name); code != 1 || !strings.Contains(r.stderr.String(), "check the credentials for it in the pull secret") {
		t.Errorf("without credentials: exit code %d: %s", code, r.stderr.String())
	}
	write(t, "secret.json", fmt.Sprintf(`{"auths":{%q:{"username":"alice","password":"hush"}}}`, registry.Host))
	if code := r.run("image", "load", name, "busybox.tar", "--pull-secret", "secret.json"); code != 0 {
		t.Fatalf("exit code %d: %s", code, r.stderr.String())
	}
	if got := r.stdout.String(); !strings.Contains(got, "loaded "+name+" (") || !strings.Contains(got, "loaded docker.io/library/busybox:1.36 (") {
		t.Errorf("it prints %s", got)
	}
	write(t, "secret.json", "{")
	if code := r.run("image", "load", name, "--pull-secret", "secret.json"); code != 1 || !strings.Contains(r.stderr.String(), "--pull-secret: secret.json: ") {
		t.Errorf("with a file that is no secret: exit code %d: %s", code, r.stderr.String())
	}
}

func TestAFileWhoseNameIsMisspelledIsNotSearchedInARegistry(t *testing.T) {
	r := imageRig(t)
	for _, name := range []string{"busibox.tar", "archives/busybox", "./busybox:1.36", "Busybox:1.36"} {
		if code := r.run("image", "load", name); code != 1 || !strings.Contains(r.stderr.String(), "there is no such file") {
			t.Errorf("%s: exit code %d: %s", name, code, r.stderr.String())
		}
	}
}
