package fake

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"hotspare.io/hotspare/internal/install"
)

func request(name string, attempt int) install.Request {
	return install.Request{ClusterTarget: install.ClusterTarget{Cluster: types.NamespacedName{Namespace: name, Name: name}}, Attempt: attempt, Version: "4.18.20"}
}

func prepare(t *testing.T, name string, attempt int) install.Metadata {
	t.Helper()
	md, err := Executor{}.Prepare(t.Context(), request(name, attempt))
	if err != nil {
		t.Fatal(err)
	}
	return md
}

func TestPrepare(t *testing.T) {
	if diff := cmp.Diff(prepare(t, "a", 0), prepare(t, "a", 0)); diff != "" {
		t.Errorf("one attempt has two names: %s", diff)
	}
	seen := map[string]bool{}
	for _, md := range []install.Metadata{prepare(t, "a", 0), prepare(t, "a", 1), prepare(t, "b", 0)} {
		if seen[md.InfraID] || seen[md.ClusterID] {
			t.Errorf("%s twice", md.InfraID)
		}
		seen[md.InfraID], seen[md.ClusterID] = true, true
		if !json.Valid(md.Raw) {
			t.Errorf("metadata.json: %s", md.Raw)
		}
	}
}

func TestInstall(t *testing.T) {
	md := prepare(t, "a", 0)
	got, err := Executor{}.Install(t.Context(), request("a", 0), md)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(got.Kubeconfig)
	if err != nil || config.Host != got.APIURL {
		t.Errorf("kubeconfig for %v: %v", config, err)
	}
	if got.Phase != install.Succeeded || len(got.Password) != 23 || got.Version != "4.18.20" {
		t.Errorf("got %+v", got)
	}
}

func TestDestroy(t *testing.T) {
	got, err := Executor{}.Destroy(t.Context(), install.ClusterTarget{}, install.Metadata{})
	if err != nil || got.Phase != install.Succeeded {
		t.Errorf("%v, %v", got, err)
	}
}
