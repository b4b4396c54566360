package clusterpool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
)

// dropInterruptedPending drops the recorded names of clusters whose creation was interrupted, if
// the Secrets that exist under the name are not the ones that would be created now: the pool, or a
// Secret that it refers to, was edited in between. A ClusterDeployment created next to them would
// be installed from the old Secrets and count as current. The hotspare namespace controller deletes
// the remaining objects.
func (r *Reconciler) dropInterruptedPending(ctx context.Context, s *observation) error {
	names := s.withoutDropped(s.snapshot.Pending)
	if len(names) == 0 || s.snapshot.Settings.Blocked != "" || s.pool.DeletionTimestamp != nil {
		return nil
	}
	from, err := r.newClusterBuilder(ctx, s)
	if err != nil {
		return err
	}
	for _, name := range names {
		copies, err := from.fixedNameSecrets(name)
		if err != nil {
			return err
		}
		outdated, err := r.anySecretOutdated(ctx, copies)
		if err != nil {
			return err
		}
		if !outdated {
			continue
		}
		var cd hivev1.ClusterDeployment
		err = r.Live.Get(ctx, types.NamespacedName{Namespace: name, Name: name}, &cd)
		if err == nil {
			return fault.New(fault.Conflict, fmt.Errorf("cluster %s has not been seen yet", name))
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for cluster %s: %w", name, err)
		}
		ctrl.LoggerFrom(ctx).Info("dropped a recorded name: its Secrets were created before the pool was edited", "cluster", name)
		s.droppedNames = append(s.droppedNames, name)
	}
	return nil
}

// fixedNameSecrets returns the Secrets that a new cluster is created with, without those whose
// names depend on their content.
func (m clusterBuilder) fixedNameSecrets(name string) ([]*corev1.Secret, error) {
	from := m
	if len(m.pool.Spec.Inventory) > 0 {
		from.template = nil // the Secret with the install-config is named after its content
	}
	objects, cd, err := from.buildObjects(name, nil)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Secret
	for _, o := range objects {
		secret, is := o.(*corev1.Secret)
		if is && !(len(m.pool.Spec.Inventory) > 0 && secret.Name == cd.Spec.Provisioning.InstallConfigSecretRef.Name) {
			out = append(out, secret)
		}
	}
	return out, nil
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

// confirmSecret returns a Conflict if the Secret that exists in place of want has other data: the
// next pass then drops the name of its cluster.
func (r *Reconciler) confirmSecret(ctx context.Context, want *corev1.Secret) error {
	outdated, err := r.isSecretOutdated(ctx, want)
	if err == nil && outdated {
		err = fault.New(fault.Conflict, fmt.Errorf("the existing Secret %s was created from something else", client.ObjectKeyFromObject(want)))
	}
	return err
}
