package clusterpool

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/pool"
	"hotspare.io/hotspare/internal/rbac"
)

// observePendingNames finds the recorded names without a cluster under which none can be created.
func (r *Reconciler) observePendingNames(ctx context.Context, s *observation) error {
	if len(s.snapshot.Pending) == 0 {
		return nil
	}
	unusable := map[string]pool.Cause{}
	maps.Copy(unusable, s.snapshot.Unusable)
	s.snapshot.Unusable = unusable
	for _, name := range s.snapshot.Pending {
		foreign, err := r.isForeignNamespace(ctx, s.pool, name)
		if err != nil {
			return err
		}
		if foreign {
			unusable[name] = pool.NamespaceForeign
		}
	}
	if s.snapshot.Settings.Blocked == "" && s.pool.DeletionTimestamp == nil {
		s.secretsErr = r.observePendingSecrets(ctx, s)
	}
	return nil
}

// isForeignNamespace reports whether the namespace of a recorded name was not created for a cluster
// of the pool. Others may also write the status of the pool, which has the record: a name there must
// not lead into somebody else's namespace.
func (r *Reconciler) isForeignNamespace(ctx context.Context, p *hivev1.ClusterPool, name string) (bool, error) {
	var ns corev1.Namespace
	err := r.Client.Get(ctx, types.NamespacedName{Name: name}, &ns)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return !rbac.IsPoolNamespace(&ns, hivev1.ClusterPoolReference{Namespace: p.Namespace, PoolName: p.Name}), nil
}
