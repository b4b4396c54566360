package spoke

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"hotspare.io/hotspare/internal/embedded/pki"
)

func TestNodesGetTheirAccountAndRightsWhateverWasCreatedBefore(t *testing.T) {
	client := fake.NewClientset()
	unavailable := errors.New("the API server is starting")
	writes, failAt := 0, 1
	client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		if writes++; writes == failAt {
			return true, nil, unavailable
		}
		return false, nil, nil
	})
	attempts := 0
	for err := unavailable; err != nil; attempts++ {
		if attempts > 10 {
			t.Fatal("it does not end")
		}
		if err = createNodeRBAC(t.Context(), client); err != nil && !errors.Is(err, unavailable) {
			t.Fatal(err)
		}
		failAt, writes = failAt+1, 0 // the next attempt gets one write further, over what exists
	}
	if attempts != 7 {
		t.Errorf("%d attempts: the calls that were to fail were not all made", attempts)
	}
	if _, err := client.CoreV1().ServiceAccounts(pki.NodeBootstrapperNamespace).Get(t.Context(), pki.NodeBootstrapperName, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	bindings, err := client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range bindings.Items {
		got = append(got, b.Subjects[0].Name+" has "+b.RoleRef.Name)
	}
	slices.Sort(got)
	want := []string{
		"kube-apiserver-kubelet-client has system:kubelet-api-admin",
		"node-bootstrapper has system:node-bootstrapper",
		"system:nodes has system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
		"system:nodes has system:node-proxier",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestWhoeverViewsANamespaceReadsTheMetricsOfItsPods(t *testing.T) {
	client := fake.NewClientset()
	for range 2 { // the second start finds it
		if err := createMetricsRole(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{LabelSelector: "rbac.authorization.k8s.io/aggregate-to-view=true"})
	if err != nil || len(roles.Items) != 1 {
		t.Fatalf("%v, %v", roles.Items, err)
	}
	role := roles.Items[0]
	for _, other := range []string{"edit", "admin"} {
		if role.Labels["rbac.authorization.k8s.io/aggregate-to-"+other] != "true" {
			t.Errorf("%s does not have the rules of view", other)
		}
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Error(diff)
	}
}
