package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/cloud/local/machinetest"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/embedded/pki"
)

func TestMain(m *testing.M) {
	machinetest.Main(work)
	os.Exit(m.Run())
}

// unready is the fault of a worker that runs but never becomes a node; unreadyProblem is why.
const (
	unready        machinetest.Injection = "unready"
	unreadyProblem string                = "containerd ended (exit status 1): no such plugin"
)

// work is what a stand-in machine runs: that of a control plane serves the part of the Kubernetes
// API that the installer uses.
func work(ctx context.Context, dir string) error {
	config, err := machine.LoadConfig(dir)
	if err == nil && machinetest.ReadInjection(dir) == unready {
		return machine.WriteProblem(dir, unreadyProblem)
	}
	if err != nil || config.Role != machine.ControlPlane {
		return err
	}
	ca, err := pki.LoadCA(machine.PKIPath(dir), pki.ClusterCA)
	if err != nil {
		return err
	}
	pair, err := ca.IssueServerCert(time.Now(), time.Hour, "kube-apiserver", "127.0.0.1")
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.CertPEM())
	socket, err := net.FileListener(os.NewFile(machine.APISocketFile, "the API's socket"))
	if err != nil {
		return err
	}
	l := tls.NewListener(socket, &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	})
	server := &http.Server{Handler: api(dir, config), BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // the process ends anyway
	go func() { _ = server.Serve(l) }()                   // until Close
	return nil
}

func api(dir string, config machine.Config) http.Handler {
	mux := http.NewServeMux()
	serve := func(path string, answer func() any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer()) // the client has gone
		})
	}
	serve("/readyz", func() any { return "ok" })
	serve("/version", func() any { return version.Info{GitVersion: "v1.36.3"} })
	serve("/api/v1/nodes", func() any { return nodes(dir, config) })
	serve("/api/v1/namespaces/default/serviceaccounts/default", func() any {
		return corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	})
	if config.OpenShiftVersion != "" {
		serve("/apis/config.openshift.io/v1/clusterversions/version", func() any {
			available := map[string]string{"type": "Available", "status": "True"}
			return map[string]any{"status": map[string]any{"conditions": []any{available}}}
		})
	}
	return mux
}

// nodes returns the machines of the cluster that run and can join.
func nodes(dir string, config machine.Config) corev1.NodeList {
	list := corev1.NodeList{Items: []corev1.Node{node(config.Name)}}
	tokens, _ := os.ReadFile(pki.TokenFilePath(machine.PKIPath(dir))) // none: nobody can join
	siblings, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*-worker-*"))
	for _, sibling := range siblings {
		c, err := clientcmd.BuildConfigFromFlags("", machine.BootstrapPath(sibling))
		if err != nil || !strings.HasPrefix(string(tokens), c.BearerToken+",") {
			continue
		}
		if _, err := os.Stat(machine.LockPath(sibling)); err == nil && machinetest.ReadInjection(sibling) == "" {
			list.Items = append(list.Items, node(filepath.Base(sibling)))
		}
	}
	return list
}

func node(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}
