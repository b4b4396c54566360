package clusterclaim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/claim"
	"hotspare.io/hotspare/internal/condition"
)

// heartbeats remembers when this process first saw the current heartbeat of each claim, as leader
// election in client-go does: the clocks of other computers do not matter, and a hub that was not
// running ends no claim. The zero value is ready to use.
type heartbeats struct {
	mu   sync.Mutex
	last map[types.NamespacedName]beat
}

// beat is a heartbeat, and when this process first saw it.
type beat struct {
	claim          types.UID
	timeout, value string
	seenAt         time.Time
}

// observe returns the heartbeat of a claim; nil if it has none and its status reports none.
func (h *heartbeats) observe(c *hivev1.ClusterClaim, now time.Time) *claim.Heartbeat {
	out := &claim.Heartbeat{Timeout: hivev1.Duration(c.Annotations[hivev1.AnnotationHeartbeatTimeout])}
	if missing := condition.Find(c.Status.Conditions, hivev1.ClaimHeartbeatMissing); missing != nil && condition.IsTrue(c.Status.Conditions, hivev1.ClaimHeartbeatMissing) {
		out.MissingSince = missing.LastTransitionTime.Time
	}
	key := client.ObjectKeyFromObject(c)
	if out.Timeout == "" {
		h.forget(key)
		if out.MissingSince.IsZero() {
			return nil
		}
		return out
	}
	current := beat{claim: c.UID, timeout: string(out.Timeout), value: c.Annotations[hivev1.AnnotationHeartbeat], seenAt: now}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.last[key]; last.claim == current.claim && last.timeout == current.timeout && last.value == current.value {
		current.seenAt = last.seenAt
	}
	if h.last == nil {
		h.last = map[types.NamespacedName]beat{}
	}
	h.last[key] = current
	out.SeenAt = current.seenAt
	return out
}

// forget removes a claim that does not exist, or has no heartbeat.
func (h *heartbeats) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.last, key)
}
