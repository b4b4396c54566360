package dataplane

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progressCache records what this process has done for data planes and need not do again soon. It
// is a cache only: every step is idempotent.
type progressCache struct {
	mu    sync.Mutex
	plane map[types.NamespacedName]progress
}

type progress struct {
	uid              types.UID
	installed        time.Time
	removed, revoked bool
}

// getProgress returns what was done for the data plane with that UID.
func (m *progressCache) getProgress(key types.NamespacedName, uid types.UID) progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.plane[key]; d.uid == uid {
		return d
	}
	return progress{uid: uid}
}

// updateProgress changes the record of what was done for the data plane with that UID.
func (m *progressCache) updateProgress(key types.NamespacedName, uid types.UID, edit func(*progress)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.plane[key]
	if d.uid != uid {
		d = progress{uid: uid}
	}
	edit(&d)
	if m.plane == nil {
		m.plane = map[types.NamespacedName]progress{}
	}
	m.plane[key] = d
}

func (m *progressCache) deleteProgress(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.plane, key)
}
