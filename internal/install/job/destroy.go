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
	"hotspare.io/hotspare/internal/install/scrub"
)

// Destroy has the installer destroy what md names, once nothing can make more of it.
// One that failed is begun anew when it is asked for again.
func (e *Executor) Destroy(ctx context.Context, place install.Place, md install.Metadata) (install.Result, error) {
	w := e.destruction(place, md.InfraID)
	st, err := w.Read(ctx)
	if apierrors.IsNotFound(err) {
		st, err = e.beginDestruction(ctx, w, md)
	}
	if err != nil {
		return install.Result{}, err
	}
	switch st.Phase {
	case state.Succeeded:
		return install.Result{Phase: install.Succeeded}, e.forget(ctx, place, md.InfraID)
	case state.Failed:
		return e.failed(ctx, w, st)
	}
	image, err := e.image(ctx, w, st)
	if err != nil {
		return install.Result{}, err
	}
	seen, err := w.look(ctx, destroy)
	switch {
	case err != nil:
		return install.Result{}, err
	case !seen.exists && seen.living == 0:
		if err := e.fence(ctx, place, md.InfraID); err != nil {
			return install.Result{}, err
		}
		if err := e.checkSecrets(ctx, place); err != nil {
			return install.Result{}, err
		}
		return install.Result{Phase: install.Running}, e.run(ctx, w, destroy, image, "")
	case !seen.ended:
		return install.Result{Phase: install.Running}, seen.trouble
	}
	st, err = w.Edit(ctx, func(s *state.State) error {
		if s.Phase.Over() {
			return state.ErrNoChange
		}
		s.Fail(state.ReasonDestroy, seen.why())
		return nil
	})
	if err != nil {
		return install.Result{}, err
	}
	return e.failed(ctx, w, st)
}

// failed tells once that a destruction has failed. Asked again, it begins anew.
func (e *Executor) failed(ctx context.Context, w work, st state.State) (install.Result, error) {
	if st.Phase == state.Succeeded {
		return install.Result{Phase: install.Running}, nil // its pod had the last word: the next call tells
	}
	if !st.Told {
		_, err := w.Edit(ctx, func(s *state.State) error { s.Told = true; return nil })
		return install.Result{Phase: install.Failed, Reason: st.Reason, Log: scrub.Text(st.Log)}, err
	}
	if err := w.drop(ctx, destroy); err != nil {
		return install.Result{}, err
	}
	_, err := w.Edit(ctx, func(s *state.State) error {
		*s = state.State{Metadata: s.Metadata, InstallerImage: s.InstallerImage, CLIImage: s.CLIImage}
		return nil
	})
	return install.Result{Phase: install.Running}, err
}

// beginDestruction makes the state of a destruction, when all that it needs is there.
func (e *Executor) beginDestruction(ctx context.Context, w work, md install.Metadata) (state.State, error) {
	if len(md.Raw) == 0 {
		return state.State{}, fault.Denying("the metadata.json of %s is nowhere, and the installer cannot destroy it without: "+
			"put it into the Secret that spec.clusterMetadata.metadataJSONSecretRef names, key %s, "+
			"or destroy it by hand and set spec.preserveOnDelete", md.InfraID, hivev1.SecretKeyMetadata)
	}
	if have := infraIDOf(md.Raw); have != md.InfraID {
		return state.State{}, fault.Denying("the metadata.json of %s names %q: nothing is destroyed by it", md.InfraID, have)
	}
	if err := e.checkSecrets(ctx, w.place); err != nil {
		return state.State{}, err
	}
	if err := e.fence(ctx, w.place, md.InfraID); err != nil {
		return state.State{}, err
	}
	st, err := e.madeWith(ctx, w.place, md.InfraID)
	if err != nil {
		return state.State{}, err
	}
	st.Metadata = md.Raw
	if err := w.begin(ctx, st); err != nil {
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return state.State{}, terminating(w.place, md.InfraID)
		}
		return state.State{}, err
	}
	return w.Read(ctx)
}

// madeWith returns a State with the images that the attempt which made infraID recorded in
// its Secret, or with none. Who may write the status of the ClusterDeployment, which names
// them too, must not choose what runs with the credentials of the cluster.
func (e *Executor) madeWith(ctx context.Context, place install.Place, infraID string) (state.State, error) {
	attempts, err := e.attempts(ctx, place, infraID)
	if err != nil {
		return state.State{}, err
	}
	for _, w := range attempts {
		st, err := w.Read(ctx)
		if client.IgnoreNotFound(err) != nil {
			return state.State{}, err
		}
		if st.InstallerImage != "" {
			return state.State{InstallerImage: st.InstallerImage, CLIImage: st.CLIImage}, nil
		}
	}
	return state.State{}, nil
}

func terminating(p install.Place, infraID string) error {
	return fault.Denying("namespace %s is being deleted and takes no Job, so %s cannot be destroyed from there: "+
		"destroy it with openshift-install destroy cluster and its metadata.json, then set spec.preserveOnDelete of ClusterDeployment %s",
		p.Cluster.Namespace, infraID, p.Cluster.Name)
}

// fence returns nil when no pod can make anything of an infraID any more.
func (e *Executor) fence(ctx context.Context, place install.Place, infraID string) error {
	attempts, err := e.attempts(ctx, place, infraID)
	if err != nil {
		return err
	}
	for _, w := range attempts {
		_, err := w.Edit(ctx, func(s *state.State) error {
			if s.Phase.Over() {
				return state.ErrNoChange
			}
			s.End(state.Abandoned)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := e.stop(ctx, place, infraID); err != nil {
		return err
	}
	return e.silent(ctx, place, infraID)
}

// attempts are those of a cluster that an infraID names; one whose state is gone is
// not among them.
func (e *Executor) attempts(ctx context.Context, place install.Place, infraID string) ([]work, error) {
	var list corev1.SecretList
	err := e.hub.List(ctx, &list, client.InNamespace(place.Cluster.Namespace), client.MatchingLabels{
		hivev1.LabelClusterDeployment: place.Cluster.Name, hivev1.LabelSecretType: hivev1.SecretTypeInstall,
	})
	if err != nil {
		return nil, fmt.Errorf("listing the attempts: %w", err)
	}
	var found []work
	for _, secret := range list.Items {
		if infraIDOf(secret.Data["metadata.json"]) == infraID {
			found = append(found, e.work(place, secret.Name))
		}
	}
	return found, nil
}

// forget removes the state of attempts that have been destroyed, and with it, by
// their owner, their Jobs. That of the destruction stays as long as the cluster's
// object: so a destruction is not repeated.
func (e *Executor) forget(ctx context.Context, place install.Place, infraID string) error {
	attempts, err := e.attempts(ctx, place, infraID)
	for _, w := range attempts {
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = w.Key.Namespace, w.Key.Name
		err = errors.Join(err, client.IgnoreNotFound(e.hub.Delete(ctx, secret)))
	}
	return err
}
