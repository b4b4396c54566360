// Package installertest is an openshift-install for tests that creates its clusters in a folder. It
// implements the contract of the command line: create manifests, ignition-configs and cluster,
// wait-for install-complete, destroy cluster, version; all with --dir.
//
// The cloud is a folder, named by Env, with one file for each created resource, in
// clusters/<infraID>/. It outlives processes, so tests can count leaks, and it records events that
// must never happen (ReadViolations). Each run prints secrets, as installers do.
//
// The installer is the program openshift-install below this package: BuildInstaller builds it.
package installertest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"sigs.k8s.io/yaml"
)

const (
	// Env names the variable with the folder that is the cloud.
	Env = "STANDIN_CLOUD"
	// EnvEndpoints names the variable with the servers, separated by blanks, that each run calls by
	// https before it begins. A run fails unless it trusts their certificates.
	EnvEndpoints = "STANDIN_ENDPOINTS"
)

func printLog(level, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "level=%s msg=%q\n", level, fmt.Sprintf(format, args...))
}

type installerRun struct {
	cloud Cloud
	dir   string
	md    metadata
}

type metadata struct {
	ClusterName string         `json:"clusterName"`
	ClusterID   string         `json:"clusterID"`
	InfraID     string         `json:"infraID"`
	VSphere     map[string]any `json:"vsphere,omitempty"`
}

// RunInstaller runs the installer with arguments of its command line.
func RunInstaller(args []string) error {
	if len(args) > 0 && args[0] == "version" {
		fmt.Fprintln(os.Stdout, "openshift-install 4.18.20\nbuilt from commit 0000\nrelease image quay.io/x@sha256:0")
		return nil
	}
	i := slices.Index(args, "--dir")
	if i < 0 || i+1 >= len(args) {
		return errors.New("--dir is missing")
	}
	r := &installerRun{cloud: Cloud(os.Getenv(Env)), dir: args[i+1]}
	if r.cloud == "" {
		return errors.New(Env + " is empty")
	}
	r.printSecrets()
	if err := callEndpoints(strings.Fields(os.Getenv(EnvEndpoints))); err != nil {
		return err
	}
	switch verb := strings.Join(args[:i], " "); verb {
	case "create manifests":
		return r.createManifests()
	case "create ignition-configs":
		return r.createIgnition()
	case "create cluster":
		return r.createCluster()
	case "wait-for install-complete":
		return r.waitForComplete()
	case "destroy cluster":
		return r.destroyCluster()
	default:
		return fmt.Errorf("unknown command %q", verb)
	}
}

// callEndpoints calls servers and ignores their answers.
func callEndpoints(urls []string) error {
	for _, url := range urls {
		response, err := http.Get(url) //nolint:noctx,gosec // a test ends it
		if err != nil {
			return fmt.Errorf("failed to call the platform: %w", err)
		}
		_ = response.Body.Close() // the body is not read
	}
	return nil
}

// PlantedKey is a line of the private key that each run prints.
const PlantedKey = "TUlJRXBsYW50ZWQta2V5LWJvZHk"

// printSecrets prints the kinds of secrets that installers print and that must not leak.
func (r *installerRun) printSecrets() {
	for _, e := range os.Environ() {
		if strings.HasPrefix(e, "AWS_SECRET") || strings.HasPrefix(e, "AWS_ACCESS") {
			_, value, _ := strings.Cut(e, "=")
			printLog("debug", "signing with %s", value)
		}
	}
	if raw, err := os.ReadFile(os.Getenv("GOOGLE_CREDENTIALS")); err == nil {
		printLog("debug", "service account %s", raw)
	}
	if raw, err := os.ReadFile(filepath.Join(r.dir, "install-config.yaml")); err == nil {
		for line := range strings.Lines(string(raw)) {
			printLog("debug", "config: %s", strings.TrimSpace(line))
		}
	}
	if raw, err := os.ReadFile(filepath.Join(r.dir, "auth", "kubeadmin-password")); err == nil {
		printLog("info", "Login to the console with user: %q, and password: %q", "kubeadmin", raw)
		fmt.Fprintf(os.Stderr, "and again: %s\n", raw)
	}
	fmt.Fprintf(os.Stderr, "-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----\n", PlantedKey)
}

