package remote

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"hotspare.io/hotspare/internal/cabundle/cabundletest"
	"hotspare.io/hotspare/internal/embedded/machine"
	"hotspare.io/hotspare/internal/power"
)

var (
	key    = types.NamespacedName{Namespace: "c", Name: "kubeconfig"}
	slept  = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	woke   = slept.Add(4 * time.Hour)
	secret = "s3cr3t-token"
)

// api is a spoke's API: paths with what they answer.
type api struct {
	*httptest.Server
	answers map[string]any
	// asked are the paths that were read; put is what was written, and refuse the
	// status by which that is refused.
	asked  []string
	put    certificatesv1.CertificateSigningRequest
	refuse int
}

func newAPI(t *testing.T) *api {
	a := &api{answers: map[string]any{
		"/api/v1/nodes": corev1.NodeList{Items: []corev1.Node{node("m0", woke), node("w0", slept)}},
		"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases": coordinationv1.LeaseList{Items: []coordinationv1.Lease{lease("m0", slept), lease("w0", woke)}},
	}}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(a.serve)) // client-go sends no credentials over plain HTTP
	t.Cleanup(a.Close)
	return a
}

func (a *api) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+secret {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	if r.Method != http.MethodGet {
		a.write(w, r)
		return
	}
	answer, ok := a.answers[r.URL.Path+"?"+r.URL.Query().Get("fieldSelector")]
	if !ok {
		answer, ok = a.answers[r.URL.Path]
	}
	a.asked = append(a.asked, r.URL.Path)
	if r.URL.Path == requestsPath && r.URL.Query().Get("limit") != strconv.Itoa(maxRequests) {
		http.Error(w, "all of them?", http.StatusBadRequest)
		return
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	if code, ok := answer.(int); ok {
		http.Error(w, secret, code)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// node is Ready with a heartbeat at that time.
func node(name string, at time.Time) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: metav1.NewTime(at), LastTransitionTime: metav1.NewTime(slept),
	}}}}
}

func lease(name string, at time.Time) coordinationv1.Lease {
	renewed := metav1.NewMicroTime(at)
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
}

