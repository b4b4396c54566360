package remote

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestWhyAClusterIsNotUsable(t *testing.T) {
	unready := node("w1", woke)
	unready.Status.Conditions[0].Status = corev1.ConditionFalse
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	for name, c := range map[string]struct {
		path        string
		answer      any
		expectNodes bool
		want        string
	}{
		"a cluster with nodes":                   {"/x", 200, true, ""},
		"an API alone":                           {"/api/v1/nodes", corev1.NodeList{}, false, ""},
		"a cluster whose nodes are missing":      {"/api/v1/nodes", corev1.NodeList{}, true, "it has no node"},
		"a node that is not ready":               {"/api/v1/nodes", corev1.NodeList{Items: []corev1.Node{node("m0", woke), unready}}, true, "nodes are not ready: w1"},
		"an API that lacks what the hub reads":   {leases, http.StatusNotFound, false, "not ready"},
		"an API that does not serve its clients": {"/api/v1/nodes", http.StatusForbidden, true, "."},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.answers[c.path] = c.answer
			err := CheckUsable(t.Context(), []byte(kubeconfig(a.Server, token(secret))), c.expectNodes)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want == "." && err == nil, c.want != "" && c.want != "." && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("a kubeconfig without a user", func(t *testing.T) {
		if err := CheckUsable(t.Context(), []byte("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"https://127.0.0.1:6443\"}}]\n"), true); err == nil {
			t.Error("it is usable")
		}
	})
}
