//go:build containers

package containers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// binary is the path of the hotspare binary.
var binary = findBinary()

func findBinary() string {
	if path := os.Getenv("HOTSPARE_BINARY"); path != "" {
		return path
	}
	path, err := filepath.Abs("../../bin/hotspare")
	if err != nil {
		panic(err)
	}
	return path
}

// shared is the hub of the tests that run in parallel.
var shared *hub

func TestMain(m *testing.M) {
	if os.Getuid() != 0 {
		fmt.Fprintln(os.Stderr, "the tests of containers need root")
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "TestContainers")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if image, err = makeImage(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer startRegistries()()
	if shared, err = startHub(filepath.Join(dir, "data"), "--insecure-registries", testRegistry.Host+","+badRegistry.Host); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	restore, err := resetOvercommit()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer restore()
	settings := readKernelSettings()
	code := m.Run()
	if now := readKernelSettings(); now != settings {
		fmt.Fprintf(os.Stderr, "the settings of this computer were\n%s\nand are\n%s\n", settings, now)
		code = 1
	}
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if left := leftovers(shared.dir); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "left after the end of the hub:\n%s\n", strings.Join(left, "\n"))
		code = 1
	}
	return code
}

// overcommitPath is one of the settings that a kubelet changes, from the kernel's default, 0, to 1.
const overcommitPath = "/proc/sys/vm/overcommit_memory"

// resetOvercommit sets the kernel's default: a setting that a kubelet has changed before would stay as it is. restore undoes that.
func resetOvercommit() (restore func(), err error) {
	before, err := os.ReadFile(overcommitPath)
	if err != nil || strings.TrimSpace(string(before)) == "0" {
		return func() {}, err
	}
	return func() { _ = os.WriteFile(overcommitPath, before, 0) }, os.WriteFile(overcommitPath, []byte("0"), 0)
}

// readKernelSettings reads the settings that a kubelet changes. No worker has started yet when it is called first.
func readKernelSettings() string {
	var out strings.Builder
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		raw, err := os.ReadFile(filepath.Join("/proc/sys", name))
		fmt.Fprintf(&out, "%s=%s %v\n", name, strings.TrimSpace(string(raw)), err)
	}
	return out.String()
}

// hub is a hotspare up.
type hub struct {
	dir       string
	arguments []string // of hotspare up
	up        *exec.Cmd
	output    bytes.Buffer
}

// startHub starts a hub on the folder dir and loads the image of the tests.
func startHub(dir string, arguments ...string) (*hub, error) {
	h := &hub{dir: dir, arguments: arguments}
	if err := h.start(); err != nil {
		return nil, err
	}
	if out, err := h.command(context.Background(), "image", "load", image).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("loading the image: %w\n%s", err, out)
	}
	return h, nil
}

// start starts the hub and waits until it is ready.
func (h *hub) start() error {
	h.output.Reset()
	h.up = exec.Command(binary, append([]string{"up", "--data-dir", h.dir}, h.arguments...)...) //nolint:noctx // it is stopped by stop
	h.up.Stdout, h.up.Stderr = &h.output, &h.output
	_ = os.Remove(filepath.Join(h.dir, "kubeconfig"))
	if err := h.up.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if h.command(ctx, "status").Run() == nil {
			return nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return fmt.Errorf("the hub is not ready:\n%s", h.output.String())
}

func (h *hub) stop() error {
	if err := h.up.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return h.up.Wait()
}

// command returns a hotspare command for the hub.
func (h *hub) command(ctx context.Context, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, arguments...)
	cmd.Env = append(os.Environ(), "HOTSPARE_DATA_DIR="+h.dir, "KUBECONFIG="+filepath.Join(h.dir, "kubeconfig"))
	return cmd
}

// cluster is a claimed cluster of a hub.
type cluster struct {
	t          *testing.T
	hub        *hub
	name       string // of the claim
	kubeconfig string
}

