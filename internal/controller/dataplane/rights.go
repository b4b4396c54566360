package dataplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/fleet/agent/install"
	"hotspare.io/hotspare/internal/fleet/dataplane"
	"hotspare.io/hotspare/internal/patch"
)

// The hub can only grant rights that it has itself: the last two markers exist only for that.
//
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;create;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;create;patch;delete
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplaneagents,verbs=get;list;watch
// +kubebuilder:rbac:groups=hotspare.io,resources=dataplaneagents/status,verbs=get;patch;update

// tokenRetryInterval is the delay before the next check for a token that the hub is about to
// create.
const tokenRetryInterval = 300 * time.Millisecond

// grantHubAccess creates the agent's identity on the hub, with the rights to its own object, and
// builds a kubeconfig from the token. It reads all objects from the API server: the cache does not
// contain them.
func (t *execution) grantHubAccess(ctx context.Context) error {
	dp := t.snapshot.Plane
	for _, want := range install.HubObjects(dp.Namespace, dp.Name) {
		want.SetAnnotations(withOwner(want.GetAnnotations(), dp))
		have := want.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it was one
		found, err := getObject(ctx, t.Live, client.ObjectKeyFromObject(want), have)
		switch {
		case err != nil:
			return err
		case !found:
			if err := t.createObject(ctx, want); err != nil {
				return err
			}
			continue
		case !dataplane.OwnsObject(dp, have):
			return &refusedError{v1alpha1.ReasonNameTaken, fmt.Sprintf("%T %s in namespace %s was created for something else: delete it.", have, have.GetName(), have.GetNamespace())}
		}
		if err := t.repairObject(ctx, have, want); err != nil {
			return err
		}
	}
	return t.buildAgentKubeconfig(ctx)
}

func withOwner(annotations map[string]string, dp *v1alpha1.DataPlane) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationDataPlane] = string(dp.UID)
	return annotations
}

// repairObject reverts changes to the rules or the subjects of the agent's role and binding.
func (t *execution) repairObject(ctx context.Context, have, want client.Object) error {
	before := have.DeepCopyObject().(client.Object) //nolint:forcetypeassert // it was one
	switch h := have.(type) {
	case *rbacv1.Role:
		h.Rules = want.(*rbacv1.Role).Rules //nolint:forcetypeassert // they are of one kind
	case *rbacv1.RoleBinding:
		w := want.(*rbacv1.RoleBinding) //nolint:forcetypeassert // they are of one kind
		if !equality.Semantic.DeepEqual(h.RoleRef, w.RoleRef) {
			return t.deleteObject(ctx, have) // it cannot be changed, so it is created again
		}
		h.Subjects = w.Subjects
	default:
		return nil
	}
	_, err := patch.Object(ctx, t.Client, before, have)
	return err
}

// buildAgentKubeconfig builds a kubeconfig from the token that the hub has put into its Secret.
func (t *execution) buildAgentKubeconfig(ctx context.Context) error {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: t.snapshot.Plane.Namespace, Name: install.TokenName(t.snapshot.Plane.Name)}
	found, err := getObject(ctx, t.Live, key, &secret)
	if err != nil {
		return err
	}
	if !found || len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
		return fault.NewWait(tokenRetryInterval, "waiting for the token of Secret %s", key)
	}
	if secret.Type != corev1.SecretTypeServiceAccountToken || secret.Annotations[corev1.ServiceAccountNameKey] != install.HubAccountName(t.snapshot.Plane.Name) {
		return &refusedError{
			v1alpha1.ReasonNameTaken,
			fmt.Sprintf("Secret %s is not the token of ServiceAccount %s: delete it.", key.Name, install.HubAccountName(t.snapshot.Plane.Name)),
		}
	}
	t.kubeconfig, err = install.BuildKubeconfig(t.Hub.Server, t.Hub.CA, &secret)
	return err
}

// revokeHubAccess deletes the agent's rights, the binding first. It does not delete objects of
// other owners with those names.
func (t *execution) revokeHubAccess(ctx context.Context) error {
	dp := t.snapshot.Plane
	objects := install.HubObjects(dp.Namespace, dp.Name)
	for i := len(objects) - 1; i >= 0; i-- {
		o := objects[i]
		found, err := getObject(ctx, t.Live, client.ObjectKeyFromObject(o), o)
		if err != nil {
			return err
		}
		if !found || !dataplane.OwnsObject(dp, o) {
			continue
		}
		if err := t.deleteObject(ctx, o); err != nil {
			return err
		}
	}
	t.progress.updateProgress(client.ObjectKeyFromObject(dp), dp.UID, func(d *progress) { d.revoked = true })
	return nil
}
