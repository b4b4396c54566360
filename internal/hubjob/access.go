package hubjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PolicyRules returns the rules for a pod in its namespace: access to the Secrets of its work, by
// name. A rule without names would cover all Secrets, so without names there are no rules.
func PolicyRules(secrets ...string) []rbacv1.PolicyRule {
	if len(secrets) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: secrets, Verbs: []string{"get", "patch"},
	}}
}

// Access describes what a pod needs to read and write its state.
type Access struct {
	// State is the Secret with the state. It owns all created objects, which also have its name.
	State *corev1.Secret
	// Labels are the labels of all created objects.
	Labels map[string]string
	// Parts are the names of further Secrets for the state. They are created empty, because a pod may
	// not create Secrets.
	Parts []string
}

// OwnerReferences returns the references of objects that end with the state.
func (a Access) OwnerReferences() []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: a.State.Name, UID: a.State.UID, Controller: ptr.To(true)}}
}

// NewObjectMeta returns the metadata of an object that ends with the state.
func (a Access) NewObjectMeta(name string) metav1.ObjectMeta {
	labels := make(map[string]string, len(a.Labels))
	for key, value := range a.Labels {
		labels[key] = value
	}
	return metav1.ObjectMeta{Namespace: a.State.Namespace, Name: name, Labels: labels, OwnerReferences: a.OwnerReferences()}
}

// Create creates the ServiceAccount of a pod with rights on the Secrets of its state, and no more than
// that. Existing objects are not an error.
func (a Access) Create(ctx context.Context, hub client.Writer) error {
	names := []string{a.State.Name}
	var objects []client.Object
	for _, part := range a.Parts {
		names = append(names, part)
		objects = append(objects, &corev1.Secret{ObjectMeta: a.NewObjectMeta(part)})
	}
	objects = append(
		objects,
		&corev1.ServiceAccount{ObjectMeta: a.NewObjectMeta(a.State.Name), AutomountServiceAccountToken: ptr.To(false)},
		&rbacv1.Role{ObjectMeta: a.NewObjectMeta(a.State.Name), Rules: PolicyRules(names...)},
		&rbacv1.RoleBinding{
			ObjectMeta: a.NewObjectMeta(a.State.Name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: a.State.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: a.State.Namespace, Name: a.State.Name}},
		},
	)
	for _, o := range objects {
		if err := hub.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}
