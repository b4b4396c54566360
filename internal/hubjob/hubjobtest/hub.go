// Package hubjobtest is a hub in memory for tests of Jobs. It behaves like a hub where package fake does
// not: it sets UIDs, lets pods end before they are deleted, and deletes objects whose owner is deleted.
package hubjobtest

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
)

// Token is the token of every ServiceAccount.
const Token = "planted-hub-token"

// kubelet is the finalizer of pods, which the runner of Jobs removes with a grace period of zero.
const kubelet = "hubjobtest/kubelet"

// New returns a hub with the given objects.
func New(objects ...client.Object) (client.Client, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, batchv1.AddToScheme, authenticationv1.AddToScheme, hivev1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	plain := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithStatusSubresource(&batchv1.Job{}, &corev1.Pod{}).Build()
	return interceptor.NewClient(plain, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			o.SetUID(uuid.NewUUID())
			o.SetCreationTimestamp(metav1.Now())
			pod, ok := o.(*corev1.Pod)
			if !ok {
				return c.Create(ctx, o, opts...)
			}
			controllerutil.AddFinalizer(o, kubelet)
			if err := c.Create(ctx, o, opts...); err != nil {
				return err
			}
			return deleteOrphan(ctx, c, pod)
		},
		Delete: deleteObject,
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, sub client.Object, _ ...client.SubResourceCreateOption) error {
			if request, ok := sub.(*authenticationv1.TokenRequest); ok {
				request.Status.Token = Token
			}
			return nil
		},
	}), nil
}

// deleteOrphan deletes a new pod whose Job was deleted while the pod was created, as the garbage
// collector does.
func deleteOrphan(ctx context.Context, c client.WithWatch, pod *corev1.Pod) error {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "Job" {
		return nil
	}
	err := c.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}, &batchv1.Job{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return deleteObject(ctx, c, pod.DeepCopy())
}

func deleteObject(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	var how client.DeleteOptions
	how.ApplyOptions(opts)
	if err := c.Delete(ctx, o); err != nil {
		return err
	}
	if how.GracePeriodSeconds == nil || *how.GracePeriodSeconds > 0 {
		return deleteOwned(ctx, c, o.GetUID())
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return client.IgnoreNotFound(err)
	}
	controllerutil.RemoveFinalizer(o, kubelet)
	return c.Update(ctx, o)
}

// deleteOwned deletes what an object owned.
func deleteOwned(ctx context.Context, c client.WithWatch, owner types.UID) error {
	for _, list := range []client.ObjectList{
		&corev1.SecretList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		if err := c.List(ctx, list); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return err
		}
		for _, item := range items {
			o, ok := item.(client.Object)
			owned := ok && slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner })
			if !owned || o.GetDeletionTimestamp() != nil {
				continue
			}
			if err := client.IgnoreNotFound(deleteObject(ctx, c, o)); err != nil {
				return err
			}
		}
	}
	return nil
}
