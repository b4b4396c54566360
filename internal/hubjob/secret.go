package hubjob

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// API is the part of the hub's API that a pod may use: it reads and patches the Secrets of its work.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// MaxConflicts is how often an edit is retried after a conflict.
const MaxConflicts = 10

// ErrNoChange is returned by an edit to leave a Secret unchanged. It is not a failure.
var ErrNoChange = errors.New("no change")

// EditSecret reads a Secret, replaces its data by what edit returns, and writes it with the resource
// version that it read. On a conflict it calls edit again with the newer data. It returns errors of the
// API and of edit unchanged.
func EditSecret(ctx context.Context, api API, key types.NamespacedName, edit func(data map[string][]byte) (map[string][]byte, error)) error {
	for try := 0; ; try++ {
		var secret corev1.Secret
		if err := api.Get(ctx, key, &secret); err != nil {
			return err
		}
		before := secret.DeepCopy()
		data, err := edit(secret.Data)
		if errors.Is(err, ErrNoChange) {
			return nil
		}
		if err != nil {
			return err
		}
		secret.Data = data
		err = api.Patch(ctx, &secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) || try == MaxConflicts {
			return err
		}
	}
}
