package image

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
	"hotspare.io/hotspare/internal/embedded/imagestore"
)

// getPool returns a pool whose clusters can have images from their start.
func (a commands) getPool(ctx context.Context, h *base.Hub, name string) (*hivev1.ClusterPool, error) {
	p, err := a.GetPool(ctx, h, name)
	if err != nil {
		return nil, err
	}
	local := p.Spec.Platform.Local
	switch {
	case local == nil:
		return nil, fmt.Errorf("--pool: pool %s creates clusters on platform %s: only local clusters use loaded images", name, p.Spec.Platform.Name())
	case local.Containers == hivev1.LocalContainersNever:
		return nil, fmt.Errorf("--pool: the clusters of pool %s run no containers: change spec.platform.local.containers to Auto", name)
	case local.Workers != nil && *local.Workers == 0:
		return nil, fmt.Errorf("--pool: the clusters of pool %s have no workers to run containers: raise spec.platform.local.workers", name)
	}
	return p, nil
}

// normalizeName returns the name of an image as a loaded image has it.
func normalizeName(name string) string {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return name
	}
	return reference.TagNameOnly(named).String()
}

// addToPool adds images to those that the workers of a pool's clusters pull before they are ready, and returns a sentence
// about the result for people.
func (a commands) addToPool(ctx context.Context, h *base.Hub, name string, images []imagestore.Image) (string, error) {
	var names, added, kept []string
	for _, i := range images {
		if !slices.Contains(names, i.Name) {
			names = append(names, i.Name)
		}
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		added, kept = nil, nil
		p, err := a.getPool(ctx, h, name) // it may have changed
		if err != nil {
			return err
		}
		before := p.DeepCopy()
		list := &p.Spec.Platform.Local.Images
		known := map[string]bool{}
		for _, name := range *list {
			known[normalizeName(string(name))] = true
		}
		for _, name := range names {
			if known[name] {
				kept = append(kept, name)
				continue
			}
			*list, added = append(*list, hivev1.LocalImage(name)), append(added, name)
		}
		if len(added) == 0 {
			return nil
		}
		return h.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return "", fmt.Errorf("adding images to pool %s: %w", name, err)
	}
	var parts []string
	if len(added) > 0 {
		parts = append(parts, fmt.Sprintf("pool %s: new clusters have %s from their start, and replace the spare clusters that do not\n", name, strings.Join(added, ", ")))
	}
	if len(kept) > 0 {
		parts = append(parts, fmt.Sprintf("pool %s has %s already: clusters that are created from now on get the content that was loaded\n", name, strings.Join(kept, ", ")))
	}
	return strings.Join(parts, ""), nil
}