// run runs a hotspare command on the hub and returns what it prints.
func (h *hub) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := h.command(t.Context(), arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("hotspare %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// newCluster creates a ClusterDeployment with the number of workers and waits until it is installed.
func (h *hub) newCluster(t *testing.T, name string, workers int) *cluster {
	t.Helper()
	return h.newClusterWith(t, name, workers, "")
}

// newClusterOf is newCluster for a cluster with these settings of platform local in its install-config.
func (h *hub) newClusterOf(t *testing.T, name, settings string) *cluster {
	t.Helper()
	return h.createCluster(t, name, clusterManifestOf(name, settings))
}

func clusterManifestOf(name, settings string) string {
	return fmt.Sprintf(clusterManifest, name, settings, "")
}

// newClusterWith is newCluster for a ClusterDeployment with a further line in its spec.
func (h *hub) newClusterWith(t *testing.T, name string, workers int, line string) *cluster {
	t.Helper()
	return h.createCluster(t, name, fmt.Sprintf(clusterManifest, name, fmt.Sprintf("workers: %d, containers: Always", workers), line))
}

// createCluster creates the cluster of a manifest and waits until it is installed.
func (h *hub) createCluster(t *testing.T, name, manifest string) *cluster {
	t.Helper()
	h.apply(t, manifest)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("machines:\n%s", h.machineLogs(name))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if out, err := h.command(ctx, "kubectl", "delete", "clusterdeployment", name, "--wait").CombinedOutput(); err != nil {
			t.Errorf("deleting cluster %s: %v\n%s", name, err, out)
		}
	})
	h.run(t, "kubectl", "wait", "clusterdeployment/"+name, "--for=jsonpath={.spec.installed}=true", "--timeout=3m")
	c := &cluster{t: t, hub: h, name: name, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	secret := h.run(t, "kubectl", "get", "clusterdeployment", name, "-o", "jsonpath={.spec.clusterMetadata.adminKubeconfigSecretRef.name}")
	content := h.run(t, "kubectl", "get", "secret", secret, "-o", "go-template={{.data.kubeconfig | base64decode}}")
	if err := os.WriteFile(c.kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

const clusterManifest = `apiVersion: v1
kind: Secret
metadata: {name: %[1]s-install-config}
stringData:
  install-config.yaml: |
    metadata: {name: %[1]s}
    baseDomain: local.hotspare.io
    platform: {local: {%[2]s}}
---
apiVersion: hive.openshift.io/v1
kind: ClusterImageSet
metadata: {name: kubernetes}
spec: {releaseImage: hotspare.local/kubernetes:1.36}
---
apiVersion: hive.openshift.io/v1
kind: ClusterDeployment
metadata: {name: %[1]s}
spec:
  clusterName: %[1]s
  baseDomain: local.hotspare.io
  platform: {local: {}}
  %[3]s
  provisioning:
    installConfigSecretRef: {name: %[1]s-install-config}
    imageSetRef: {name: kubernetes}
`

func (h *hub) apply(t *testing.T, manifest string) {
	t.Helper()
	// Server-side: the hub may create the image set at the same moment.
	cmd := h.command(t.Context(), "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("applying: %v\n%s", err, out)
	}
}

// machineLogs returns the ends of the logs of a cluster's machines.
func (h *hub) machineLogs(name string) string {
	paths, _ := filepath.Glob(filepath.Join(h.dir, "machines", name+"-*", "*", "machine.log"))
	var out strings.Builder
	for _, path := range paths {
		raw, _ := os.ReadFile(path)
		fmt.Fprintf(&out, "%s:\n%s\n", path, raw[max(0, len(raw)-4000):])
	}
	return out.String()
}

// try runs kubectl on the cluster and returns what it prints.
func (c *cluster) try(ctx context.Context, stdin string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, append([]string{"kubectl"}, arguments...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kubectl runs kubectl on the cluster and returns what it prints.
func (c *cluster) kubectl(arguments ...string) string {
	c.t.Helper()
	out, err := c.try(c.t.Context(), "", arguments...)
	if err != nil {
		c.t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return out
}

func (c *cluster) apply(manifest string) {
	c.t.Helper()
	if out, err := c.try(c.t.Context(), manifest, "apply", "-f", "-"); err != nil {
		c.t.Fatalf("applying: %v\n%s", err, out)
	}
}

// eventually repeats a kubectl command until it prints want.
func (c *cluster) eventually(limit time.Duration, want string, arguments ...string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	var out string
	var err error
	for ctx.Err() == nil {
		var now string
		if now, err = c.try(ctx, "", arguments...); ctx.Err() != nil {
			break
		}
		if out = now; err == nil && strings.Contains(out, want) {
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
	c.t.Fatalf("kubectl %s: no %q after %s: %v\n%s", strings.Join(arguments, " "), want, limit, err, out)
}
