// Package patch writes objects back: only what changed, and only if nobody else has written them
// since.
//
// Patches are JSON merge patches, so fields that these types do not know remain unchanged. They
// carry the resource version that was read, so the API server refuses a decision based on a stale
// object (fault.Conflict).
package patch

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object writes the difference between before and obj, except the status. It sends nothing if
// there is no difference. It reports whether it wrote; obj is then as stored.
func Object(ctx context.Context, c client.Writer, before, obj client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, obj) {
		return false, nil
	}
	return true, c.Patch(ctx, obj, optimisticMerge(before))
}

// Status writes the difference between the statuses of before and obj.
func Status(ctx context.Context, c client.StatusClient, before, obj client.Object) (bool, error) {
	if equality.Semantic.DeepEqual(before, obj) {
		return false, nil
	}
	return true, c.Status().Patch(ctx, obj, optimisticMerge(before))
}

func optimisticMerge(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}