// kubeconfig is one whose user has these lines; it trusts that server only.
func kubeconfig(server *httptest.Server, user string) string {
	ca := ""
	if cert := server.Certificate(); cert != nil {
		ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}))
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
"clusters":[{"name":"x","cluster":{"server":%q,"certificate-authority-data":%q}}],
"users":[{"name":"x","user":{%s}}]}`, server.URL, ca, user)
}

func token(t string) string { return fmt.Sprintf("%q: %q", "token", t) }

// connector finds the kubeconfig in a Secret of a hub.
func connector(t *testing.T, kubeconfig string) (*Connector, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid"},
		Data:       map[string][]byte{"kubeconfig": []byte(kubeconfig)},
	}).Build()
	return New(hub, nil), hub
}

func TestLook(t *testing.T) {
	a := newAPI(t)
	c, _ := connector(t, kubeconfig(a.Server, token(secret)))
	plain := power.Spoke{Queried: true, Reachable: true, Nodes: []power.Node{
		{Name: "m0", Ready: true, ReadySince: slept, Renewed: woke},
		{Name: "w0", Ready: true, ReadySince: slept, Renewed: woke},
	}}
	look := func(ask ObserveOptions) power.Spoke {
		t.Helper()
		s, err := c.ObserveSpoke(t.Context(), key, ask)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}

	t.Run("the later of lease and heartbeat is the sign of life", func(t *testing.T) {
		if diff := cmp.Diff(plain, look(ObserveOptions{})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an API without cluster operators is no OpenShift's", func(t *testing.T) {
		if diff := cmp.Diff(plain, look(ObserveOptions{Operators: true})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("cluster operators are read", func(t *testing.T) {
		a.answers[operatorsPath] = map[string]any{"items": []any{
			operator("dns", "Available", "True", "Degraded", "False"),
			operator("etcd", "Progressing", "True"),
			operator("samples", "Disabled", "True", "Degraded", "True"),
			operator("auth", "Available", "False"),
		}}
		want := plain
		want.OpenShift = true
		want.Operators = []power.Operator{{Name: "dns", Settled: true}, {Name: "etcd"}, {Name: "samples", Settled: true}, {Name: "auth"}}
		if diff := cmp.Diff(want, look(ObserveOptions{Operators: true})); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("half an answer is none", func(t *testing.T) {
		a.answers[operatorsPath] = http.StatusInternalServerError
		if diff := cmp.Diff(power.Spoke{Queried: true, UnreachableReason: "it is not ready to serve"}, look(ObserveOptions{Operators: true})); diff != "" {
			t.Error(diff)
		}
	})
}

// operator has conditions, as pairs of type and status.
func operator(name string, conditions ...string) map[string]any {
	var list []any
	for i := 0; i < len(conditions); i += 2 {
		list = append(list, map[string]any{"type": conditions[i], "status": conditions[i+1]})
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"conditions": list}}
}

func TestTrouble(t *testing.T) {
	a := newAPI(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		kubeconfig string
		want       string
	}{
		"an API that is down is a fact":                 {kubeconfig(gone, token(secret)), "connection refused"},
		"a refused kubeconfig is told":                  {kubeconfig(a.Server, token("other")), "it does not accept the admin kubeconfig"},
		"a certificate that nobody vouches for is told": {strings.Replace(kubeconfig(a.Server, token(secret)), "certificate-authority-data", "ignored", 1), "its certificate does not verify"},
		"a kubeconfig that is none is told":             {secret, errUnreadable.Error()},
		"an empty one too":                              {"", errUnreadable.Error()},
		"a kubeconfig may not run programs":             {kubeconfig(a.Server, `"exec":{"command":"sh","apiVersion":"client.authentication.k8s.io/v1","interactiveMode":"Never"}`), errProgram.Error()},
		"nor use plugins":                               {kubeconfig(a.Server, `"auth-provider":{"name":"gcp"}`), errProgram.Error()},
		"a kubeconfig may not read the hub's tokens":    {kubeconfig(a.Server, `"tokenFile":"/var/run/secrets/token"`), errFile.Error()},
		"nor its keys":                                  {kubeconfig(a.Server, `"client-certificate":"/etc/crt","client-key":"/etc/key"`), errFile.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			con, _ := connector(t, c.kubeconfig)
			s, err := con.ObserveSpoke(t.Context(), key, ObserveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(power.Spoke{Queried: true, UnreachableReason: c.want}, s); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(s.UnreachableReason, secret) {
				t.Error("a secret is told")
			}
		})
	}
	t.Run("a Secret that is not there is a fact", func(t *testing.T) {
		con, _ := connector(t, "")
		s, err := con.ObserveSpoke(t.Context(), types.NamespacedName{Namespace: "c", Name: "none"}, ObserveOptions{})
		if err != nil || s.UnreachableReason != "Secret none with its admin kubeconfig does not exist" {
			t.Errorf("%+v, %v", s, err)
		}
	})
	t.Run("a call that is called off ends", func(t *testing.T) {
		con, _ := connector(t, kubeconfig(a.Server, token(secret)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s, err := con.ObserveSpoke(ctx, key, ObserveOptions{}); err == nil && s.Reachable {
			t.Error("it answered")
		}
	})
}

func TestTheCertificateAuthoritiesOfTheHubAreTrusted(t *testing.T) {
	a, other := newAPI(t), cabundletest.NewServer(t, http.NotFoundHandler())
	var authorities cabundletest.Secret
	for name, config := range map[string]string{
		"beside those of the kubeconfig": strings.Replace(kubeconfig(other, token(secret)), other.URL, a.URL, 1),
		"beside those of the system":     strings.Replace(kubeconfig(a.Server, token(secret)), "certificate-authority-data", "ignored", 1),
	} {
		t.Run(name, func(t *testing.T) {
			con, _ := connector(t, config)
			con.authorities = authorities.NewSource()
			expect := func(want string) {
				t.Helper()
				s, err := con.ObserveSpoke(t.Context(), key, ObserveOptions{})
				if err != nil || s.UnreachableReason != want || s.Reachable != (want == "") {
					t.Errorf("answers %t, trouble %q, %v; want trouble %q", s.Reachable, s.UnreachableReason, err, want)
				}
			}
			authorities.SetContent(cabundletest.CertificatePEM(other))
			expect("its certificate does not verify")
			authorities.SetContent([]byte("no PEM"))
			expect("its certificate does not verify: additional certificate authorities: key ca.crt of Secret hotspare-system/authorities: " +
				"there is no PEM certificate: use certificates that start with -----BEGIN CERTIFICATE-----")
			authorities.SetContent(cabundletest.CertificatePEM(a.Server))
			expect("")
			authorities.SetContent(cabundletest.CertificatePEM(other))
			expect("its certificate does not verify")
		})
	}
	t.Run("and the kubeconfig's own still count", func(t *testing.T) {
		con, _ := connector(t, kubeconfig(a.Server, token(secret)))
		con.authorities = authorities.NewSource()
		if s, err := con.ObserveSpoke(t.Context(), key, ObserveOptions{}); err != nil || !s.Reachable {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func TestClientsAreKept(t *testing.T) {
	a := newAPI(t)
	con, hub := connector(t, kubeconfig(a.Server, token(secret)))
	made := func() *spokeClient {
		t.Helper()
		if _, err := con.ObserveSpoke(t.Context(), key, ObserveOptions{}); err != nil {
			t.Fatal(err)
		}
		return con.spokes[key].spokeClient
	}
	first := made()
	t.Run("as long as the Secret is the same", func(t *testing.T) {
		if made() != first {
			t.Error("a new client was made")
		}
	})
	t.Run("until it changes", func(t *testing.T) {
		var s corev1.Secret
		if err := hub.Get(t.Context(), key, &s); err != nil {
			t.Fatal(err)
		}
		s.Data["kubeconfig"] = []byte(kubeconfig(a.Server, token("other")))
		if err := hub.Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if made() == first {
			t.Error("the old client is used")
		}
	})
	t.Run("or is forgotten", func(t *testing.T) {
		con.ForgetClient(key)
		if len(con.spokes) != 0 {
			t.Error("a client is kept")
		}
	})
}

// A client that is the administrator by mistake counts as use of the cluster as long as it is kept.
func TestAClientWithoutTheHubsIdentityIsNotKept(t *testing.T) {
	a := newAPI(t)
	c, _ := connector(t, kubeconfig(a.Server, token(secret)))
	broken := errors.New("too many open files")
	c.UseHubIdentity(func(*rest.Config) (certificate, key []byte, err error) { return nil, nil, broken })
	if s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{}); !errors.Is(err, broken) || len(a.asked) > 0 {
		t.Errorf("it is %+v, %v", s, err)
	}
	broken = nil
	if s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{}); err != nil || !s.Reachable {
		t.Errorf("afterwards it is %+v, %v", s, err)
	}
}

// In a cluster that has been running, one failure is no news yet.
func TestASecondTry(t *testing.T) {
	for name, tc := range map[string]struct {
		failures int
		again    bool
		answers  bool
	}{
		"one failure is made good":            {1, true, true},
		"two are not":                         {2, true, false},
		"on the way up nobody tries it again": {1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			left := tc.failures
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if left--; left >= 0 {
					http.Error(w, "not yet", http.StatusServiceUnavailable)
					return
				}
				a.serve(w, r)
			}))
			t.Cleanup(server.Close)
			c, _ := connector(t, kubeconfig(server, token(secret)))
			c.retryDelay = time.Millisecond
			s, err := c.ObserveSpoke(t.Context(), key, ObserveOptions{RetryOnce: tc.again})
			if err != nil || s.Reachable != tc.answers {
				t.Errorf("%+v, %v; want an answer: %t", s, err, tc.answers)
			}
		})
	}
}

func TestWhatANodeSaysOfItsContainerRuntime(t *testing.T) {
	for message, want := range map[string]string{
		"containerd ended\n(exit status 1)": "containerd ended (exit status 1)",
		strings.Repeat("é", 101):            strings.Repeat("é", 100) + "…",
		"a" + strings.Repeat("é", 101):      "a" + strings.Repeat("é", 99) + "…",
	} {
		n := node("w0", woke)
		for status, want := range map[corev1.ConditionStatus]string{corev1.ConditionTrue: want, corev1.ConditionFalse: "", corev1.ConditionUnknown: ""} {
			n.Status.Conditions = append(n.Status.Conditions[:1], corev1.NodeCondition{Type: machine.ContainerRuntimeUnhealthy, Status: status, Message: message})
			if got := nodeReadiness(&n, metav1.MicroTime{}); got.Problem != want || !got.Ready {
				t.Errorf("%s %q: got %+v, want %q", status, message, got, want)
			}
		}
	}
}
