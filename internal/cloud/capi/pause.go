package capi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"hotspare.io/hotspare/internal/clusterapi"
	"hotspare.io/hotspare/internal/fault"
)

// conflictDelay is the delay before an object that has changed in between is written again.
const conflictDelay = time.Second

// pause pauses the Cluster and records, in the same write, that hotspare did.
func (a *Actuator) pause(ctx context.Context, seen observation) error {
	at := a.clock.Now().UTC().Format(time.RFC3339)
	return a.patchPause(ctx, seen, "pausing", true, at)
}

// unpause ends the pause and removes the record of it in one write.
func (a *Actuator) unpause(ctx context.Context, seen observation) error {
	return a.patchPause(ctx, seen, "unpausing", nil, nil)
}

func (a *Actuator) patchPause(ctx context.Context, seen observation, doing string, paused, at any) error {
	err := a.patchObject(ctx, clusterapi.Clusters, seen.cluster, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{clusterapi.AnnotationPaused: at}},
		"spec":     map[string]any{"paused": paused},
	})
	if err != nil {
		return fmt.Errorf("%s Cluster %s: %w", doing, seen.Name, err)
	}
	return nil
}

// patchObject sends a JSON merge patch that carries the version which was observed: a decision based
// on a stale object is refused. Cluster API writes its objects often, so a refusal is fault.Wait: the
// next pass decides again.
func (a *Actuator) patchObject(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured, patch map[string]any, subresources ...string) error {
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["resourceVersion"] = o.GetResourceVersion()
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = a.hub.Resource(r).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, raw, metav1.PatchOptions{}, subresources...)
	if apierrors.IsConflict(err) {
		return fault.NewWait(conflictDelay, "%s %s has changed in between: it is read and written again", o.GetKind(), o.GetName())
	}
	return err
}
