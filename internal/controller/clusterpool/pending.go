package clusterpool

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// observePendingSecrets finds the recorded names of clusters whose creation was interrupted, and
// whose Secrets are not the ones that would be created now: the pool, or a Secret that it refers to,
// was edited in between. A ClusterDeployment created next to them would be installed from the old
// Secrets and count as current. The hotspare namespace controller deletes the remaining objects.
func (r *Reconciler) observePendingSecrets(ctx context.Context, s *observation) error {
	from, err := r.newClusterBuilder(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range s.snapshot.Pending {
		if s.snapshot.Unusable[name] != "" {
			continue
		}
		copies, err := from.fixedNameSecrets(name)
		if err != nil {
			return err
		}
		outdated, err := r.anySecretOutdated(ctx, copies)
		if err != nil {
			return err
		}
		if outdated {
			s.snapshot.Unusable[name] = pool.SecretsOutdated
		}
	}
	return nil
}

// anySecretOutdated reports whether one of the Secrets exists with other data.
func (r *Reconciler) anySecretOutdated(ctx context.Context, copies []*corev1.Secret) (bool, error) {
	for _, want := range copies {
		outdated, err := r.isSecretOutdated(ctx, want)
		if err != nil || outdated {
			return outdated, err
		}
	}
	return false, nil
}

func (r *Reconciler) isSecretOutdated(ctx context.Context, want *corev1.Secret) (bool, error) {
	var have corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), &have)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Secret %s: %w", client.ObjectKeyFromObject(want), err)
	}
	return !equality.Semantic.DeepEqual(have.Data, want.Data), nil
}