func (r *installerRun) filePath(name string) string { return filepath.Join(r.dir, name) }

func (r *installerRun) writeFile(name, content string) error {
	if err := os.MkdirAll(filepath.Dir(r.filePath(name)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(r.filePath(name), []byte(content), 0o600)
}

const stateFile = ".openshift_install_state.json"

// createManifests turns install-config.yaml into manifests, and deletes it.
func (r *installerRun) createManifests() error {
	raw, err := os.ReadFile(r.filePath("install-config.yaml"))
	if err != nil {
		return err
	}
	var config struct {
		Metadata struct{ Name string }
		Platform map[string]any
	}
	if err := yaml.Unmarshal(raw, &config); err != nil || config.Metadata.Name == "" || r.cloud.consumeFault("invalid") {
		return errors.New(`failed to fetch Master Machines: failed to load asset "Install Config": failed to create install config: ` +
			`invalid "install-config.yaml" file: platform.aws.region: Invalid value: "mars-1": no such region`)
	}
	if r.cloud.consumeFault("expired") {
		return errors.New(`failed to fetch Master Machines: failed to load asset "Install Config": failed to create install config: cannot call AWS (ExpiredToken)`)
	}
	r.cloud.waitWhileHung("prepare")
	_, vsphere := config.Platform["vsphere"]
	state, err := json.Marshal(map[string]any{"name": config.Metadata.Name, "vsphere": vsphere})
	return errors.Join(err,
		r.writeFile(stateFile, string(state)), r.writeFile("manifests/cluster-config.yaml", "kind: ConfigMap\nmetadata: {name: cluster-config}\n"),
		r.writeFile("openshift/99_kubeadmin.yaml", "kind: Secret\nmetadata: {name: kubeadmin}\n"),
		os.MkdirAll(r.filePath("openshift/more"), 0o700), os.Remove(r.filePath("install-config.yaml")))
}

// createIgnition turns manifests into Ignition files, and names the cluster.
func (r *installerRun) createIgnition() error {
	raw, err := os.ReadFile(r.filePath(stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		if err = r.createManifests(); err == nil {
			raw, err = os.ReadFile(r.filePath(stateFile))
		}
	}
	if err != nil {
		return err
	}
	var state struct {
		Name    string
		VSphere bool
	}
	if err := json.Unmarshal(raw, &state); err != nil {
		return err
	}
	manifests, err := filepath.Glob(r.filePath("manifests/*"))
	if err != nil {
		return err
	}
	openshift, err := filepath.Glob(r.filePath("openshift/*.yaml"))
	if err != nil {
		return err
	}
	var ign bytes.Buffer
	for _, name := range slices.Concat(manifests, openshift) {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&ign, "%s: %s\n", filepath.Base(name), content)
	}
	if r.cloud.consumeFault("no-metadata") {
		return nil
	}
	id := strings.ToLower(rand.Text())
	md := metadata{ClusterName: state.Name, ClusterID: "id-" + id[:12], InfraID: state.Name + "-" + id[:5]}
	if state.VSphere {
		md.VSphere = map[string]any{"vCenter": "vc.example", "username": "planted-user", "password": "planted-password-of-vcenter"}
	}
	text, err := json.Marshal(md)
	return errors.Join(err, r.writeFile("bootstrap.ign", ign.String()), r.writeFile("metadata.json", string(text)),
		r.writeFile("auth/kubeconfig", newKubeconfig(state.Name)), r.writeFile("auth/kubeadmin-password", "plant-ed0pw-aaaaa-bbbbb"),
		os.RemoveAll(r.filePath("manifests")), os.RemoveAll(r.filePath("openshift")))
}

func newKubeconfig(name string) string {
	return "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://api." + name + ".example.com:6443\"}}]\n" +
		"users: [{name: admin, user: {token: planted-token}}]\ncontexts: [{name: admin, context: {cluster: c, user: admin}}]\ncurrent-context: admin\n"
}

func (r *installerRun) loadMetadata() error {
	raw, err := os.ReadFile(r.filePath("metadata.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, &r.md)
}

// stages are the stages of create cluster, in order; each creates one resource.
var stages = []string{"network", "bootstrap", "masters"}

func (r *installerRun) createCluster() error {
	if err := r.loadMetadata(); err != nil {
		return err
	}
	if r.cloud.consumeFault("deaf") {
		signal.Ignore(syscall.SIGTERM)
	}
	free, err := r.cloud.lockCluster(r.md.InfraID)
	if err != nil {
		r.cloud.recordViolation("two installers at once for %s", r.md.InfraID)
		return err
	}
	defer free()
	r.cloud.recordCreate(r.md)
	ign, err := os.ReadFile(r.filePath("bootstrap.ign"))
	if err == nil {
		err = r.cloud.writeFile(string(ign), "ignition", r.md.InfraID)
	}
	if err != nil {
		return err
	}
	for _, stage := range stages {
		printLog("info", "Creating %s...", stage)
		if err := r.cloud.createResource(r.md.InfraID, stage); err != nil {
			return err
		}
		if r.cloud.consumeFault("fail-" + stage) {
			printLog("error", "Error: creating %s: quota exceeded", stage)
			return fmt.Errorf("failed to create cluster: failed to create %s", stage)
		}
		r.cloud.waitWhileHung(stage)
	}
	printLog("info", "It is now safe to remove the bootstrap resources")
	if err := os.Remove(r.cloud.resourcePath(r.md.InfraID, "bootstrap")); err != nil {
		return err
	}
	return r.initializeCluster()
}

// waitForComplete waits for the end of the install that create began.
func (r *installerRun) waitForComplete() error {
	if err := r.loadMetadata(); err != nil {
		return err
	}
	if _, err := os.Stat(r.filePath("auth/kubeconfig")); err != nil {
		return err
	}
	if !r.cloud.hasResource(r.md.InfraID, "masters") {
		return errors.New("failed waiting for Kubernetes API: connection refused")
	}
	r.cloud.appendNote("waited")
	return r.initializeCluster()
}

func (r *installerRun) initializeCluster() error {
	printLog("info", "Waiting up to 40m0s (until 10:00AM UTC) for the cluster at https://api.%s.example.com:6443 to initialize...", r.md.ClusterName)
	r.cloud.waitWhileHung("late")
	if r.cloud.consumeFault("fail-late") {
		return errors.New("failed to initialize the cluster: Cluster operator console is degraded")
	}
	if err := r.cloud.createResource(r.md.InfraID, "workers"); err != nil {
		return err
	}
	printLog("info", "Install complete!")
	printLog("info", "Access the OpenShift web-console here: https://console.apps.%s.example.com", r.md.ClusterName)
	r.printSecrets()
	return nil
}

var infraIDPattern = regexp.MustCompile(`^[a-z0-9-]+$`)

func (r *installerRun) destroyCluster() error {
	if err := r.loadMetadata(); err != nil {
		return err
	}
	if !infraIDPattern.MatchString(r.md.InfraID) {
		return fmt.Errorf("infraID %q is no name", r.md.InfraID)
	}
	if r.md.VSphere != nil && r.md.VSphere["password"] == nil {
		return errors.New("cannot login to vCenter: no password")
	}
	r.cloud.appendNote("destroy")
	r.cloud.waitWhileHung("destroy")
	if r.cloud.consumeFault("fail-destroy") {
		return errors.New("a disk is in use")
	}
	free, err := r.cloud.lockCluster(r.md.InfraID)
	if err != nil {
		r.cloud.recordViolation("%s is destroyed while it is created", r.md.InfraID)
		return err
	}
	defer free()
	return os.RemoveAll(r.cloud.resourcePath(r.md.InfraID, ""))
}
