package job

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/fault"
	"hotspare.io/hotspare/internal/install"
	"hotspare.io/hotspare/internal/install/job/state"
	"hotspare.io/hotspare/internal/redact"
)

// Destroy runs the installer to destroy what md names, once no pod can create more of it. If a
// destruction has failed, the next call after the failure was reported retries it.
func (e *Executor) Destroy(ctx context.Context, place install.ClusterTarget, md install.Metadata) (install.Result, error) {
	w := e.destroyOperation(place, md.InfraID)
	st, err := w.ReadState(ctx)
	if apierrors.IsNotFound(err) {
		st, err = e.createDestruction(ctx, w, md)
	}
	if err != nil {
		return install.Result{}, err
	}
	switch st.Phase {
	case state.Succeeded:
		return install.Result{Phase: install.Succeeded}, e.deleteAttempts(ctx, place, md.InfraID)
	case state.Failed:
		return e.reportDestroyFailure(ctx, w, st)
	}
	image, err := e.resolveInstallerImage(ctx, w, st)
	if err != nil {
		return install.Result{}, err
	}
	seen, err := w.observeJob(ctx, destroy)
	switch {
	case err != nil:
		return install.Result{}, err
	case !seen.Exists && len(seen.LivePods) == 0:
		if err := e.abandonAttempts(ctx, place, md.InfraID); err != nil {
			return install.Result{}, err
		}
		if err := e.checkSecrets(ctx, place); err != nil {
			return install.Result{}, err
		}
		return install.Result{Phase: install.Running}, e.runJob(ctx, w, destroy, image, "")
	case !seen.Ended:
		return install.Result{Phase: install.Running}, seen.LaunchError
	}
	st, err = w.EditState(ctx, func(s *state.State) error {
		if s.Phase.IsFinal() {
			return state.ErrNoChange
		}
		s.MarkFailed(state.ReasonDestroy, seen.FailureMessage())
		return nil
	})
	if err != nil {
		return install.Result{}, err
	}
	return e.reportDestroyFailure(ctx, w, st)
}

// reportDestroyFailure returns a failed destruction as a result, once. The next call retries the
// destruction.
func (e *Executor) reportDestroyFailure(ctx context.Context, w operation, st state.State) (install.Result, error) {
	if st.Phase == state.Succeeded {
		return install.Result{Phase: install.Running}, nil // its pod wrote the outcome first: the next call reports it
	}
	if !st.Reported {
		_, err := w.EditState(ctx, func(s *state.State) error { s.Reported = true; return nil })
		return install.Result{Phase: install.Failed, Reason: st.Reason, Log: redact.Text(st.Log)}, err
	}
	if err := w.deleteJob(ctx, destroy); err != nil {
		return install.Result{}, err
	}
	_, err := w.EditState(ctx, func(s *state.State) error {
		*s = state.State{Metadata: s.Metadata, InstallerImage: s.InstallerImage, CLIImage: s.CLIImage}
		return nil
	})
	return install.Result{Phase: install.Running}, err
}

// createDestruction creates the state of a destruction if everything that it needs exists.
func (e *Executor) createDestruction(ctx context.Context, w operation, md install.Metadata) (state.State, error) {
	if len(md.Raw) == 0 {
		return state.State{}, fault.NewDenied("the metadata.json of %s is missing, and the installer cannot destroy the cluster without it: "+
			"put it into the Secret that spec.clusterMetadata.metadataJSONSecretRef names, key %s, "+
			"or destroy the cluster manually and set spec.preserveOnDelete", md.InfraID, hivev1.SecretKeyMetadata)
	}
	if have := parseInfraID(md.Raw); have != md.InfraID {
		return state.State{}, fault.NewDenied("the metadata.json of %s contains infraID %q, so nothing is destroyed: correct it", md.InfraID, have)
	}
	if err := e.checkSecrets(ctx, w.target); err != nil {
		return state.State{}, err
	}
	if err := e.abandonAttempts(ctx, w.target, md.InfraID); err != nil {
		return state.State{}, err
	}
	st, err := e.readRecordedImages(ctx, w.target, md.InfraID)
	if err != nil {
		return state.State{}, err
	}
	st.Metadata = md.Raw
	if err := w.createStateSecret(ctx, st); err != nil {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return state.State{}, namespaceTerminatingError(w.target, md.InfraID)
		}
		return state.State{}, err
	}
	return w.ReadState(ctx)
}

// readRecordedImages returns a State with the images that the attempt which created infraID
// recorded in its Secret, or with none. The status of the ClusterDeployment names them too, but
// users with write access to that status must not choose what runs with the credentials of the
// cluster.
func (e *Executor) readRecordedImages(ctx context.Context, place install.ClusterTarget, infraID string) (state.State, error) {
	attempts, err := e.listAttempts(ctx, place, infraID)
	if err != nil {
		return state.State{}, err
	}
	for _, w := range attempts {
		st, err := w.ReadState(ctx)
		if client.IgnoreNotFound(err) != nil {
			return state.State{}, err
		}
		if st.InstallerImage != "" {
			return state.State{InstallerImage: st.InstallerImage, CLIImage: st.CLIImage}, nil
		}
	}
	return state.State{}, nil
}

func namespaceTerminatingError(p install.ClusterTarget, infraID string) error {
	return fault.NewDenied("namespace %s is being deleted and accepts no Job, so hotspare cannot destroy %s: "+
		"destroy it with openshift-install destroy cluster and its metadata.json, then set spec.preserveOnDelete of ClusterDeployment %s",
		p.Cluster.Namespace, infraID, p.Cluster.Name)
}

// abandonAttempts returns nil when no pod can create anything with an infraID any more.
func (e *Executor) abandonAttempts(ctx context.Context, place install.ClusterTarget, infraID string) error {
	attempts, err := e.listAttempts(ctx, place, infraID)
	if err != nil {
		return err
	}
	for _, w := range attempts {
		_, err := w.EditState(ctx, func(s *state.State) error {
			if s.Phase.IsFinal() {
				return state.ErrNoChange
			}
			s.MarkEnded(state.Abandoned)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := e.stopRunningJobs(ctx, place, infraID); err != nil {
		return err
	}
	return e.confirmPodsEnded(ctx, place, infraID)
}

// listAttempts returns the attempts of a cluster that an infraID names, without those whose state
// was deleted.
func (e *Executor) listAttempts(ctx context.Context, place install.ClusterTarget, infraID string) ([]operation, error) {
	var list corev1.SecretList
	err := e.hub.List(ctx, &list, client.InNamespace(place.Cluster.Namespace), client.MatchingLabels{
		hivev1.LabelClusterDeployment: place.Cluster.Name, hivev1.LabelSecretType: hivev1.SecretTypeInstall,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the attempts: %w", err)
	}
	var found []operation
	for _, secret := range list.Items {
		if parseInfraID(secret.Data["metadata.json"]) == infraID {
			found = append(found, e.newOperation(place, secret.Name))
		}
	}
	return found, nil
}

// deleteAttempts deletes the state of attempts that have been destroyed, and their Jobs through the
// owner reference. The state of the destruction is kept as long as the cluster's object, so that a
// destruction is not repeated.
func (e *Executor) deleteAttempts(ctx context.Context, place install.ClusterTarget, infraID string) error {
	attempts, err := e.listAttempts(ctx, place, infraID)
	for _, w := range attempts {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = w.Key.Namespace, w.Key.Name
		err = errors.Join(err, client.IgnoreNotFound(e.hub.Delete(ctx, secret)))
	}
	return err
}
