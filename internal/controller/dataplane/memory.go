package dataplane

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// progressCache is what this process has done for data planes that it need not do again soon.
// Nothing goes wrong without it: all of it bears to be done twice.
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

// updateProgress changes what was done for the data plane with that UID.
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
