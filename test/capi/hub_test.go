package capi

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

// hub is an API server with Cluster API's controllers.
type hub struct {
	dynamic.Interface
	t          *testing.T
	dir        string
	kubeconfig string
	caPEM      []byte
}

// A manager is one of Cluster API's programs.
type manager struct {
	// program is its name below bin/capi, folder its folder in module.
	program, module, folder string
	args                    []string
}

var managers = []manager{
	{"core", "sigs.k8s.io/cluster-api", "core", []string{"--feature-gates=ClusterTopology=true"}},
	{"bootstrap-kubeadm", "sigs.k8s.io/cluster-api", "bootstrap/kubeadm", nil},
	{"controlplane-kubeadm", "sigs.k8s.io/cluster-api", "controlplane/kubeadm", []string{"--feature-gates=ClusterTopology=true"}},
	{"test-infrastructure-docker", "sigs.k8s.io/cluster-api/test", "infrastructure/docker", []string{"--feature-gates=ClusterTopology=true"}},
}

// startHub starts the hub and the managers, and returns when their webhooks answer.
func startHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{t: t, dir: t.TempDir()}
	data := filepath.Join(h.dir, "data")
	h.start(h.program("HOTSPARE", "../../bin/hotspare"), nil, "up", "--hub-only", "--data-dir", data, "--console-address=0", "--metrics-address=0")
	h.kubeconfig = filepath.Join(data, "kubeconfig")
	h.waitFor("the hub", 2*time.Minute, func() error {
		_, err := os.Stat(filepath.Join(data, "ready"))
		return err
	})
	cfg, err := clientcmd.BuildConfigFromFlags("", h.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS, cfg.Burst = 200, 400
	if h.Interface, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	h.writeCertificate()
	for _, m := range managers {
		h.installDefinitions(filepath.Join(moduleDir(t, m.module), m.folder, "config/crd/bases"))
	}
	for _, m := range managers {
		h.startManager(m)
	}
	return h
}

// program returns the path of a program: the value of a variable, else a default.
func (h *hub) program(variable, otherwise string) string {
	h.t.Helper()
	path := otherwise
	if v := os.Getenv(variable); v != "" {
		path = v
	}
	path, err := filepath.Abs(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		h.t.Fatalf("%v: run make test-capi, which builds it", err)
	}
	return path
}

// start starts a program, which ends with the test. Its output goes to a file that is named in the
// log of the test.
func (h *hub) start(path string, env []string, args ...string) {
	h.t.Helper()
	file, err := os.Create(filepath.Join(h.dir, filepath.Base(path)+".log"))
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		timer.Stop()
		if h.t.Failed() {
			h.t.Logf("end of the log of %s:\n%s", filepath.Base(path), tail(file.Name(), 4000))
		}
	})
}

func tail(path string, n int) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-n):])
}

// waitFor waits until done returns nil.
func (h *hub) waitFor(what string, limit time.Duration, done func() error) {
	h.t.Helper()
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	h.t.Fatalf("waiting for %s: %v", what, err)
}

// moduleDir returns the folder of a module's source.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// readObjects returns the objects in a file of YAML documents, each after edits of its text.
func (h *hub) readObjects(path string, edits ...string) []*unstructured.Unstructured {
	h.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	text := strings.NewReplacer(edits...).Replace(string(raw))
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			h.t.Fatalf("%s: %v", path, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// create creates an object. It repeats the request while the hub does not serve the kind or a
// webhook does not answer yet.
func (h *hub) create(o *unstructured.Unstructured) {
	h.t.Helper()
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	var api dynamic.ResourceInterface = h.Resource(plural)
	if o.GetNamespace() != "" {
		api = h.Resource(plural).Namespace(o.GetNamespace())
	}
	h.waitFor("the creation of "+o.GetKind()+" "+o.GetName(), time.Minute, func() error {
		_, err := api.Create(h.t.Context(), o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}

// installDefinitions creates the custom resource definitions of a folder, with their storage version
// only.
func (h *hub) installDefinitions(folder string) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		h.t.Fatalf("no definitions in %s: %v", folder, err)
	}
	for _, file := range files {
		for _, o := range h.readObjects(file) {
			versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
			var kept []any
			name := ""
			for _, item := range versions {
				if v, _ := item.(map[string]any); v["storage"] == true {
					kept = append(kept, v)
					name, _ = v["name"].(string)
				}
			}
			if err := unstructured.SetNestedSlice(o.Object, kept, "spec", "versions"); err != nil {
				h.t.Fatal(err)
			}
			o.SetLabels(map[string]string{"cluster.x-k8s.io/" + name: name}) // the version of the contract
			h.create(o)
		}
	}
}

// writeCertificate writes the certificate of the webhooks.
func (h *hub) writeCertificate() {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		h.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "webhooks"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		h.t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		h.t.Fatal(err)
	}
	h.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, content := range map[string][]byte{"tls.crt": h.caPEM, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})} {
		if err := os.WriteFile(filepath.Join(h.dir, name), content, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
}

// freePorts returns different ports that are free.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // the system may return the port of a listener that has been closed
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// startManager starts a manager, waits for its webhooks, and registers them.
func (h *hub) startManager(m manager) {
	h.t.Helper()
	ports := freePorts(h.t, 3)
	webhooks := ports[0]
	args := append([]string{
		"--kubeconfig=" + h.kubeconfig, fmt.Sprintf("--webhook-port=%d", webhooks), "--webhook-cert-dir=" + h.dir,
		fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[1]), fmt.Sprintf("--diagnostics-address=127.0.0.1:%d", ports[2]), "--insecure-diagnostics",
		"--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields", "--v=0",
		// The defaults, 100 and 200, are for a hub that others use, too.
		"--kube-api-qps=1000", "--kube-api-burst=2000",
	}, m.args...)
	h.start(h.program("CAPI_"+strings.ToUpper(strings.ReplaceAll(m.program, "-", "_")), "../../bin/capi/"+m.program),
		[]string{"POD_NAMESPACE=default", "POD_NAME=" + m.program, "POD_UID=0", "POD_IP=127.0.0.1"}, args...)
	h.waitFor("the webhooks of "+m.program, 2*time.Minute, func() error {
		var d net.Dialer
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
		defer cancel()
		c, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", webhooks))
		if err == nil {
			c.Close()
		}
		return err
	})
	for _, o := range h.readObjects(filepath.Join(moduleDir(h.t, m.module), m.folder, "config/webhook/manifests.yaml")) {
		o.SetName(m.program + "-" + o.GetName())
		list, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
		for _, item := range list {
			path, _, _ := unstructured.NestedString(item.(map[string]any), "clientConfig", "service", "path")
			item.(map[string]any)["clientConfig"] = map[string]any{
				"url": fmt.Sprintf("https://127.0.0.1:%d%s", webhooks, path), "caBundle": base64.StdEncoding.EncodeToString(h.caPEM),
			}
		}
		if err := unstructured.SetNestedSlice(o.Object, list, "webhooks"); err != nil {
			h.t.Fatal(err)
		}
		h.create(o)
	}
}
