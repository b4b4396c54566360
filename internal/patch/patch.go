// Package patch writes objects back: only what changed, and only if nobody else
// wrote in between.
//
// Patches are JSON merge patches, so fields that these types do not know stay
// as they are; they carry the resource version that was read, so a decision
// made on a stale object is refused by the API server (fault.Conflict).
package patch

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object writes the difference of obj to before, status apart. Nothing is sent
// when there is none. It reports whether it wrote; obj is then as stored.
func Object(ctx context.Context, c client.Writer, before, obj client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, obj) {
		return false, nil
	}
	return true, c.Patch(ctx, obj, optimisticMerge(before))
}

// Status writes the difference of obj's status to before's.
func Status(ctx context.Context, c client.StatusClient, before, obj client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, obj) {
		return false, nil
	}
	return true, c.Status().Patch(ctx, obj, optimisticMerge(before))
}

func optimisticMerge(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
