package mutationcache

import (
	"context"
	"fmt"
	"iter"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SharedIndex looks up a cache's own objects of one kind without copying them. Callers must not
// change them. A client's List copies the first level of each object even when deep copies are
// off; for a pool of 1,000 clusters, that is most of the cost of a lookup.
type SharedIndex[T client.Object] struct {
	indexer toolscache.Indexer
	index   string
}

// NewSharedIndex adds an index to the objects of example's kind in c. It must be called
// before c is started.
func NewSharedIndex[T client.Object](ctx context.Context, c cache.Informers, example T, index string, keys func(T) []string) (*SharedIndex[T], error) {
	informer, err := c.GetInformer(ctx, example)
	if err != nil {
		return nil, fmt.Errorf("getting the informer of %T: %w", example, err)
	}
	store, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the informer of %T is a %T, which has no indexer", example, informer)
	}
	err = store.AddIndexers(toolscache.Indexers{index: func(obj any) ([]string, error) { return keys(obj.(T)), nil }})
	if err != nil {
		return nil, fmt.Errorf("adding index %s to %T: %w", index, example, err)
	}
	return &SharedIndex[T]{store.GetIndexer(), index}, nil
}

// ListByKey returns the objects that the index has under key, in no particular order, and their
// number.
func (s *SharedIndex[T]) ListByKey(key string) (int, iter.Seq[T], error) {
	found, err := s.indexer.ByIndex(s.index, key)
	return len(found), func(yield func(T) bool) {
		for _, obj := range found {
			if !yield(obj.(T)) {
				return
			}
		}
	}, err
}
