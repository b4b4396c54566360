package spoke

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/metrics/pkg/apis/metrics"

	"hotspare.io/hotspare/internal/embedded/pki"
	"hotspare.io/hotspare/internal/embedded/spoke/informerloop"
)

// ensureNodeRBAC creates the RBAC that an installer creates for nodes: an account to join with, the
// right to request certificates, and the right to renew them. It retries until it succeeds or ctx
// ends.
func ensureNodeRBAC(ctx context.Context, root *rest.Config) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	if err := informerloop.RetryUntilSuccess(ctx, time.Second, func(ctx context.Context) error { return createNodeRBAC(ctx, client) }); err != nil {
		return nil //nolint:nilerr // stopped before it was done; the next start does it
	}
	return nil
}

func createNodeRBAC(ctx context.Context, client kubernetes.Interface) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pki.NodeBootstrapperNamespace}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err := ignoreAlreadyExists(err, "namespace", namespace.Name); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: pki.NodeBootstrapperName}}
	_, err = client.CoreV1().ServiceAccounts(namespace.Name).Create(ctx, account, metav1.CreateOptions{})
	if err := ignoreAlreadyExists(err, "service account", account.Name); err != nil {
		return err
	}
	for _, b := range nodeRoleBindings() {
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{})
		if err := ignoreAlreadyExists(err, "binding", b.Name); err != nil {
			return err
		}
	}
	return nil
}

// nodeRoleBindings returns bindings of roles that Kubernetes defines and leaves to installers to
// bind.
func nodeRoleBindings() []rbacv1.ClusterRoleBinding {
	return []rbacv1.ClusterRoleBinding{
		newClusterRoleBinding("hotspare:node-bootstrapper", "system:node-bootstrapper", rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: pki.NodeBootstrapperNamespace, Name: pki.NodeBootstrapperName,
		}),
		// kube-proxy has the node's certificate.
		newClusterRoleBinding("hotspare:node-proxier", "system:node-proxier", rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes",
		}),
		newClusterRoleBinding("hotspare:kube-apiserver-kubelet-client", "system:kubelet-api-admin", rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.KubeletClientUser,
		}),
		newClusterRoleBinding("hotspare:node-renewal", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:nodes",
		}),
	}
}

// ensureMetricsRBAC lets the users who may view a namespace read the metrics of its pods. It retries until
// it succeeds or ctx ends.
func ensureMetricsRBAC(ctx context.Context, root *rest.Config) error {
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return fmt.Errorf("creating a client of the API: %w", err)
	}
	if err := informerloop.RetryUntilSuccess(ctx, time.Second, func(ctx context.Context) error { return createMetricsRole(ctx, client) }); err != nil {
		return nil //nolint:nilerr // stopped before it was done; the next start does it
	}
	return nil
}

// createMetricsRole creates the role that metrics-server's manifest calls
// system:aggregated-metrics-reader. It has another name, so that the manifest can be installed and
// deleted without an effect on it.
func createMetricsRole(ctx context.Context, client kubernetes.Interface) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "hotspare:metrics-reader", Labels: map[string]string{
			"app.kubernetes.io/managed-by":                 "hotspare",
			"rbac.authorization.k8s.io/aggregate-to-view":  "true",
			"rbac.authorization.k8s.io/aggregate-to-edit":  "true",
			"rbac.authorization.k8s.io/aggregate-to-admin": "true",
		}},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{metrics.GroupName}, Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list"}}},
	}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	return ignoreAlreadyExists(err, "cluster role", role.Name)
}

func newClusterRoleBinding(name, role string, subject rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

func ignoreAlreadyExists(err error, kind, name string) error {
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fmt.Errorf("creating %s %s: %w", kind, name, err)
}
