//go:build containers

package containers

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Flags of TestKubernetes.
var (
	kubernetesFocus   = flag.String("kubernetes.focus", "", "run the end-to-end tests of Kubernetes whose names match; empty runs none")
	kubernetesSkip    = flag.String("kubernetes.skip", "", "leave out those whose names match")
	kubernetesTimeout = flag.String("kubernetes.timeout", "80m", "how long they may take")
)

// kubernetesPrograms is the folder into which make kubernetes-tests builds e2e.test and agnhost.
const kubernetesPrograms = "../../bin/kubernetes"

// registry is the registry in the names of the images of Kubernetes' tests.
const registry = "registry.k8s.io/"

// TestKubernetes runs Kubernetes' own end-to-end tests on a cluster with two workers. It makes the
// images that most of them use from Debian's programs, because it has no network. Tests that need
// other images must be left out: they wait for them for five minutes.
func TestKubernetes(t *testing.T) {
	if *kubernetesFocus == "" {
		t.Skip("make kubernetes-tests runs them")
	}
	for _, archive := range makeKubernetesImages(t) {
		shared.run(t, "image", "load", archive)
	}
	c := shared.newCluster(t, "kubernetes", 2)
	program, err := filepath.Abs(filepath.Join(kubernetesPrograms, "e2e.test"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--provider=skeleton", "--kubeconfig="+c.kubeconfig, "--kubectl-path="+makeKubectl(t), //nolint:noctx // it has a timeout
		"--num-nodes=2", "--allowed-not-ready-nodes=1", "--ginkgo.no-color", "--ginkgo.silence-skips", "--ginkgo.timeout="+*kubernetesTimeout,
		"--ginkgo.focus="+*kubernetesFocus, "--ginkgo.skip="+*kubernetesSkip)
	out, err := cmd.CombinedOutput()
	path := filepath.Join(kubernetesPrograms, "e2e.log")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Error(err)
	}
	t.Logf("%s\n%s", regexp.MustCompile(`Ran \d+ of \d+ Specs.*\n.*`).Find(out), bytes.Join(regexp.MustCompile(`(?m)^  \[(FAIL|TIMEDOUT)\].*$`).FindAll(out, -1), []byte("\n")))
	if err != nil {
		t.Errorf("%v: see %s", err, path)
	}
}

// makeKubectl makes a program that is kubectl, and returns its path.
func makeKubectl(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec "+binary+" kubectl \"$@\"\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

// makeKubernetesImages makes archives of the images that Kubernetes' tests use, and returns their
// paths.
func makeKubernetesImages(t *testing.T) []string {
	t.Helper()
	tools := toolFiles(t)
	withAgnhost := maps.Clone(tools)
	withAgnhost["agnhost"] = filepath.Join(kubernetesPrograms, "agnhost")
	withAgnhost["agnhost-2"] = withAgnhost["agnhost"]
	porter := filepath.Join(moduleFolder(t), "test", "images", "agnhost", "porter")
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		withAgnhost[name] = filepath.Join(porter, name)
	}
	withKitten := maps.Clone(tools) // what the tests of image volumes read
	withKitten["data.json"] = writeTestFile(t, `{"image": "kitten.jpg"}`)
	withKitten["etc/os-release"] = writeTestFile(t, "NAME=\"Alpine Linux\"\n")
	var archives []string
	for _, image := range []struct {
		name     string
		files    map[string]string
		settings map[string]any
	}{
		{"pause:3.10.2", withAgnhost, map[string]any{"Entrypoint": []string{"/agnhost", "pause"}}},
		{"e2e-test-images/busybox:1.37.0-1", tools, map[string]any{"Cmd": []string{"sh"}}},
		{"e2e-test-images/glibc-dns-testing:2.0.0", tools, map[string]any{"Cmd": []string{"sleep", "100000"}}},
		{"e2e-test-images/agnhost:2.63.0", withAgnhost, map[string]any{"Entrypoint": []string{"/agnhost"}, "Cmd": []string{"pause"}}},
		{"e2e-test-images/agnhost:2.55", withAgnhost, map[string]any{"Entrypoint": []string{"/agnhost"}, "Cmd": []string{"pause"}}},
		{"e2e-test-images/kitten:1.8", withKitten, map[string]any{"Cmd": []string{"sh"}}},
	} {
		image.settings["Env"] = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
		path := filepath.Join(t.TempDir(), "image.tar")
		if err := writeImage(path, registry+image.name, makeToolLayer(t, image.files), image.settings); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, path)
	}
	return archives
}

// writeTestFile writes a file with the content, and returns its path.
func writeTestFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// moduleFolder returns the folder of the module k8s.io/kubernetes.
func moduleFolder(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output() //nolint:noctx // it ends
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// toolFiles returns the programs that Kubernetes' tests call in containers, with the libraries that
// they need: paths on this computer by the path in the image.
func toolFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{
		// busybox's own shell prefers its own nc, and drops variables whose names are not valid in a shell.
		"bin/busybox": "/bin/busybox", "bin/bash": "/bin/bash", "bin/sh": "/bin/bash", "bin/nc": "/bin/nc.openbsd", "usr/bin/getent": "/usr/bin/getent",
		"usr/bin/curl": "/usr/bin/curl", "usr/bin/dig": "/usr/bin/dig", "sbin/ip": "/sbin/ip", "sbin/ss": "/bin/ss",
	}
	library := regexp.MustCompile(`/\S+\.so\S*`)
	for _, program := range slices.Sorted(maps.Values(files)) {
		out, _ := exec.Command("ldd", program).Output() //nolint:noctx // it ends; it fails for a static program
		for _, path := range library.FindAllString(string(out), -1) {
			files[strings.TrimPrefix(path, "/")] = path
		}
	}
	return files
}

// makeToolLayer returns a tar of files, with the commands of busybox that are not among them.
func makeToolLayer(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, dir := range []string{"bin", "etc", "home", "root", "sbin", "tmp", "uploads", "usr/bin", "usr/sbin", "var/tmp"} {
		if err := w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[name])
		if err != nil {
			t.Fatal(err)
		}
		if err := addFile(w, name, content); err != nil {
			t.Fatal(err)
		}
	}
	list, err := exec.Command("/bin/busybox", "--list").Output() //nolint:noctx // it ends
	if err != nil {
		t.Fatal(err)
	}
	for applet := range strings.FieldsSeq(string(list)) {
		name := "bin/" + applet
		if files[name] != "" || files["s"+name] != "" || files["usr/"+name] != "" {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n", "etc/group": "root:x:0:\n",
		"etc/nsswitch.conf": "hosts: files dns\n",
	} {
		if err := addFile(w, name, []byte(content)); err != nil {
			t.Fatal(fmt.Errorf("adding %s: %w", name, err))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}
