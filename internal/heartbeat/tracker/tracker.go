// Package tracker observes the heartbeats of objects, of which package heartbeat decides when they are missing.
package tracker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hivev1 "hotspare.io/hotspare/api/hive/v1"
	"hotspare.io/hotspare/internal/heartbeat"
)

// Heartbeats remembers when this process first saw the current heartbeat of each object of one kind, as leader
// election in client-go does: the clocks of other computers do not matter, and a hub that was not
// running ends no object. The zero value is ready to use.
type Heartbeats struct {
	mu   sync.Mutex
	last map[types.NamespacedName]beat
}

// beat is a heartbeat, and when this process first saw it.
type beat struct {
	object         types.UID
	timeout, value string
	seenAt         time.Time
}

// Observe returns what is known of the heartbeat of an object; nil if it has none and its status reports none.
// missingSince is when its condition HeartbeatMissing became True; zero if it is not.
func (h *Heartbeats) Observe(o client.Object, missingSince, now time.Time) *heartbeat.Observation {
	annotations := o.GetAnnotations()
	out := &heartbeat.Observation{Timeout: hivev1.Duration(annotations[hivev1.AnnotationHeartbeatTimeout]), MissingSince: missingSince}
	key := client.ObjectKeyFromObject(o)
	if out.Timeout == "" {
		h.Forget(key)
		if missingSince.IsZero() {
			return nil
		}
		return out
	}
	current := beat{object: o.GetUID(), timeout: string(out.Timeout), value: annotations[hivev1.AnnotationHeartbeat], seenAt: now}
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := h.last[key]; last.object == current.object && last.timeout == current.timeout && last.value == current.value {
		current.seenAt = last.seenAt
	}
	if h.last == nil {
		h.last = map[types.NamespacedName]beat{}
	}
	h.last[key] = current
	out.SeenAt = current.seenAt
	return out
}

// Forget removes an object that does not exist, or has no heartbeat.
func (h *Heartbeats) Forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.last, key)
}
