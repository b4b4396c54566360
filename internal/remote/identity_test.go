package remote

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestReadIdentity(t *testing.T) {
	a := newAPI(t)
	a.answers["/api/v1/namespaces/kube-system"] = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "uid-1"}}
	read := func(t *testing.T) Identity {
		t.Helper()
		id, err := ReadIdentity(t.Context(), []byte(kubeconfig(a.Server, token(secret))))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	t.Run("a cluster is identified by its namespace kube-system", func(t *testing.T) {
		want := Identity{ID: "uid-1", Nodes: []string{"m0", "w0"}}
		if diff := cmp.Diff(want, read(t)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("OpenShift has an ID and an infrastructure name", func(t *testing.T) {
		a.answers[clusterVersionPath] = map[string]any{"spec": map[string]any{"clusterID": "ocp-1"}}
		a.answers[infrastructurePath] = map[string]any{"status": map[string]any{"infrastructureName": "prod-x7k2p"}}
		want := Identity{ID: "ocp-1", InfraID: "prod-x7k2p", Nodes: []string{"m0", "w0"}}
		if diff := cmp.Diff(want, read(t)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("half an answer is an error", func(t *testing.T) {
		a.answers[infrastructurePath] = http.StatusInternalServerError
		if id, err := ReadIdentity(t.Context(), []byte(kubeconfig(a.Server, token(secret)))); err == nil || err.Error() != "it is not ready to serve" {
			t.Errorf("%+v, %v", id, err)
		}
	})
	t.Run("so is a token that it does not accept", func(t *testing.T) {
		if _, err := ReadIdentity(t.Context(), []byte(kubeconfig(a.Server, token("other")))); err == nil || err.Error() != "it does not accept the admin kubeconfig" {
			t.Errorf("%v", err)
		}
	})
	t.Run("a kubeconfig of Cluster API is read as well", func(t *testing.T) {
		con, hub := connector(t, "")
		var s corev1.Secret
		if err := hub.Get(t.Context(), key, &s); err != nil {
			t.Fatal(err)
		}
		s.Data = map[string][]byte{"value": []byte(kubeconfig(a.Server, token(secret)))}
		if err := hub.Update(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if spoke, err := con.ObserveSpoke(t.Context(), key, ObserveOptions{}); err != nil || !spoke.Reachable {
			t.Errorf("%+v, %v", spoke, err)
		}
	})
}
