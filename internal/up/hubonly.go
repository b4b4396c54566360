package up

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/internal/embedded/hub"
	"hotspare.io/hotspare/internal/manager"
)

// managerNamespace is the default namespace of hotspare-manager: that of its Lease, and of the ConfigMap of prices.
const managerNamespace = "hotspare-system"

// runHubOnly runs everything but the controllers, for a hotspare-manager that runs elsewhere.
func runHubOnly(ctx context.Context, o Options, h *hub.Hub, admin client.Client, objects []*unstructured.Unstructured, ready func(url string)) error {
	if err := prepareManager(ctx, admin, h, ManagerKubeconfigPath(o.Dir)); err != nil {
		return err
	}
	if err := completeHub(ctx, admin, objects); err != nil {
		return err
	}
	if err := reportReady(o, h, ready); err != nil {
		return err
	}
	return runUntilOneEnds(ctx,
		func(ctx context.Context) error { return waitForHubExit(ctx, o.Dir, h) },
		func(ctx context.Context) error { return runInstallers(ctx, o, h) },
		func(ctx context.Context) error { return serveConsole(ctx, o, h) },
	)
}

// prepareManager prepares the hub for a separate hotspare-manager, and writes a kubeconfig for it
// to path. The manager has the same user name as the controllers of hotspare up: the admission
// policies recognize that user as hotspare, and do not recognize the administrator.
func prepareManager(ctx context.Context, c client.Client, h *hub.Hub, path string) error {
	for _, o := range managerObjects() {
		if err := c.Create(ctx, o); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating %s for hotspare-manager: %w", o.GetName(), err)
		}
	}
	if err := h.WriteManagerKubeconfig(path); err != nil {
		return fmt.Errorf("writing the kubeconfig of hotspare-manager: %w", err)
	}
	return nil
}

// managerObjects returns the objects that a separate manager needs in addition to ClusterRole
// hotspare-manager: permission to hold a Lease, and to authenticate and authorize clients that
// scrape its metrics.
func managerObjects() []client.Object {
	name := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "hotspare-hub-only-manager"}
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: hub.ManagerUser}}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managerNamespace}},
		&rbacv1.Role{ObjectMeta: name(managerNamespace), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{manager.LeaseName}, Verbs: []string{"get", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: name(managerNamespace), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name("").Name},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: name(""), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		},
	}
}
