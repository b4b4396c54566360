package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/hubjob"
	"hotspare.io/hotspare/internal/recipe"
	"hotspare.io/hotspare/internal/recipe/runner"
	"hotspare.io/hotspare/internal/recipe/runner/jobs/jobstate"
)

// Store is a runner.Store that keeps each record in a Secret of the cluster's namespace. Pods cannot read
// or write it.
type Store struct{ *hub }

var _ runner.Store = (*Store)(nil)

const (
	keyRecord = "record.json"
	// logLines is the number of lines that ReadLog returns.
	logLines = 50
)

func stateKey(key runner.Key) types.NamespacedName {
	return types.NamespacedName{Namespace: key.Cluster.Namespace, Name: stateName(key.Cluster.Name, key.InfraID)}
}

func recordKey(key runner.Key) types.NamespacedName {
	k := stateKey(key)
	k.Name += "-record"
	return k
}

// ReadRecord returns the record of a cluster; false if there is none. If a cluster in another namespace
// has a record for the infraID, it returns that record, so that the caller rejects the infraID.
func (s *Store) ReadRecord(ctx context.Context, key runner.Key) (runner.Record, bool, error) {
	var secret corev1.Secret
	err := s.client.Get(ctx, recordKey(key), &secret)
	if apierrors.IsNotFound(err) {
		return s.findForeignRecord(ctx, key)
	}
	if err != nil {
		return runner.Record{}, false, fmt.Errorf("reading the record of cluster %s: %w", key.InfraID, err)
	}
	var r runner.Record
	if err := json.Unmarshal(secret.Data[keyRecord], &r); err != nil {
		return runner.Record{}, false, fmt.Errorf("reading Secret %s: %w: delete the Secret to create the cluster again", secret.Name, err)
	}
	return r, true, nil
}

// findForeignRecord returns a record of another cluster for the same infraID. Its owner is derived from
// where the Secret is, because users may write Secrets in their own namespaces.
func (s *Store) findForeignRecord(ctx context.Context, key runner.Key) (runner.Record, bool, error) {
	labels := clusterLabels("", key.InfraID, secretTypeRecord)
	if labels[hivev1.LabelInfraID] == "" {
		return runner.Record{}, false, nil
	}
	var list corev1.SecretList
	if err := s.client.List(ctx, &list, client.MatchingLabels(labels)); err != nil {
		return runner.Record{}, false, fmt.Errorf("looking for other clusters with infraID %s: %w", key.InfraID, err)
	}
	for _, secret := range list.Items {
		owner := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Labels[hivev1.LabelClusterDeployment]}
		if owner != key.Cluster {
			return runner.Record{Namespace: owner.Namespace, Name: owner.Name}, true, nil
		}
	}
	return runner.Record{}, false, nil
}

// WriteRecord replaces the record of a cluster.
func (s *Store) WriteRecord(ctx context.Context, key runner.Key, r runner.Record) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of cluster %s: %w", key.InfraID, err)
	}
	data := map[string][]byte{keyRecord: raw}
	at := recordKey(key)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name, Labels: clusterLabels(key.Cluster.Name, key.InfraID, secretTypeRecord)},
		Data:       data,
	}
	if r.UID != "" {
		secret.OwnerReferences = []metav1.OwnerReference{ownerReference(key.Cluster.Name, r.UID)}
	}
	err = s.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		err = hubjob.EditSecret(ctx, s.client, at, func(map[string][]byte) (map[string][]byte, error) { return maps.Clone(data), nil })
	}
	if err != nil {
		return fmt.Errorf("writing the record of cluster %s: %w", key.InfraID, err)
	}
	return nil
}

// ReadLog returns the last lines of the log, without secrets; "" if there is none.
func (s *Store) ReadLog(ctx context.Context, key runner.Key, secrets map[string][]byte) string {
	st, err := jobstate.Store{API: s.client, Key: stateKey(key)}.ReadState(ctx)
	if err != nil {
		return "" // the log is an aid
	}
	lines := strings.Split(strings.TrimSpace(st.Log), "\n")
	tail := strings.Join(lines[max(0, len(lines)-logLines):], "\n")
	return recipe.NewScrubber(secrets).Scrub(tail)
}

// Delete deletes the record and the state of a cluster. The hub deletes what the state owns.
func (s *Store) Delete(ctx context.Context, key runner.Key) error {
	if err := s.deleteState(ctx, stateKey(key)); err != nil {
		return err
	}
	return s.deleteState(ctx, recordKey(key))
}

func (h *hub) deleteState(ctx context.Context, key types.NamespacedName) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err := h.client.Delete(ctx, secret, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s: %w", key.Name, err)
	}
	return nil
}
