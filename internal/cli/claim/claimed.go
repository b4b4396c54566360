package claim

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/api/hotspare/v1alpha1"
	"hotspare.io/hotspare/internal/cli/base"
)

// claimed is what claim run claims: a ClusterClaim, or a ClaimSet.
type claimed struct {
	client.Object
	resource schema.GroupResource
	// noun is the word for it, and release the command that releases it.
	noun, release string
}

func claimedOne(c *hivev1.ClusterClaim) claimed {
	return claimed{c, schema.GroupResource{Group: hivev1.GroupVersion.Group, Resource: "clusterclaims"}, "claim", "claim release"}
}

func claimedSet(set *v1alpha1.ClaimSet) claimed {
	return claimed{set, schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "claimsets"}, "ClaimSet", "claimset release"}
}

// releaseClaimed releases what claim run has claimed, even if ctx has ended. A failure does not change the exit code,
// which is that of the command.
func (a commands) releaseClaimed(ctx context.Context, h *base.Hub, c claimed) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	err := h.Delete(ctx, c.Object)
	switch {
	case client.IgnoreNotFound(err) != nil:
		fmt.Fprintf(a.Stderr, "warning: releasing %s %s failed: %v\n  release it with: %s\n",
			c.noun, c.GetName(), h.ExplainAPIError(err), a.FormatCommand(c.release+" %s", c.GetName()))
	case err == nil:
		fmt.Fprintf(a.Stderr, "%s %s released\n", c.noun, c.GetName())
	}
}
