package claim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/cli/base"
)

// A heartbeat renews the heartbeat of a claim until the claim does not exist.
type heartbeat struct {
	timeout time.Duration
	// renew sends one heartbeat.
	renew func(ctx context.Context) error
	// warn reports to the user that the hub does not accept heartbeats.
	warn func(error)
}

// run renews the heartbeat until ctx ends. Four renewals fit into the timeout. A failed one is repeated
// sooner, so that a hub that was away hears of the claim before it ends it.
func (b heartbeat) run(ctx context.Context) {
	interval, retry := b.timeout/4, b.timeout/12
	accepted, warned := false, false
	for {
		wait := interval
		request, cancel := context.WithTimeout(ctx, interval)
		err := b.renew(request)
		cancel()
		switch {
		case err == nil:
			accepted = true
		case apierrors.IsNotFound(err) && !base.IsAPIMissing(err):
			return
		case apierrors.IsForbidden(err) && !accepted: // a hub that has just started denies for some seconds what it accepts later
			if !warned {
				b.warn(err)
			}
			warned = true
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

// startHeartbeat renews the heartbeat of a claim until stop is called. The first renewal also sets the
// timeout: a user who may create claims, but not patch them, has a claim without a heartbeat.
func (a commands) startHeartbeat(ctx context.Context, h *base.Hub, c *hivev1.ClusterClaim, timeout time.Duration) (stop func()) {
	if timeout == 0 {
		return func() {}
	}
	about := client.ObjectKeyFromObject(c)
	uid := c.UID
	b := heartbeat{
		timeout: timeout,
		renew: func(ctx context.Context) error {
			target := &hivev1.ClusterClaim{}
			target.Namespace, target.Name = about.Namespace, about.Name
			return h.Patch(ctx, target, heartbeatPatch(uid, timeout, time.Now()))
		},
		warn: func(err error) {
			fmt.Fprintf(a.Stderr, "warning: claim %s has no heartbeat, so that the hub releases it only after its lifetime if this process is killed: %v\n",
				about.Name, h.ExplainAPIError(err))
		},
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the command may clean up after ctx has ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.run(ctx)
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
