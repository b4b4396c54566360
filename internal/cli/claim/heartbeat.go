package claim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// A renewer renews the heartbeat of a claim, or of a ClaimSet, until it does not exist.
type renewer struct {
	timeout time.Duration
	// declared is set if the object was created with its timeout: it ends without renewals.
	declared bool
	// renew sends one heartbeat.
	renew func(ctx context.Context) error
	// warn reports to the user that the hub does not accept heartbeats.
	warn func(error)
}

// run renews the heartbeat until ctx ends. Four renewals fit into the timeout. A failed one is repeated
// sooner, so that a hub that was away hears of the claim before it ends it.
func (r renewer) run(ctx context.Context) {
	interval, retry := r.timeout/4, r.timeout/12
	accepted, warned := false, false
	for {
		wait := interval
		request, cancel := context.WithTimeout(ctx, interval)
		err := r.renew(request)
		cancel()
		switch {
		case err == nil:
			accepted = true
		case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
			return
		case apierrors.IsForbidden(err) && !accepted: // a hub that has just started denies for some seconds what it accepts later
			if !warned {
				r.warn(err)
			}
			warned = true
			if r.declared {
				wait = retry
			}
		default:
			wait = retry
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// declareHeartbeat sets the timeout of the heartbeat of a claim that is about to be created, if the hub says that the
// user may patch the claim. So a process that is killed at any moment leaves no claim without a heartbeat. Without that
// right, or without an answer, it sets nothing: the claim would end while its process lives.
func declareHeartbeat(ctx context.Context, h *base.Hub, c claimed, timeout time.Duration) {
	if timeout == 0 || !mayPatch(ctx, h, c) {
		return
	}
	annotations := map[string]string{hivev1.AnnotationHeartbeatTimeout: formatLifetime(timeout)}
	maps.Copy(annotations, c.GetAnnotations())
	c.SetAnnotations(annotations)
}

// mayPatch reports whether the hub says that the user may patch a claim, which need not exist. A review that fails
// counts as no.
func mayPatch(ctx context.Context, h *base.Hub, c claimed) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "patch", Group: c.resource.Group, Resource: c.resource.Resource, Namespace: c.GetNamespace(), Name: c.GetName(),
	}}}
	return h.Create(ctx, review) == nil && review.Status.Allowed
}

// startHeartbeat renews the heartbeat of a claim until stop is called. Each renewal also sets the timeout, because
// declareHeartbeat may not have set it: a user who may create claims, but not patch them, has a claim without a heartbeat.
func (a commands) startHeartbeat(ctx context.Context, h *base.Hub, c claimed, timeout time.Duration) (stop func()) {
	if timeout == 0 {
		return func() {}
	}
	created := c.DeepCopyObject().(client.Object) // the caller may change its own
	r := renewer{
		timeout: timeout, declared: created.GetAnnotations()[hivev1.AnnotationHeartbeatTimeout] != "",
		renew: func(ctx context.Context) error {
			return h.Patch(ctx, created.DeepCopyObject().(client.Object), heartbeatPatch(created.GetUID(), timeout, time.Now()))
		},
	}
	r.warn = func(err error) {
		consequence := "the hub releases it only after its lifetime if this process is killed"
		if r.declared {
			consequence = "the hub releases it unless it accepts one within " + base.FormatDuration(base.ToAPIDuration(timeout))
		}
		fmt.Fprintf(a.Stderr, "warning: %s %s has no heartbeat, so that %s: %v\n", c.noun, created.GetName(), consequence, h.ExplainAPIError(err))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the command may clean up after ctx has ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// heartbeatPatch returns the patch that renews the heartbeat of the claim with this UID, and of no other
// of the same name.
func heartbeatPatch(uid types.UID, timeout time.Duration, now time.Time) client.Patch {
	metadata := map[string]any{"annotations": map[string]string{
		hivev1.AnnotationHeartbeatTimeout: formatLifetime(timeout),
		hivev1.AnnotationHeartbeat:        now.UTC().Format(time.RFC3339Nano),
	}}
	if uid != "" {
		metadata["uid"] = uid
	}
	raw, err := json.Marshal(map[string]any{"metadata": metadata})
	base.MustSucceed(err)
	return client.RawPatch(types.MergePatchType, raw)
}
